"""Rerankers: which documents answer the question best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...middleware.errors import InvalidRequest, ModelUnavailable
from ...middleware.models import resolve
from ...middleware.types import Document
from ..names import RERANKERS, is_bare_word
from .base import Reranker
from .biencoder import BiEncoder
from .bm25 import BM25
from .cascade import Cascade
from .crossencoder import CrossEncoder, num_labels

__all__ = [
    "BM25",
    "BiEncoder",
    "Cascade",
    "CrossEncoder",
    "Reranker",
    "check_top_k",
    "make_reranker",
    "rerank",
]


def make_reranker(method: str = "auto") -> Reranker:
    """Return a reranker by name.

    "bm25"; "mini" for the embedded model (docs/headrace-mini.md); "bi-encoder" (alias "minilm") for
    all-MiniLM-L6-v2, from its wheel; the name or folder of a sentence-transformers model,
    bi-encoder or cross-encoder (told apart by the architecture in its config.json); "perplexity"
    or "perplexity:NAME" for how likely a causal model (SmolLM2) finds the question after the
    document; "auto" for "mini" (of more than 200 documents BM25 chooses the 100 that it reads, see
    ``Cascade``).

    Raises ModelUnavailable when the model is not found, InvalidRequest when it is none for
    sentences.

    >>> make_reranker("bm25").name
    'bm25'
    """
    if method == "bm25":
        return BM25()
    if method in ("auto", "mini"):
        from ..mini import MiniReranker

        return Cascade(MiniReranker()) if method == "auto" else MiniReranker()
    if method == "perplexity" or method.startswith("perplexity:"):
        from .perplexity import QuestionPerplexityReranker

        return QuestionPerplexityReranker(method.partition(":")[2] or "smollm2")
    try:
        name = "minilm" if method == "bi-encoder" else method
        is_cross = num_labels(resolve(name, kind="encoder")) > 0
        return CrossEncoder(name) if is_cross else BiEncoder(name)
    except ModelUnavailable as error:
        if not is_bare_word(method):
            raise
        raise ModelUnavailable(
            f"no method {method!r}: choose {', '.join(RERANKERS)},"
            f" or a model's name or folder; {error}"
        ) from error


def check_top_k(top_k: int | None) -> None:
    """Raise InvalidRequest for what is no number of documents."""
    if top_k is not None and (type(top_k) is not int or top_k < 1):
        raise InvalidRequest(f"top_k must be a whole number from 1 on, got {top_k!r:.60}")


def rerank(
    question: str,
    documents: Sequence[Document],
    *,
    top_k: int | None = None,
    reranker: Reranker,
) -> list[Document]:
    """Return the documents best first, with their ``score`` set; equal scores keep their order.

    ``top_k`` keeps the best so many, all when it is None. Documents without any text are ranked
    like the others.

    Raises InvalidRequest for an empty question or a ``top_k`` below 1.
    """
    if not isinstance(question, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidRequest(f"a question is a text, got {question!r:.60}")
    if not question.strip():
        raise InvalidRequest("reranking needs a question, got an empty one; say what to look for")
    check_top_k(top_k)
    if not documents:
        return []
    scores = reranker.score(question, documents)
    ranked = [replace(d, score=float(s)) for d, s in zip(documents, scores, strict=True)]
    ranked.sort(key=lambda document: -(document.score or 0.0))
    return ranked[:top_k]
