"""Logs: runs of lines that say the same are folded to the first and the last, with a count."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..render import Span
from ..units import Unit, Units
from .lines import PRESSING, STAMP, template
from .view import Stretch, View, units_of

_LONGEST = 8
_FEWEST = 2
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Fold:
    """Blocks of ``size`` whole lines, side by side, that a note stands for.

    ``like`` is where the block begins that they repeat.
    """

    like: int
    blocks: tuple[Span, ...]
    size: int

    @property
    def start(self) -> int:
        """Where the first of the lines begins."""
        return self.blocks[0][0]

    @property
    def end(self) -> int:
        """Where the last of the lines ends."""
        return self.blocks[-1][1]

    @property
    def note(self) -> str:
        """What is said in their place."""
        count = len(self.blocks)
        if self.size == 1:
            return f"[{count} more lines like this]"
        return f"[{count} more times these {self.size}]"

    @property
    def saved(self) -> int:
        """How many characters fewer."""
        return self.end - self.start - len(self.note)


def folds(
    text: str, *, share: float = 0.0, question: str | None = None, forced: Sequence[Span] = ()
) -> list[Fold]:
    """Return what may be folded of a log, in order.

    A run is a block of up to eight lines that comes three times or more, equal but for numbers,
    times, addresses and ids. Its first and last block stay, and so does every block that holds a
    word of the question that the first does not, or a ``forced`` span. The longest folds come
    first, each as a whole, until no more than about ``share`` of the text is left.
    """
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    lines = [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]
    if lines and not lines[-1]:
        lines.pop()
    starts = [*starts[: len(lines)], len(text)]
    found: list[Fold] = []
    for first, size, repeats in runs([template(line) for line in lines]):
        blocks = [
            (starts[first + k * size], starts[first + (k + 1) * size]) for k in range(repeats)
        ]
        found += _of_run(text, blocks, size, _words(question or ""), forced)
    most, chosen = (1 - share) * len(text), list[Fold]()
    order = sorted(found, key=lambda fold: -fold.saved)
    for place, fold in enumerate(order):
        if most <= 0:
            break
        if fold.saved >= most:  # the shortest that is enough
            place = bisect_right(order, -most, key=lambda one: -one.saved) - 1
        chosen.append(order[place])
        most -= order[place].saved
    return sorted(chosen, key=lambda fold: fold.start)


def runs(templates: Sequence[str]) -> list[tuple[int, int, int]]:
    """Return (first line, lines a block, blocks) of each run of three equal blocks or more."""
    count = len(templates)
    same = {size: [0] * (count + 1) for size in range(1, _LONGEST + 1)}
    for size, ahead in same.items():
        for i in range(count - size - 1, -1, -1):
            ahead[i] = ahead[i + 1] + 1 if templates[i] == templates[i + size] else 0
    found: list[tuple[int, int, int]] = []
    i = 0
    while i < count:
        best = max(
            ((1 + same[size][i] // size, size) for size in same),
            key=lambda run: (run[0] * run[1] if run[0] > 2 else 0, -run[1]),
        )
        if best[0] > 2 and templates[i] and any(templates[i : i + best[1]]):
            found.append((i, best[1], best[0]))
            i += best[0] * best[1]
        else:
            i += 1
    return found


def view_of_log(
    text: str,
    *,
    fold: bool = True,
    share: float = 0.0,
    question: str | None = None,
    forced: Sequence[Span] = (),
) -> View:
    """Return a log with its repeats folded.

    A note stays with any word of the lines that it counts; a time stamp with any word of its
    line. Lines that tell of an error or name what the question does go last.
    """
    found = folds(text, share=share, question=question, forced=forced) if fold else []
    parts: list[str] = []
    stretches: list[Stretch] = []
    spans: list[Span] = []
    likes: dict[int, int] = {}
    at, place = 0, 0

    def add(part: str, start: int, end: int, *, is_note: bool = False) -> None:
        nonlocal place
        parts.append(part)
        spans.append((place, place + len(part)))
        stretches.append(Stretch(place, len(part), start, end, is_note))
        place += len(part)

    for one in found:
        like = place + one.like - at if one.like >= at else place
        add(text[at : one.start], at, one.start)
        likes[len(spans)] = like
        add(one.note, one.start, one.start, is_note=True)
        at = one.end - len(_break(text, one.end))
    add(text[at:], at, len(text))
    view = "".join(parts)
    units = _stamped(_noted(view, spans, likes))
    asked = _words(question or "")
    pressing = [
        match.span()
        for match in re.finditer(r"[^\n]+", view)
        if PRESSING.search(match[0]) or (asked and asked & _words(match[0]))
    ]
    return View(text, units, tuple(stretches), first=tuple(pressing), by_line=True)


def _of_run(
    text: str, blocks: Sequence[Span], size: int, asked: set[str], forced: Sequence[Span]
) -> list[Fold]:
    news = asked - _words(text[slice(*blocks[0])])
    is_same = text[slice(*blocks[0])].strip() == text[slice(*blocks[-1])].strip()
    stop = len(blocks) if is_same else len(blocks) - 1
    found: list[Fold] = []
    like, first = 0, 1
    for k in range(1, stop + 1):
        start, end = blocks[k] if k < stop else (0, 0)
        is_kept = k == stop or any(a < end and start < b for a, b in forced)
        if not is_kept and not (news and news & _words(text[start:end])):
            continue
        if k - first >= _FEWEST:
            fold = Fold(blocks[like][0], tuple(blocks[first:k]), size)
            if fold.saved > len(fold.note):
                found.append(fold)
        like, first = k, k + 1
    return found


def _break(text: str, end: int) -> str:
    """Return the line break before ``end``, empty without one."""
    if text[end - 2 : end] == "\r\n":
        return "\r\n"
    return "\n" if text[end - 1 : end] == "\n" else ""


def _words(text: str) -> set[str]:
    found = _WORD.findall(text.lower())
    return {word for word in found if len(word) > 3 or any(char.isdigit() for char in word)}


def _noted(view: str, spans: Sequence[Span], likes: dict[int, int]) -> Units:
    """Split a view, its notes as one unit each that needs a word of the lines before it."""
    units, ranges = units_of(view, spans)
    found: list[Unit] = []
    moved: list[int] = []
    for part, (a, b) in enumerate(ranges):
        if part not in likes:
            for unit in units.units[a:b]:
                moved.append(len(found))
                found.append(unit)
            continue
        moved += [len(found)] * (b - a)
        first = len(found)
        while first and found[first - 1].body >= likes[part]:
            first -= 1
        head, tail = units.units[a], units.units[b - 1]
        need = (first, len(found))
        # marked done: its needs are in the new indices already
        found.append(
            Unit(head.start, head.body, tail.end, "between", "note", head.sentence, (need,))
        )
    moved.append(len(found))
    shifted = [
        unit
        if unit.kind == "note"
        else replace(unit, needs=tuple((moved[a], moved[b]) for a, b in unit.needs))
        for unit in found
    ]
    return Units(view, tuple(shifted), units.tail)


def _stamped(units: Units) -> Units:
    """Make time stamps that begin a line heads of it: they stay with any of its words."""
    text, found = units.text, list(units.units)
    i = 0
    while i < len(found):
        start = text.rfind("\n", found[i].start, found[i].body) + 1 or found[i].start
        stop = i + 1
        while stop < len(found) and "\n" not in text[found[stop].start : found[stop].body]:
            stop += 1
        match = STAMP.match(text, start, min(start + 100, len(text)))
        last = i
        while match and last < stop and found[last].end <= match.end():
            last += 1
        words = any(unit.role == "word" for unit in found[last:stop])
        if match and i < last and found[last - 1].end == len(match[0].rstrip()) + start and words:
            for k in range(i, last):
                found[k] = replace(found[k], role="mark", needs=((last, stop),))
        i = stop
    return replace(units, units=tuple(found))
