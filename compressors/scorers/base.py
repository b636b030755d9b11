"""What a scorer is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..units import Units


class Scorer(Protocol):
    """Says for each unit how much it matters. Safe to use from several threads."""

    @property
    def name(self) -> str:
        """Name for reports."""
        ...

    def score(self, texts: Sequence[Units], question: str | None = None) -> list[list[float]]:
        """Return one list a text with a score in [0, 1] for each unit, 1 matters most.

        Units that are not words (``Unit.role``) get a score too; it is not used. A scorer that
        knows no questions ignores the question and says so in its docstring.
        """
        ...


def compares_texts(scorer: Scorer) -> bool:
    """Return whether with a question a text's scores depend on the others of the call.

    A scorer says so by an attribute ``compares_texts``; texts that share no budget are then
    scored one by one, so that a text is compressed the same alone and among others.
    """
    return bool(getattr(scorer, "compares_texts", False))
