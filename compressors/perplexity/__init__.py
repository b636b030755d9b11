"""Importance and relevance from a causal language model: how surprised it is.

Selective-Context (Li et al. 2023), LLMLingua (Jiang et al. 2023) and LongLLMLingua (Jiang et al.
2024), with a model in this process or behind an engine that returns prompt log-probabilities.
"""

from __future__ import annotations

from .question import QuestionPerplexity
from .remote import RemotePerplexity
from .scorer import Perplexity

__all__ = ["Perplexity", "QuestionPerplexity", "RemotePerplexity", "make_perplexity"]


def make_perplexity(method: str, model: str = "smollm2") -> Perplexity | QuestionPerplexity:
    """Return the scorer of a paper: "llmlingua", "selective-context" or "longllmlingua".

    Anything else is LLMLingua's. Raises ModelUnavailable when the model is not found.
    """
    if method == "longllmlingua":
        return QuestionPerplexity(model)
    return Perplexity(model, "selective-context" if method == "selective-context" else "llmlingua")
