"""Scorers, rerankers and counters hold models, so a process makes each only once."""

from __future__ import annotations

from functools import lru_cache

from ..compressors import (
    Budget,
    Reranker,
    Scorer,
    TokenCounter,
    make_counter,
    make_reranker,
    make_scorer,
)
from ..compressors.rerankers import Cascade
from ..compressors.scorers.sentences import Sentences, SentenceScorer, make_sentences
from .errors import InvalidRequest

DEFAULT_RATE = 0.5


def budget(
    rate: float | None,
    target_tokens: int | None,
    threshold: float | None,
    quality: float | None = None,
) -> Budget:
    """Return the one budget that was given, half of the tokens when none was."""
    if rate is None and target_tokens is None and threshold is None and quality is None:
        rate = DEFAULT_RATE
    return Budget(rate=rate, target_tokens=target_tokens, threshold=threshold, quality=quality)


def scorer(name: str) -> Scorer:
    """Return ``make_scorer(name)``, the same one each time."""
    return _scorer(_name("compressor", name))


@lru_cache(maxsize=8)
def _scorer(name: str) -> Scorer:
    return make_scorer(name)


def _name(what: str, name: object) -> str:
    if not isinstance(name, str) or not 0 < len(name) < 1000:
        raise InvalidRequest(f"{what} is the name of one, got {name!r:.60}")
    return name


def reranker(method: str) -> Reranker:
    """Return ``make_reranker(method)``, the same one each time."""
    return _reranker(_name("method", method))


@lru_cache(maxsize=8)
def _reranker(method: str) -> Reranker:
    return make_reranker(method)


@lru_cache(maxsize=8)
def sentences(method: str) -> SentenceScorer:
    """Return ``make_sentences(method)``, the same one each time; "auto" shares the reranker's."""
    if method != "auto":
        return make_sentences(method)
    shared = reranker("auto")
    return Sentences(shared.second if isinstance(shared, Cascade) else shared)


def counter(tokenizer: str | None) -> TokenCounter:
    """Return ``make_counter(tokenizer)``, the same one each time."""
    return _counter(None if tokenizer is None else _name("tokenizer", tokenizer))


@lru_cache(maxsize=8)
def _counter(tokenizer: str | None) -> TokenCounter:
    return make_counter(tokenizer)
