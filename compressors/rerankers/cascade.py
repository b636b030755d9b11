"""Ranking many documents: a fast reranker chooses which ones a slow one reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...middleware.types import Document
from .base import Reranker, full_text
from .bm25 import BM25

_STEP = 1e-6


@dataclass(frozen=True)
class Cascade:
    """The second reranker's scores for the ``depth`` documents that the first finds best.

    All others keep the first's order, below the worst of those. Up to ``most`` documents the
    second scores all of them, and so it does where the first knows nothing of any (BM25: no word
    of the question is in a document).
    """

    second: Reranker
    first: Reranker = field(default_factory=BM25)
    depth: int = 100
    most: int = 200

    @property
    def name(self) -> str:
        """Both names, the first one's first."""
        return f"{self.first.name} > {self.second.name}"

    def score(self, question: str, documents: Sequence[Document]) -> list[float]:
        """Return a score for each document; see ``Reranker.score``."""
        if len(documents) <= self.most:
            return self.second.score(question, documents)
        rough = self.first.score(question, documents)
        if max(rough) <= 0:
            return self.second.score(question, documents)
        empty = [not full_text(document).strip() for document in documents]
        order = sorted(range(len(documents)), key=lambda i: (-rough[i], empty[i]))
        best, rest = order[: self.depth], order[self.depth :]
        fine = self.second.score(question, [documents[i] for i in best])
        scores = [0.0] * len(documents)
        for i, score in zip(best, fine, strict=True):
            scores[i] = score
        for place, i in enumerate(rest, 1):
            scores[i] = min(fine) - place * _STEP
        return scores
