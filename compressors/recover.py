"""An answer in the original's words: what was deleted inside its phrases comes back."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import accumulate, pairwise

from ..middleware.errors import InvalidRequest
from .compressed import Compressed
from .render import Span
from .wide import WIDE

_WORD = re.compile(rf"{WIDE.pattern}|(?:(?!{WIDE.pattern})\w)+|[^\w\s]")
_BORDER = re.compile(r"[.!?…؟।。！？｡](?=\s|\Z)|[。！？｡]|[\n\r\u2028]")
_PLACES = 256
_AHEAD = 16


def recover(compressed: Compressed, answer: str, *, max_gap: int = 10) -> str:
    """Return the answer with what compression dropped inside the phrases that it repeats.

    LongLLMLingua's subsequence recovery (section 4.4), by the spans instead of a search: runs of
    two words or more of the answer that stand in the compressed text, longest first, of equal
    ones that with the shortest original, get the original wording between their words. A run
    ends where more than ``max_gap`` words were dropped, or a line or sentence ends; what is
    dropped before or after a run stays dropped. Nothing else of the answer changes.

    Raises InvalidRequest for a ``max_gap`` below 0.

    >>> text = "The bridge, built in 1931 by Ann Lee, is open."
    >>> short = Compressed("built by Ann", text, ((12, 17), (25, 32)), 12, 3, "lexical")
    >>> recover(short, "It was built by Ann.")
    'It was built in 1931 by Ann.'
    """
    _check(answer, max_gap)
    return restored(compressed.original, _places(compressed), answer, max_gap)


def recovered(
    original: str,
    compressed: str,
    answer: str,
    *,
    spans: Sequence[Span] | None = None,
    max_gap: int = 10,
) -> str:
    """Return ``recover``'s answer from texts; without ``spans`` the words are aligned.

    Raises InvalidRequest for a compressed text that is not the original with words left out.
    """
    _check(answer, max_gap)
    if spans is None:
        return restored(original, aligned(original, compressed), answer, max_gap)
    ends = [0, *(place for span in spans for place in span), len(original)]
    if any(a > b for a, b in pairwise(ends)):
        raise InvalidRequest("the spans do not lie in order in the original; give the right file")
    result = Compressed(compressed, original, tuple(spans), 0, 0, "unknown")
    return recover(result, answer, max_gap=max_gap)


def _check(answer: str, max_gap: int) -> None:
    if not isinstance(answer, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidRequest(f"an answer is a text, got {answer!r:.60}")
    if type(max_gap) is not int or max_gap < 0:
        raise InvalidRequest(f"max_gap must be 0 or more words, got {max_gap!r}")


def restored(original: str, kept: Sequence[Span], answer: str, max_gap: int = 10) -> str:
    """Return the answer with the original's wording between words of ``kept``.

    ``kept`` are the ranges of the words of the original that stayed, in order.
    """
    source = [original[start:end] for start, end in kept]
    holds = [_holds(original, a, b, max_gap) for a, b in pairwise(kept)]
    words = [match.span() for match in _WORD.finditer(answer)]
    asked = [answer[start:end] for start, end in words]
    parts: list[str] = []
    at = 0
    for run in _chosen(_runs(asked, source, holds), kept):
        for k in range(run.length - 1):
            left, right = kept[run.place + k], kept[run.place + k + 1]
            space = answer[words[run.start + k][1] : words[run.start + k + 1][0]]
            dropped = original[left[1] : right[0]]
            if dropped.strip() and "\n" not in space:
                parts += (answer[at : words[run.start + k][1]], dropped)
                at = words[run.start + k + 1][0]
    return "".join([*parts, answer[at:]])


def aligned(original: str, compressed: str) -> list[Span]:
    """Return the ranges of the original's words that a compressed text is made of, in order.

    For a text whose spans are lost: its words are found again in order, each run as long as it
    can be where several would do.

    Raises InvalidRequest, with the word, for a text that is not the original with words left out.
    """
    spans = [match.span() for match in _WORD.finditer(original)]
    source = [original[start:end] for start, end in spans]
    words = _WORD.findall(compressed)
    places: dict[str, list[int]] = {}
    for i, word in enumerate(source):
        places.setdefault(word, []).append(i)
    latest = _latest(words, source)
    found: list[int] = []
    for j, word in enumerate(words):
        previous = found[-1] if found else -1
        if previous + 1 < len(source) and source[previous + 1] == word and found:
            found.append(previous + 1)
            continue
        where = places.get(word, [])
        first = bisect_right(where, previous)
        able = [i for i in where[first : first + _AHEAD] if i <= latest[j]]
        found.append(max(able, key=lambda i: (_common(words, j, source, i), -i)))
    return [spans[i] for i in found]


@dataclass(frozen=True, slots=True)
class _Run:
    """Answer words ``start`` on that are the kept words ``place`` on."""

    start: int
    place: int
    length: int


def _places(compressed: Compressed) -> list[Span]:
    """Return the ranges of the original's words that stayed."""
    spans = compressed.spans
    begins = [0, *accumulate(end - start for start, end in spans)]
    text = "".join(compressed.original[start:end] for start, end in spans)

    def at(offset: int) -> int:
        number = min(bisect_right(begins, offset) - 1, len(spans) - 1)
        return spans[number][0] + offset - begins[number]

    words = [match.span() for match in _WORD.finditer(text)]
    return [(at(start), at(end - 1) + 1) for start, end in words]


