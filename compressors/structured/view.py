"""What is cut of a text that is not cut as it stands: decoded values, folded lines.

A view is a text of its own, made of stretches of the original: a JSON string's characters without
its escapes, the lines of a log without the repeats. It is split, scored and selected like any
text; what is kept of it leads back to the original, character by character.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ..keep import Found, Wishes
from ..notes import Note, woven
from ..render import Span
from ..select import Scored
from ..structure import split
from ..units import Unit, Units


@dataclass(frozen=True, slots=True)
class Stretch:
    """Characters ``at`` to ``at + length`` of a view, from ``start`` to ``end`` of the original.

    Both lengths are equal, or the stretch stands for the original's as a whole: an escape. A
    stretch that stands for nothing is the space between two values, or a note.
    """

    at: int
    length: int
    start: int
    end: int
    is_note: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether each character stands for itself."""
        return self.length == self.end - self.start


@dataclass(frozen=True)
class View:
    """The units of a view, where its text comes from, and what stays whatever is selected.

    ``frame`` are spans of the original outside the view that always stay. Of each range of units in
    ``least`` at least one word stays. ``by_line`` keeps the words of a line together, and those in
    ``first``, ranges of the view, before all others.
    """

    original: str
    units: Units
    stretches: tuple[Stretch, ...]
    frame: tuple[Span, ...] = ()
    least: tuple[tuple[int, int], ...] = ()
    first: tuple[Span, ...] = ()
    by_line: bool = False

    @cached_property
    def _starts(self) -> list[int]:
        return [stretch.at for stretch in self.stretches]

    def scored(
        self, scores: Sequence[float], wishes: Wishes | None = None, found: Found | None = None
    ) -> Scored:
        """Return the units scored, with what the caller ``found`` in the original kept and dropped.

        Wishes are looked for in what decoded values say as well. The best word of each range in
        ``least`` must stay too.
        """
        wishes = wishes or Wishes()
        ranked = _by_line(self.units, scores, self.first) if self.by_line else list(scores)
        found = found or Found()
        own = wishes.find(self.units.text) if self.frame else Found()
        inside = Found(
            self._inside(found.kept, own.kept),
            self._inside(found.words, own.words),
            self._inside(found.dropped, own.dropped),
        )
        scored = wishes.apply(self.units, ranked, inside)
        units, best = scored.units.units, set[int]()
        for start, end in self.least:
            words = [i for i in range(start, end) if units[i].role == "word"]
            if words and scored.forced.isdisjoint(words):
                best.add(max(words, key=lambda i: (scored.scores[i], -i)))
        return replace(scored, forced=scored.forced | best, dropped=scored.dropped - best)

    def original_spans(self, spans: Iterable[Span]) -> tuple[list[Span], tuple[Note, ...]]:
        """Return what stays of the original, in order, when these spans of the view do."""
        kept, notes = list(self.frame), list[Note]()
        for start, end in self._trimmed(spans):
            self._place(start, end, kept, notes)
        return merged(kept), tuple(notes)

    def _place(self, start: int, end: int, kept: list[Span], notes: list[Note]) -> None:
        """Add what a span of the view stands for."""
        i = bisect_right(self._starts, start) - 1
        while i < len(self.stretches) and self.stretches[i].at < end:
            stretch = self.stretches[i]
            a, b = max(start, stretch.at), min(end, stretch.at + stretch.length)
            if a < b and stretch.is_note:
                notes.append(Note(stretch.start, self.units.text[a:b]))
            elif a < b and stretch.is_plain:
                shift = stretch.start - stretch.at
                kept.append((a + shift, b + shift))
            elif a < b:
                kept.append((stretch.start, stretch.end))
            i += 1

    def _trimmed(self, spans: Iterable[Span]) -> list[Span]:
        """Return the spans without white space that now begins a value, and did not before."""
        units, text = self.units.units, self.units.text
        cuts: list[Span] = []
        given = list(spans)
        i = 0
        for a, b in self.least:
            start, end = (units[a].body, units[b - 1].end) if a < b else (0, 0)
            while i < len(given) and given[i][1] <= start:
                i += 1
            k, at = i, max(start, given[i][0]) if i < len(given) else end
            while start < at < end and text[at].isspace():
                cuts.append((at, at + 1))
                at += 1
                if at == given[k][1]:
                    k += 1
                    at = given[k][0] if k < len(given) else end
        return minus(given, cuts)

    def rendered(self, spans: Iterable[Span]) -> str:
        """Return the text that ``original_spans`` of these spans make."""
        return woven(self.original, *self.original_spans(spans))

    def marks(self, found: Iterable[tuple[int, int, float]]) -> tuple[tuple[int, int, float], ...]:
        """Return (start, end, score) triples of the view in offsets of the original."""
        placed: list[tuple[int, int, float]] = []
        for start, end, score in found:
            spans, notes = list[Span](), list[Note]()
            self._place(start, end, spans, notes)
            if spans and not notes:
                placed.append((spans[0][0], spans[-1][1], score))
        return tuple(placed)

    def _inside(self, forced: Sequence[Span], own: Sequence[Span]) -> tuple[Span, ...]:
        """Return spans of the original, as far as they lie in the view, and the view's own."""
        found: list[Span] = [*own]
        stretches = self.stretches if forced else ()
        for stretch in stretches:
            for start, end in forced:
                a, b = max(start, stretch.start), min(end, stretch.end)
                if a < b and stretch.is_plain:
                    shift = stretch.at - stretch.start
                    found.append((a + shift, b + shift))
                elif a < b:
                    found.append((stretch.at, stretch.at + stretch.length))
        return tuple(merged(found))


