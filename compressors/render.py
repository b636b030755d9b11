"""Kept units to text: every character comes from the original, at a known place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from .governed import without_orphans
from .units import Unit, Units
from .wide import WIDE

Span = tuple[int, int]

_NUMERALS = frozenset("〇一二三四五六七八九十百千万億亿兆0123456789")


def closure(
    units: Sequence[Unit], kept: Sequence[bool], forced: frozenset[int] = frozenset()
) -> list[bool]:
    """Return which units stay when the given words do: those and all that they carry along.

    A word whose needs are not met goes, unless it is in ``forced``.
    """
    chosen = without_orphans(units, kept, forced)
    sums = [0, *accumulate(chosen)]
    return [
        stays
        or (keep and unit.role != "word")
        or (
            unit.role != "word"
            and bool(unit.needs)
            and all(a < b and sums[b] > sums[a] for a, b in unit.needs)
        )
        for stays, keep, unit in zip(chosen, kept, units, strict=True)
    ]


def render(
    units: Units,
    kept: Sequence[bool],
    pinned: frozenset[int] = frozenset(),
    spaces: frozenset[int] = frozenset(),
    folds: bool = False,
) -> list[Span]:
    """Return the spans of the text to keep, in order, merged, none empty.

    ``kept`` is closed already (``closure``). Between two kept units stays the strongest of the
    white space that was there: a paragraph break before a line break before a space. The white
    space before a unit in ``pinned`` stays as it is, that before one in ``spaces`` also without
    the unit (``folds``: but for one that repeats what was kept last). When dropping would write
    two words or numbers as one, the unit before the second stays.
    """
    if all(kept) and units.units:
        return [(0, len(units.text))] if units.text else []
    spans: list[Span] = []
    previous: int | None = None
    space = ""  # what ``spaces`` kept since the last kept unit
    for i, keep in enumerate([*kept, False]):
        if i in spaces:
            start, body = _space(units, i)
            if not (folds and space == units.text[start:body]):
                _append(spans, [(start, body)])
            space = units.text[start:body]
        if keep:
            bare = [(units.units[i].body, units.units[i].end)]
            is_bare = i in spaces or (space and i not in pinned)
            _append(spans, bare if is_bare else _joint(units, previous, i, pinned))
            previous, space = i, ""
    return spans


def _space(units: Units, i: int) -> Span:
    """Return the white space before a unit; that at the end of the text, one past the last."""
    if i < len(units.units):
        return units.units[i].start, units.units[i].body
    return units.tail, len(units.text)


def text_of(text: str, spans: Iterable[Span]) -> str:
    """Return the spans of a text, joined."""
    return "".join([text[start:end] for start, end in spans])


def _append(spans: list[Span], new: Iterable[Span]) -> None:
    for start, end in new:
        if start >= end:
            continue
        if spans and spans[-1][1] == start:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))


def _joint(units: Units, previous: int | None, i: int, pinned: frozenset[int]) -> list[Span]:
    """Return the spans for unit ``i`` after unit ``previous``, with the white space between."""
    text, unit = units.text, units.units[i]
    if i in pinned or previous == i - 1:
        return [(unit.start, unit.end)]
    if previous is None:
        return [(text.rfind("\n", unit.start, unit.body) + 1 or unit.body, unit.end)]
    if _is_tight(units, previous, i):
        return [(unit.body, unit.end)]
    best, rank = i, _rank(text, unit)
    for j in range(i - 1, previous, -1):
        if (other := _rank(text, units.units[j])) > rank:
            best, rank = j, other
    if not rank:
        before, first = text[units.units[previous].end - 1], text[unit.body]
        if fuses(before, first):
            return [(units.units[i - 1].body, unit.end)]
    space = units.units[best]
    return [(space.start, space.body), (unit.body, unit.end)]


def _is_tight(units: Units, previous: int, i: int) -> bool:
    """Whether punctuation stands against its word: no space before a comma, after a bracket."""
    unit, after = units.units[i], units.units[previous + 1]
    if unit.role in ("end", "join", "close"):
        return unit.start == unit.body
    return units.units[previous].role == "open" and after.start == after.body


def _rank(text: str, unit: Unit) -> int:
    """Rank white space: 3 a paragraph break, 2 a line break, 1 a space, 0 none."""
    if unit.start == unit.body:
        return 0
    space = text[unit.start : unit.body]
    breaks = space.count("\n") or int("\r" in space or "\u2028" in space)
    return 1 + min(breaks, 2)


def fuses(before: str, first: str) -> bool:
    """Whether two characters side by side would read as one word or number."""
    if before in _NUMERALS and first in _NUMERALS:
        return True
    return (
        (before.isalnum() or before == "_")
        and (first.isalnum() or first == "_")
        and not WIDE.match(before)
        and not WIDE.match(first)
    )
