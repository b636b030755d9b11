"""Scorers: how much each unit of a text matters."""

from __future__ import annotations

from ...middleware.errors import ModelUnavailable
from ..names import is_bare_word
from .base import Scorer
from .classifier import TokenClassifier
from .lexical import Lexical

__all__ = ["Lexical", "Scorer", "TokenClassifier", "make_scorer"]


def make_scorer(name: str = "auto") -> Scorer:
    """Return a scorer by name.

    "auto" and "lexical" need no model; "mini" is the embedded model (docs/headrace-mini.md), early
    weights yet, which know a question. Anything else is a token classifier's name or folder, found
    by ``headrace.middleware.models.resolve`` and loaded on first use.

    Raises InvalidRequest when the model has no token-classification head with two labels, and
    ModelUnavailable when it is not found.

    >>> make_scorer().name
    'lexical'
    """
    if name in ("auto", "lexical"):
        return Lexical()
    if name == "mini":
        from ..mini import Mini  # imports this package for the texts that it leaves to Lexical

        return Mini()
    try:
        return TokenClassifier(name)
    except ModelUnavailable as error:
        if not is_bare_word(name):
            raise
        raise ModelUnavailable(
            f"no compressor {name!r}: choose auto, lexical, mini, or a model's name or folder;"
            f" {error}"
        ) from error
