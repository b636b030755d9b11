"""The little that a result may say in words that are not the original's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .render import Span


@dataclass(frozen=True, slots=True)
class Note:
    """A short text that stands in for what was left out at offset ``at`` of the original.

    It is put after the last kept character before ``at``. Notes count as tokens.
    """

    at: int
    text: str


def woven(original: str, spans: Iterable[Span], notes: Sequence[Note] = ()) -> str:
    r"""Return the spans of a text with the notes between them, each at its place.

    >>> woven("a\nb\nc\nd", [(0, 2), (5, 7)], [Note(2, "[2 more lines]")])
    'a\n[2 more lines]\nd'
    """
    parts: list[str] = []
    rest = list(notes)
    for start, end in spans:
        while rest and rest[0].at <= start:
            parts.append(rest.pop(0).text)
        while rest and rest[0].at < end:
            parts += (original[start : rest[0].at], rest[0].text)
            start = rest.pop(0).at
        parts.append(original[start:end])
    return "".join([*parts, *(note.text for note in rest)])
