"""Long texts in overlapping windows, many windows in few batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


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


def owners(window: Window, length: int, overlap: int) -> tuple[int, int]:
    """Return the tokens that this window decides: to the middle of each overlap."""
    first = window.start + (overlap // 2 if window.start else 0)
    last = window.end - (overlap - overlap // 2 if window.end < length else 0)
    return first, last


def batches(jobs: Sequence[Window], tokens: int) -> Iterator[list[Window]]:
    """Yield windows of like length together, at most ``tokens`` with padding (or one window)."""
    batch: list[Window] = []
    width = 0
    for job in sorted(jobs, key=lambda job: (job.end - job.start, job.text, job.start)):
        width = job.end - job.start + 2
        if batch and width * (len(batch) + 1) > tokens:
            yield batch
            batch = []
        batch.append(job)
    if batch:
        yield batch
