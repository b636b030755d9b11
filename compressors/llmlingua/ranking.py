"""The reference's twelve ranking methods, by what there is on this machine."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from typing import Any

from ...middleware.errors import InvalidRequest
from ...middleware.models import locate
from ...middleware.types import Document
from ..rerankers import BM25, Reranker, make_reranker
from ..scorers.base import Scorer
from ..structure import split

MODELS = {
    "sentbert": "sentence-transformers/multi-qa-mpnet-base-dot-v1",
    "bge": "BAAI/bge-large-en-v1.5",
    "bge_reranker": "BAAI/bge-reranker-large",
    "bge_llmembedder": "BAAI/llm-embedder",
    "jinza": "jinaai/jina-embeddings-v2-base-en",
}
"""The models that some methods stand for; they are used when they are on this machine."""
REMOTE = ("openai", "voyageai", "cohere")
METHODS = ("bm25", "gzip", *MODELS, *REMOTE, "llmlingua", "longllmlingua")

Ranked = list[tuple[int, float]]


def ranked(
    contexts: Sequence[str], question: str, method: str, scorer: Scorer
) -> tuple[Ranked, str | None]:
    """Return (index, score) of the contexts, best first, and what to tell about the method.

    "llmlingua" puts first what the scorer finds densest (the reference: the highest perplexity).
    Nothing is downloaded and no text leaves the machine: a method whose model is not here is
    stood in for by ``make_reranker("auto")``, and the note says so.

    Raises InvalidRequest for an unknown method, or one that needs a question without one.
    """
    if method not in METHODS:
        raise InvalidRequest(f"rank_method must be one of {', '.join(METHODS)}, got {method!r:.80}")
    note = None
    if method == "llmlingua":
        scores = density(contexts, scorer)
    elif not question.strip():
        raise InvalidRequest(f"rank_method={method!r} needs a question; give one, or 'llmlingua'")
    elif method == "gzip":
        scores = [-_distance(context, question) for context in contexts]
    else:
        reranker, note = _reranker(method, scorer)
        scores = reranker.score(question, [Document(context) for context in contexts])
    order = sorted(range(len(contexts)), key=lambda i: -scores[i])
    return [(i, float(scores[i])) for i in order], note


def density(contexts: Sequence[str], scorer: Scorer) -> list[float]:
    """Return the mean score of each context's words, 0 without words."""
    found: list[float] = []
    units = [split(context) for context in contexts]
    for row, text in zip(scorer.score(units), units, strict=True):
        words = [row[i] for i in text.words]
        found.append(sum(words) / len(words) if words else 0.0)
    return found


def _reranker(method: str, scorer: Any) -> tuple[Reranker, str | None]:
    if method == "bm25":
        return BM25(), None
    if method == "longllmlingua" and type(scorer).__name__ in ("Perplexity", "QuestionPerplexity"):
        from ..rerankers.perplexity import QuestionPerplexityReranker

        return QuestionPerplexityReranker(scorer.model, device=scorer.device), None
    model = MODELS.get(method)
    if model and locate(model, kind="encoder"):
        return make_reranker(model), None
    reranker = make_reranker("auto")
    reason = {
        True: "no text leaves this machine",
        False: f"{model} is not on this machine" if model else "there is no causal model here",
    }[method in REMOTE]
    return reranker, f"rank_method={method!r}: {reason}; ranked by {reranker.name}"


def _distance(first: str, second: str) -> float:
    """Return the normalised compression distance (Li et al. 2004) with gzip, 0 for the same."""
    one, two, both = (
        len(gzip.compress(text.encode("utf-8", "surrogatepass"), mtime=0))
        for text in (first, second, f"{first} {second}")
    )
    return (both - min(one, two)) / max(one, two)
