"""Ranking with headrace-mini."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean, pstdev

from ...middleware.types import Document
from ..rerankers.bm25 import BM25
from . import weights
from .engine import Engine, Passage, shared


@dataclass(frozen=True)
class MiniReranker:
    """Relevance by the embedded model, mixed with BM25.

    A document's score is the sum of the model's logit and BM25, both brought to mean 0 and
    deviation 1 over the documents, the second times ``lexical``: the model knows the meaning, BM25
    the rare words. Of a long document the best window counts. The tokens are scored in the same
    forward pass, for a ``Mini`` that cuts the documents later.
    """

    folder: Path = weights.DATA
    device: str | None = None
    lexical: float = 0.5
    name: str = "mini"

    def score(self, question: str, documents: Sequence[Document]) -> list[float]:
        """Return a score for each document; see ``Reranker.score``."""
        if not documents:
            return []
        passages = [Passage(document.text, document.title) for document in documents]
        readings = self._engine.read(question, passages)
        own = standard([reading.relevance for reading in readings])
        if not self.lexical:
            return own
        words = standard(BM25().score(question, documents))
        return [a + self.lexical * b for a, b in zip(own, words, strict=True)]

    @cached_property
    def _engine(self) -> Engine:
        return shared(self.folder, self.device)


def standard(values: Sequence[float]) -> list[float]:
    """Return the values with mean 0 and deviation 1; zeros when all are the same.

    >>> standard([1.0, 3.0])
    [-1.0, 1.0]
    """
    middle, spread = fmean(values), pstdev(values)
    return [(value - middle) / spread if spread else 0.0 for value in values]
