"""What documents come to: which of them survived, which sentences, which characters, and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from ..middleware.types import Document
from .render import Span
from .rerankers.base import full_text

Order = Literal["best first", "both ends", "original"]
_BREAK = "\n\n"


@dataclass(frozen=True, slots=True)
class ScoredSentence:
    """A sentence at ``text[start:end]`` of the original document.

    ``score`` is in [0, 1], 1 matters most; ``is_kept`` says whether anything of it is left.
    """

    start: int
    end: int
    score: float
    is_kept: bool


@dataclass(frozen=True, slots=True)
class KeptDocument:
    """A document that survived.

    ``document`` has the new text, its ``score`` for the question, and the title, id and metadata
    of ``original``. Its text is ``"".join(original.text[a:b] for a, b in spans)``. ``index`` is its
    place among the documents given. ``tokens_in`` and ``tokens_out`` count the texts alone.
    ``sentences`` is empty where no sentences were scored. ``reason`` says why the text could not be
    cut as asked.
    """

    document: Document
    original: Document
    index: int
    spans: tuple[Span, ...]
    sentences: tuple[ScoredSentence, ...]
    tokens_in: int
    tokens_out: int
    reason: str | None = None

    @property
    def rate(self) -> float:
        """Tokens out per token in; 1.0 for a text without tokens."""
        return self.tokens_out / self.tokens_in if self.tokens_in else 1.0


@dataclass(frozen=True, slots=True)
class DroppedDocument:
    """A document that nothing is left of, as it was given; its score for the question; and why."""

    original: Document
    index: int
    score: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class Context:
    """Documents within one budget.

    ``kept`` is in the order asked for, ``dropped`` in the order given. ``tokens_in`` and
    ``tokens_out`` count the documents as ``text`` writes them, titles and all. ``reason`` says
    why the budget is not held, None when it is.
    """

    kept: tuple[KeptDocument, ...]
    dropped: tuple[DroppedDocument, ...]
    tokens_in: int
    tokens_out: int
    compressor: str
    reranker: str
    seconds: float = 0.0
    reason: str | None = None

    @property
    def documents(self) -> tuple[Document, ...]:
        """The documents to put into a prompt."""
        return tuple(kept.document for kept in self.kept)

    @property
    def text(self) -> str:
        """The documents as one text: titles on a line of their own, an empty line between."""
        return written(self.documents)

    @property
    def rate(self) -> float:
        """Tokens out per token in; 1.0 for no tokens."""
        return self.tokens_out / self.tokens_in if self.tokens_in else 1.0


def written(documents: Iterable[Document]) -> str:
    """Return documents as one text, as their tokens are counted."""
    return _BREAK.join(full_text(document) for document in documents)


def ordered(ranked: Sequence[int], order: Order) -> list[int]:
    """Return indices of documents, given best first, in an order for the prompt.

    "both ends" puts the best at the start and the end, where models read best (Liu et al. 2024,
    "Lost in the middle"; LongLLMLingua, section 4.3): every other one forwards, the rest backwards.

    >>> ordered([7, 3, 5, 1], "both ends")
    [7, 5, 1, 3]
    """
    if order == "both ends":
        return [*ranked[::2], *ranked[1::2][::-1]]
    return sorted(ranked) if order == "original" else [*ranked]


def through(outer: Sequence[Span], inner: Sequence[Span]) -> tuple[Span, ...]:
    """Return the spans in the original of spans ``inner`` in the text that ``outer`` left.

    >>> through([(0, 3), (10, 20)], [(1, 5)])
    ((1, 3), (10, 12))
    """
    found: list[Span] = []
    place, at = 0, 0  # the outer span we are in, and where it starts in the text it left
    for start, end in inner:
        while start < end:
            a, b = outer[place]
            if at + b - a <= start:
                place, at = place + 1, at + b - a
                continue
            stop = min(end, at + b - a)
            span = (a + start - at, a + stop - at)
            if found and found[-1][1] == span[0]:
                span = (found.pop()[0], span[1])
            found.append(span)
            start = stop
    return tuple(found)
