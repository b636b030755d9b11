"""What a reranker is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...middleware.types import Document


class Reranker(Protocol):
    """Says how well documents answer a question. Safe to use from several threads."""

    @property
    def name(self) -> str:
        """Name for reports."""
        ...

    def score(self, question: str, documents: Sequence[Document]) -> list[float]:
        """Return a score for each document, higher is better; the scale is the reranker's own."""
        ...


def full_text(document: Document) -> str:
    """Return title and text, as a reranker reads them."""
    return f"{document.title}\n{document.text}" if document.title else document.text
