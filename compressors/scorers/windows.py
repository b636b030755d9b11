"""Long texts in windows, many windows in few batches."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

W = TypeVar("W", bound="Window")


@dataclass(frozen=True, slots=True)
class Window:
    """Tokens ``start`` to ``end`` of text number ``text``."""

    text: int
    start: int
    end: int


def windows(length: int, room: int, overlap: int) -> list[tuple[int, int]]:
    """Return windows of at most ``room`` tokens that cover ``length``, overlapping.

    >>> windows(10, 6, 2)
    [(0, 6), (4, 10)]
    """
    if not length:
        return []
    step = max(room - overlap, 1)
    starts = range(0, max(length - overlap, 1), step)
    return [(start, min(start + room, length)) for start in starts]


def even_windows(length: int, room: int, overlap: int) -> list[tuple[int, int]]:
    """Return as many windows as ``windows`` does, about equally long.

    A model that scores words by their neighbours keeps more of a short text than of a long one;
    a short rest as the last window would stay whole (users' issue 73).

    >>> windows(12, 8, 2), even_windows(12, 8, 2)
    ([(0, 8), (6, 12)], [(0, 7), (5, 12)])
    """
    count = len(windows(length, room, overlap))
    if count < 2:
        return windows(length, room, overlap)
    return windows(length, -(-(length + (count - 1) * overlap) // count), overlap)


def owners(window: Window, length: int, overlap: int) -> tuple[int, int]:
    """Return the tokens that this window decides: to the middle of each overlap."""
    first = window.start + (overlap // 2 if window.start else 0)
    last = window.end - (overlap - overlap // 2 if window.end < length else 0)
    return first, last


@dataclass(frozen=True, slots=True)
class Stretch(Window):
    """A window that decides about its tokens from ``first`` to ``last``."""

    first: int
    last: int


def stretches(
    length: int, room: int, overlap: int, stops: Sequence[int] = (), text: int = 0
) -> list[Stretch]:
    """Return windows of at most ``room`` tokens that cover ``length``, cut between sentences.

    ``stops`` are the token indices at which a sentence begins, in order. A window ends at the
    last of them in its last quarter, and the next begins there: such texts are what LLMLingua-2
    was trained on (section 4.1). Where no sentence begins, windows overlap by ``overlap``
    tokens and each decides to the middle of the overlap.

    >>> [(s.start, s.end) for s in stretches(12, 8, 2, [3, 7])]
    [(0, 7), (7, 12)]
    >>> [(s.start, s.end, s.first, s.last) for s in stretches(12, 8, 2)]
    [(0, 8, 0, 7), (6, 12, 7, 12)]
    """
    found: list[Stretch] = []
    start = first = 0
    overlap = min(overlap, room - 1)
    while length - start > room:
        edge = start + room
        stop = bisect_right(stops, edge) - 1
        if stop >= 0 and stops[stop] > max(edge - room // 4, first):
            edge = last = following = stops[stop]
        else:
            last, following = edge - (overlap - overlap // 2), edge - overlap
        found.append(Stretch(text, start, edge, first, last))
        start, first = following, last
    if length:
        found.append(Stretch(text, start, length, first, length))
    return found


def batches(jobs: Sequence[W], tokens: int) -> Iterator[list[W]]:
    """Yield windows of like length together, at most ``tokens`` with padding (or one window)."""
    batch: list[W] = []
    width = 0
    for job in sorted(jobs, key=lambda job: (job.end - job.start, job.text, job.start)):
        width = job.end - job.start + 2
        if batch and width * (len(batch) + 1) > tokens:
            yield batch
            batch = []
        batch.append(job)
    if batch:
        yield batch
