"""Units to sentences, in any language."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from .scorers.vocabulary import language
from .units import Units

_OWN_ENDS = frozenset("۔܀።፧၊။។៕།༎։\u037e᠃᱾")
"""Marks that end a sentence and nothing else, in scripts whose marks are written to the word."""
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
_LONGEST = 400
_LONGEST_UNSPACED = 60
_SAMPLE = 400


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence or line: units ``first`` to ``last`` (excluded), at ``text[start:end]``.

    There is no white space at the ends.
    """

    start: int
    end: int
    first: int
    last: int


def sentences(units: Units) -> list[Sentence]:
    """Return the sentences of a text; they tile its units, in order.

    A sentence never goes on over a line that is a heading, an item of a list or the end of a
    paragraph. Periods of abbreviations, initials, numbers and German ordinals end none. Text
    without marks is parted at white space: Thai, Lao, Khmer and Burmese after 60 characters (there
    a space ends a clause), others after 400.

    >>> from .structure import split
    >>> text = 'Dr. Ott paid $3.50. "Why?" she asked. (He knew.) It was late.'
    >>> [text[s.start : s.end] for s in sentences(split(text))]
    ['Dr. Ott paid $3.50.', '"Why?" she asked.', '(He knew.)', 'It was late.']
    """
    numbered = groupby(range(len(units.units)), key=lambda i: units.units[i].sentence)
    ranges = [[*indices] for _, indices in numbered]
    parted = [part for indices in ranges for part in _parted(units, indices[0], indices[-1] + 1)]
    found: list[Sentence] = []
    for first, last in _joined(units, parted):
        found.append(Sentence(units.units[first].body, units.units[last - 1].end, first, last))
    return found


def _parted(units: Units, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of what ``split`` takes for one sentence."""
    text = units.text
    start = first
    body = units.units[first].body
    long = units.units[last - 1].end - body > _LONGEST_UNSPACED
    is_unspaced = long and bool(_UNSPACED.search(text, body, body + _LONGEST_UNSPACED))
    longest = _LONGEST_UNSPACED if is_unspaced else _LONGEST
    for i in range(first + 1, last):
        unit = units.units[i]
        is_far = unit.body - units.units[start].body >= longest and unit.start < unit.body
        if _ends(units, i, start) or is_far:
            yield start, i
            start = i
    yield start, last


def _ends(units: Units, i: int, start: int) -> bool:
    """Whether a sentence ends before unit ``i`` that ``split`` saw none end at."""
    unit, before = units.units[i], units.units[i - 1]
    if unit.role in ("close", "end", "join"):
        return False
    if units.text[before.end - 1] in _OWN_ENDS:
        return True
    last = i - 1
    while last > start and units.units[last].role == "close":
        last -= 1
    if units.units[last].role != "end" or unit.start == unit.body:
        return False
    word = units.text[unit.body : unit.end]
    is_name = any(map(str.isupper, word[1:3]))  # iPhone, eBay
    return is_name or (last < i - 1 and not word[0].islower() and word[0] not in "—–-")


def _joined(units: Units, parts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Put back together what an initial (А. С. Пушкин) or an ordinal (Die 2. Auflage) parted."""
    words = [units.content(i).lower() for i in units.words[:_SAMPLE]]
    has_ordinals = language(words) == "de"
    joined: list[tuple[int, int]] = []
    for first, last in parts:
        space = units.text[units.units[first].start : units.units[first].body]
        if joined and "\n" not in space and _is_dotted(units, joined[-1], has_ordinals):
            joined[-1] = (joined[-1][0], last)
        else:
            joined.append((first, last))
    return joined


def _is_dotted(units: Units, part: tuple[int, int], has_ordinals: bool) -> bool:
    """Whether a part ends with one letter or, where there are ordinals, a number, and a period."""
    last = part[1] - 1
    if last <= part[0] or units.content(last) != ".":
        return False
    word = units.content(last - 1)
    return (len(word) == 1 and word.isalpha()) or (
        has_ordinals and len(word) < 3 and word.isdecimal()
    )
