"""Ranking by how likely a document makes the question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...middleware.types import Document
from ..perplexity.options import Source
from ..perplexity.relevance import relevances
from .base import full_text


@dataclass(frozen=True, kw_only=True)
class QuestionPerplexityReranker(Source):
    """Mean ln p of the question given the document (LongLLMLingua, Jiang et al. 2024, section 4.1).

    The question is followed by "We can get the answer to this question in the given documents.",
    which holds a model to the document. Scores are nats a token, at most 0. The probabilities
    depend on the model: a small one ranks worse than an encoder that was trained for it, but
    any causal model will do. The options are those of ``Source``.
    """

    @property
    def name(self) -> str:
        """Method and model."""
        return f"perplexity:{self.model}"

    def score(self, question: str, documents: Sequence[Document]) -> list[float]:
        """Return a score for each document; see ``Reranker.score``."""
        if not documents:
            return []
        model = self._loaded()
        texts = [full_text(document) for document in documents]
        return relevances(model, question, texts, self._room(model), self.batch_tokens)
