"""Tokens of a text, and which units they belong to."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from ..units import Units
from .scale import ranks

Reduce = Literal["mean", "sum", "max"]
REDUCERS = ("mean", "sum", "max")
_SLACK = 8  # tokens that a segment may have more than its share, so that units stay whole


@dataclass(frozen=True, slots=True)
class Encoded:
    """A text's token ids; ``spans`` holds the range of tokens of each unit.

    ``groups`` are the ranges of tokens that stay or go together: a unit's own, or white space.
    A token that is written over two units counts for both and goes with the second.
    """

    units: Units
    ids: Sequence[int]
    spans: list[tuple[int, int]]
    groups: list[tuple[int, int]]

    @classmethod
    def of(cls, units: Units, ids: Sequence[int], offsets: Sequence[tuple[int, int]]) -> Encoded:
        """Match tokens with character offsets to units."""
        return cls(units, ids, _spans(units, offsets), _groups(units, offsets))

    def cuts(self, segment: int) -> list[tuple[int, int]]:
        """Return segments of at most ``segment`` tokens, all about as long, the last one too.

        They cut no group that fits into one.
        """
        number = max(-(-len(self.ids) // segment), 1)
        size = min(-(-len(self.ids) // number) + _SLACK, segment)
        found: list[tuple[int, int]] = []
        start = end = 0
        for _, stop in self.groups:
            if stop - start > size and end > start:
                found.append((start, end))
                start = end
            while stop - start > size:
                found.append((start, start + size))
                start += size
            end = stop
        return [*found, (start, end)] if end > start else found

    def per_unit(self, values: Sequence[float], reduce: Reduce) -> list[float]:
        """Return each unit's value; one without a token of its own gets the mean of all units."""
        found = [reduced(values[a:b], reduce) if b > a else None for a, b in self.spans]
        known = [value for value in found if value is not None]
        mean = sum(known) / len(known) if known else 0.0
        return [mean if value is None else value for value in found]

    def shares(self, values: Sequence[float], segment: int) -> list[float]:
        """Return for each unit the share of its segment's words that are worth less, by tokens.

        Of any segment the best part r is what has a share above 1 - r.
        """
        cuts = self.cuts(segment)
        members: list[list[int]] = [[] for _ in cuts] or [[]]
        at = 0
        for unit, (start, _) in enumerate(self.spans):
            while at + 1 < len(cuts) and start >= cuts[at][1]:
                at += 1
            members[at].append(unit)
        weights = [
            max(end - start, 1) if unit.role == "word" else 0
            for unit, (start, end) in zip(self.units.units, self.spans, strict=True)
        ]
        found = [0.0] * len(self.spans)
        for own in members:
            shares = ranks([values[unit] for unit in own], [weights[unit] for unit in own])
            for unit, share in zip(own, shares, strict=True):
                found[unit] = share
        return found


def reduced(values: Sequence[float], reduce: Reduce) -> float:
    """Return one value for several."""
    if reduce == "max":
        return max(values)
    total = sum(values)
    return total if reduce == "sum" else total / len(values)


def survivors(
    groups: Sequence[tuple[int, int]], values: Sequence[float], rate: float, reduce: Reduce
) -> list[bool]:
    """Return which tokens stay: the best groups that fit into a share of the tokens.

    >>> survivors([(0, 1), (1, 3), (3, 4)], [0.1, 2.0, 4.0, 0.5], 0.5, "mean")
    [False, True, True, False]
    """
    if rate >= 1:
        return [True] * len(values)
    room = max(rate * len(values), 1)
    kept = [False] * len(values)
    for start, end in sorted(groups, key=lambda g: -reduced(values[g[0] : g[1]], reduce)):
        if end - start <= room:
            kept[start:end] = [True] * (end - start)
            room -= end - start
    return kept


def _spans(units: Units, offsets: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    at = 0
    for unit in units.units:
        while at < len(offsets) and offsets[at][1] <= unit.body:
            at += 1
        end = at
        while end < len(offsets) and offsets[end][0] < unit.end:
            end += 1
        spans.append((at, end))
    return spans


def _groups(units: Units, offsets: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    starts = [unit.start for unit in units.units]

    def owner(token: int) -> tuple[int, bool]:
        last = max(offsets[token][1] - 1, 0)
        unit = bisect_right(starts, last) - 1
        return unit, unit >= 0 and last >= units.units[unit].body

    groups: list[tuple[int, int]] = []
    for _, run in groupby(range(len(offsets)), key=owner):
        tokens = list(run)
        groups.append((tokens[0], tokens[-1] + 1))
    return groups