def merged(spans: Iterable[Span]) -> list[Span]:
    """Return the spans in order, none empty, those that touch or overlap as one."""
    found: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def minus(spans: Iterable[Span], cuts: Iterable[Span]) -> list[Span]:
    """Return the spans, which are in order, without what lies in the cuts."""
    left: list[Span] = []
    holes = merged(cuts)
    at = 0
    for start, end in spans:
        while at < len(holes) and holes[at][1] <= start:
            at += 1
        i = at
        while i < len(holes) and holes[i][0] < end:
            if start < holes[i][0]:
                left.append((start, holes[i][0]))
            start = max(start, holes[i][1])
            i += 1
        if start < end:
            left.append((start, end))
    return left


def units_of(text: str, parts: Sequence[Span]) -> tuple[Units, list[tuple[int, int]]]:
    """Split each part of a text alone; return the units of them all, and each part's range.

    Between the parts may be white space only. Nothing pairs or hangs together across parts.
    """
    units: list[Unit] = []
    ranges: list[tuple[int, int]] = []
    end, sentence = 0, 0
    for start, stop in parts:
        first = len(units)
        for unit in split(text[start:stop]).units:
            needs = tuple((a + first, b + first) for a, b in unit.needs)
            units.append(
                Unit(
                    end,
                    unit.body + start,
                    unit.end + start,
                    unit.role,
                    unit.kind,
                    unit.sentence + sentence,
                    needs,
                )
            )
            end = unit.end + start
        if len(units) > first:
            sentence = units[-1].sentence + 1
        ranges.append((first, len(units)))
    return Units(text, tuple(units), end), ranges


def _by_line(units: Units, scores: Sequence[float], first: Sequence[Span]) -> list[float]:
    """Return scores that keep lines together, those in ``first`` before all others.

    A word's score is its line's best words' and its own: half a line of a log says little.
    """
    best: dict[int, list[float]] = {}
    for unit, score in zip(units.units, scores, strict=True):
        if unit.role == "word":
            best.setdefault(unit.sentence, []).append(score)
    lines = {line: sum(top := sorted(of)[-4:]) / len(top) for line, of in best.items()}
    starts = [start for start, _ in first]
    found: list[float] = []
    for unit, score in zip(units.units, scores, strict=True):
        i = bisect_right(starts, unit.body) - 1
        is_first = i >= 0 and unit.body < first[i][1]
        value = (2 * lines.get(unit.sentence, score) + score) / 3
        found.append(0.5 * is_first + 0.5 * value)
    return found
