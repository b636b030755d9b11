"""What compressing a text gives."""

from __future__ import annotations

from dataclasses import dataclass

from .notes import Note
from .render import Span


@dataclass(frozen=True, slots=True)
class Compressed:
    """A text with fewer tokens, and where its parts come from.

    ``text`` is exactly ``notes.woven(original, spans, notes)``: without notes, which only folded
    logs have, ``"".join(original[a:b] for a, b in spans)``. ``tokens_in`` and ``tokens_out`` are
    counted with the compressor's counter; the tags of segments are in ``original``, and not in
    ``tokens_in``. ``seconds`` is this text's share of the wall time. ``reason`` says why the text
    was not compressed as asked, None when it was. ``scores`` holds (start, end, score) of each
    scored unit of the original. ``compressor`` is the scorer that read the text, and ``because``
    says why it is another than the one asked for (a language that one does not know), None when
    it is not.
    """

    text: str
    original: str
    spans: tuple[Span, ...]
    tokens_in: int
    tokens_out: int
    compressor: str
    seconds: float = 0.0
    reason: str | None = None
    scores: tuple[tuple[int, int, float], ...] = ()
    notes: tuple[Note, ...] = ()
    because: str | None = None

    @property
    def rate(self) -> float:
        """Tokens out per token in; 1.0 for a text without tokens."""
        return self.tokens_out / self.tokens_in if self.tokens_in else 1.0
