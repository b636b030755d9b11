"""What makes sense only where it stood: doubled ends, false list markers, repeated words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .units import Units

_NUMERAL = re.compile(r"(?:\d{1,9}|[A-Za-z])\Z")
_MARKS = frozenset(("end", "join", "open"))
_EMPHASIS = frozenset(("*", "_", "**", "__", "***", "~~"))
_STOPS = frozenset(".!?…؟।。！？｡")
_CLOSERS = frozenset("\"'*_~)]}”’»›」』）")


def tidied(units: Units, kept: Sequence[bool], forced: frozenset[int] = frozenset()) -> list[bool]:
    """Return what stays without the marks that deletion would turn into others.

    A mark at the end of a sentence goes when another such mark is what now stands before it
    ("Sum. yes." to "Sum.."), and when it would make a list marker of a number ("4." at the
    beginning of a line); emphasis that ends and at once begins again goes on. The forced ones stay.
    """
    tidy = list(kept)
    marks = [i for i, u in enumerate(units.units) if kept[i] and u.role in _MARKS]
    floor, before_floor = -1, -1
    for i in marks:
        previous = i - 1
        while previous > floor and not tidy[previous]:
            previous -= 1
        if previous == floor and floor >= 0 and not tidy[floor]:
            previous = before_floor
        if previous >= 0 and units.units[i].role == "open":
            if not forced & {previous, i} and _is_seam(units, previous, i):
                tidy[previous] = tidy[i] = False
        elif previous >= 0 and i not in forced and _is_false(units, tidy, previous, i):
            tidy[i] = False
        floor, before_floor = i, previous
    return tidy


def _is_seam(units: Units, previous: int, i: int) -> bool:
    """Whether emphasis ends and begins again with nothing between: ``**a****b**``."""
    if units.units[previous].role != "close" or previous == i - 1:
        return False
    mark = units.content(i)
    is_tight = all(u.start == u.body for u in units.units[previous + 1 : i + 1])
    return mark in _EMPHASIS and mark == units.content(previous) and is_tight


def _is_false(units: Units, kept: Sequence[bool], previous: int, i: int) -> bool:
    """Whether the mark ``i`` after unit ``previous`` would say what it did not."""
    text, before, unit = units.text, units.units[previous], units.units[i]
    is_apart = previous < i - 1
    if is_apart and (before.role in ("end", "join") or _ends(text, before.body, before.end)):
        return True
    return (
        unit.role == "end"
        and before.role == "word"
        and text[unit.body] == "."
        and _NUMERAL.match(text, before.body, before.end) is not None
        and (is_apart or not _headed(text, before.body))
        and _is_first(units, kept, previous)
    )


def _is_first(units: Units, kept: Sequence[bool], i: int) -> bool:
    """Whether a kept unit begins a line of the output."""
    while i >= 0:
        unit = units.units[i]
        if i == 0 or "\n" in units.text[unit.start : unit.body]:
            return True
        i -= 1
        if kept[i]:
            return False
    return True


def _headed(text: str, body: int) -> bool:
    """Whether a unit is the first of its line in the original."""
    near = text[max(body - 200, 0) : body]
    return not near[near.rfind("\n") + 1 :].strip()


def _ends(text: str, body: int, end: int) -> bool:
    """Whether a unit ends as a sentence does, but for quotes (``U.S.``)."""
    while end > body and text[end - 1] in _CLOSERS:
        end -= 1
    return end > body and text[end - 1] in _STOPS


def without_repeats(units: Units, kept: Sequence[bool], repeats: frozenset[int]) -> list[bool]:
    """Return what stays when of equal ``repeats`` that follow each other only the first does."""
    single = list(kept)
    before = ""
    for i, keep in enumerate(kept):
        if not keep:
            continue
        content = units.content(i)
        if i in repeats and content == before:
            single[i] = False
        before = content if i in repeats else ""
    return single
