"""What a scorer is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Choice:
    """The scorer that reads a text, and why it is another than the one asked for.

    ``compares``: with a question, the text's scores depend on the others of the call. Texts that
    share no budget are then scored one by one, so that a text is compressed the same alone and
    among others.
    """

    name: str
    because: str | None = None
    compares: bool = False


def choice_of(scorer: Scorer, text: str) -> Choice:
    """Return which scorer reads a text.

    A scorer that leaves some texts to another says so by a method ``choice(text) -> Choice``, one
    that compares all of its texts by an attribute ``compares_texts``.
    """
    choose: Callable[[str], Choice] | None = getattr(scorer, "choice", None)
    if choose is not None:
        return choose(text)
    return Choice(scorer.name, compares=bool(getattr(scorer, "compares_texts", False)))
