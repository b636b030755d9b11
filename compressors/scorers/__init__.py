"""Scorers: how much each unit of a text matters."""

from __future__ import annotations

from ...middleware.errors import ModelUnavailable
from ..names import READERS, SCORERS, is_bare_word
from .base import Scorer
from .classifier import TokenClassifier
from .lexical import Lexical

__all__ = ["Lexical", "Scorer", "TokenClassifier", "make_scorer"]


def make_scorer(name: str = "auto") -> Scorer:
    """Return a scorer by name.

    "auto" and "mini" are the embedded model (docs/headrace-mini.md), which knows a question and
    leaves what it cannot read to "lexical", which needs no model; "sentences" takes whole sentences
    (by all-MiniLM-L6-v2 where it is here, else BM25), "sentences:mini" or "sentences:NAME" by the
    embedded model or any reranker (see ``make_sentences``). "llmlingua" (or "perplexity"),
    "selective-context" and "longllmlingua" ask a causal language model, SmolLM2 or
    "llmlingua:NAME". Anything else is a token classifier's name or folder, found by
    ``headrace.middleware.models.resolve`` and loaded on first use.

    Raises InvalidRequest when the model has no token-classification head with two labels, and
    ModelUnavailable when it is not found.

    >>> make_scorer().name
    'mini'
    """
    if name == "lexical":
        return Lexical()
    if name in ("auto", "mini"):
        from ..mini import Mini  # imports this package for the texts that it leaves to Lexical

        return Mini()
    if name == "sentences" or name.startswith("sentences:"):
        from .sentences import make_sentences

        return make_sentences(name.removeprefix("sentences").removeprefix(":") or "auto")
    method, _, model = name.partition(":")
    if method in READERS:
        from ..perplexity import make_perplexity

        return make_perplexity(method, model or "smollm2")
    try:
        return TokenClassifier(name)
    except ModelUnavailable as error:
        if not is_bare_word(name):
            raise
        raise ModelUnavailable(
            f"no compressor {name!r}: choose {', '.join(SCORERS)},"
            f" or a model's name or folder; {error}"
        ) from error
