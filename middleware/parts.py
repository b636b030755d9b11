"""Scorers, rerankers and counters hold models, so a process makes each only once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
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
from ..compressors.names import READERS, RERANKERS, SCORERS, is_bare_word
from ..compressors.openai_tokens import encoding_of
from ..compressors.rerankers import Cascade
from ..compressors.scorers.sentences import Sentences, SentenceScorer, make_sentences
from .errors import InvalidRequest
from .models import Kind, locate
from .shown import nearest

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


def check_compressor(name: object) -> None:
    """Say at once that a compressor's name is none. Loads nothing and asks no network.

    A word must be a choice or a model on this machine; a name with an organisation (org/name) may
    be on the hub, where it is looked for when it is first used. Raises InvalidRequest.
    """
    kind, _, own = _name("compressor", name).partition(":")
    if kind == "sentences" and own:
        _check("compressor", own, ("lexical", *RERANKERS))
    elif own and kind in READERS:
        _check("compressor", own, ("smollm2",))
    elif own or kind not in SCORERS:
        _check("compressor", _name("compressor", name), SCORERS)


def check_method(name: object) -> None:
    """Say at once that a reranker's name is none, as ``check_compressor`` does."""
    kind, _, own = _name("method", name).partition(":")
    is_reader = own and kind == "perplexity"
    _check("method", own if is_reader else _name("method", name), RERANKERS)


def check_tokenizer(name: object) -> None:
    """Say at once that a tokenizer's name is none, as ``check_compressor`` does."""
    if name is not None and encoding_of(_name("tokenizer", name)) is None:
        _check("tokenizer", _name("tokenizer", name), ("None", "an OpenAI model or encoding"))


def _check(what: str, name: str, choices: Sequence[str]) -> None:
    is_known = name in choices or not is_bare_word(name)
    kind: Kind | None = "tokenizer" if what == "tokenizer" else None
    if not is_known and locate(name, kind=kind) is None:
        raise InvalidRequest(
            f"no {what} {name!r:.60}: choose {', '.join(choices)}, or a model on this machine, by"
            " name or folder, or on the hub, as org/name"
        )


def one_of(what: str, value: object, choices: Sequence[object]) -> None:
    """Raise InvalidRequest for a value that is none of the choices."""
    if value not in choices or type(value) not in {type(choice) for choice in choices}:
        said = " or ".join(f'"{one}"' if isinstance(one, str) else repr(one) for one in choices)
        raise InvalidRequest(f"{what} is {said}, got {value!r:.60}")


def no_others(others: Mapping[str, object], step: Callable[..., object]) -> None:
    """Raise InvalidRequest for options that a step was given and does not have."""
    for name in others:
        kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        given = inspect.signature(step).parameters.items()
        known = [own for own, one in given if one.kind in kinds and own != "self"]
        raise InvalidRequest(f"no option {name!r:.40}; {nearest(name, known)}")


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