def _holds(original: str, left: Span, right: Span, max_gap: int) -> bool:
    """Whether two kept words are still of one phrase."""
    gap = original[left[1] : right[0]]
    if not gap.strip():
        return True
    if _BORDER.search(original[left[0] : right[0]] + " "):
        return False
    return sum(1 for word in _WORD.findall(gap) if word.isalnum()) <= max_gap


def _runs(asked: Sequence[str], source: Sequence[str], holds: Sequence[bool]) -> list[_Run]:
    """Return the longest runs of two words or more that both have, each once."""
    pairs: dict[tuple[str, str], list[int]] = {}
    for i, holding in enumerate(holds):
        where = pairs.setdefault((source[i], source[i + 1]), [])
        if holding and len(where) < _PLACES:
            where.append(i)
    found: list[_Run] = []
    ends: dict[int, int] = {}  # diagonal: first answer word that no run on it holds
    for start in range(len(asked) - 1):
        for place in pairs.get((asked[start], asked[start + 1]), ()):
            if ends.get(place - start, 0) > start + 1:
                continue
            length = 2
            while (
                start + length < len(asked)
                and place + length < len(source)
                and holds[place + length - 1]
                and asked[start + length] == source[place + length]
            ):
                length += 1
            ends[place - start] = start + length
            found.append(_Run(start, place, length))
    return found


def _chosen(runs: Sequence[_Run], kept: Sequence[Span]) -> list[_Run]:
    """Return runs that do not overlap in the answer, in order: the longest first."""

    def entry(run: _Run) -> tuple[int, int, int, int, _Run]:
        extent = kept[run.place + run.length - 1][1] - kept[run.place][0]
        return (-run.length, extent, run.start, run.place, run)

    heap: list[tuple[int, int, int, int, _Run]] = []
    for run in runs:
        heappush(heap, entry(run))
    taken: set[int] = set()
    chosen: list[_Run] = []
    while heap:
        run = heappop(heap)[-1]
        free = [k for k in range(run.length) if run.start + k not in taken]
        if len(free) == run.length:
            chosen.append(run)
            taken.update(range(run.start, run.start + run.length))
            continue
        for first, last in _stretches(free):
            if last > first:
                part = _Run(run.start + first, run.place + first, last - first + 1)
                heappush(heap, entry(part))
    return sorted(chosen, key=lambda run: run.start)


def _stretches(numbers: Sequence[int]) -> list[tuple[int, int]]:
    stretches: list[tuple[int, int]] = []
    for number in numbers:
        if stretches and stretches[-1][1] == number - 1:
            stretches[-1] = (stretches[-1][0], number)
        else:
            stretches.append((number, number))
    return stretches


def _latest(words: Sequence[str], source: Sequence[str]) -> list[int]:
    """Return the last place at which each word may stand so that those after it still fit."""
    latest = [0] * len(words)
    i = len(source) - 1
    for j in range(len(words) - 1, -1, -1):
        while i >= 0 and source[i] != words[j]:
            i -= 1
        if i < 0:
            raise InvalidRequest(
                f"the compressed text is not the original with words left out: no place for"
                f" {words[j]!r:.60}, word {j + 1}; give the spans (headrace compress --json)"
            )
        latest[j] = i
        i -= 1
    return latest


def _common(words: Sequence[str], j: int, source: Sequence[str], i: int) -> int:
    length = 0
    while (
        length < _AHEAD
        and j + length < len(words)
        and i + length < len(source)
        and words[j + length] == source[i + length]
    ):
        length += 1
    return length
