"""Ranking with headrace-mini."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ...middleware.types import Document
from ..rerankers.bm25 import BM25
from . import weights
from .coverage import reason_against
from .embedder import Embedder, embedder
from .engine import Engine, Passage, shared
from .runners import Precision


@dataclass(frozen=True)
class MiniReranker:
    """Relevance by the embedded model, mixed with its sentence embeddings and with BM25.

    A document's score, in (0, 1), is the logistic function of ``model`` times the trained model's
    logit, ``embeddings`` times the cosine of the embeddings, ``lexical`` times BM25 as a share of
    what a document could reach at most, and ``bias``: the model has read question and document
    together, the embeddings know the meaning in every field, BM25 the rare words. The values were
    chosen on HotpotQA's dev questions, where about 0.5 is as likely to answer as not. A weight of
    0 leaves a part out, and saves its time. Of a long document the best window counts. Where the
    model cannot read most of the documents (``reason_against``), the other two parts decide. The
    tokens are scored in the model's forward pass, for a ``Mini`` that cuts the documents later.
    """

    folder: Path = weights.DATA
    device: str | None = None
    precision: Precision = "float32"
    model: float = 0.75
    embeddings: float = 5.0
    lexical: float = 8.0
    bias: float = -5.4
    name: str = "mini"

    def score(self, question: str, documents: Sequence[Document]) -> list[float]:
        """Return a score for each document; see ``Reranker.score``."""
        if not documents:
            return []
        passages = [Passage(document.text, document.title) for document in documents]
        total = [self.bias] * len(documents)
        readable = sum(not reason_against(document.text) for document in documents)
        if self.model and 2 * readable >= len(documents):
            logits = [reading.relevance for reading in self._engine.read(question, passages)]
            total = _added(total, self.model, logits)
        if self.embeddings:
            cosines = self._embedder.cosines(question, passages)
            total = _added(total, self.embeddings, cosines)
        if self.lexical:
            total = _added(total, self.lexical, BM25().share(question, documents))
        return [1.0 / (1.0 + math.exp(-max(value, -50.0))) for value in total]

    @cached_property
    def _engine(self) -> Engine:
        return shared(self.folder, self.device, self.precision)

    @cached_property
    def _embedder(self) -> Embedder:
        return embedder(self._engine)


def _added(total: Sequence[float], weight: float, values: Sequence[float]) -> list[float]:
    return [old + weight * new for old, new in zip(total, values, strict=True)]
