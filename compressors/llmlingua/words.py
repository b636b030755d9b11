"""Tokens to words and their probabilities, the way LLMLingua-2's published code does it.

Kept bug for bug (llmlingua 0.2.2), since published numbers depend on it; headrace's own scorers
and selection share none of it.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Family = Literal["bert", "xlm-roberta"]


@dataclass(frozen=True, slots=True)
class Forcing:
    """What always stays: tokens, and with ``digits`` every token that holds a digit.

    ``stand_ins`` maps a string of several tokens to the special token that stands for it.
    """

    tokens: Sequence[str] = ()
    digits: bool = False
    stand_ins: Mapping[str, str] = field(default_factory=dict[str, str])

    def holds(self, token: str) -> bool:
        """Whether a token is forced itself."""
        return token in self.tokens or token in self.stand_ins.values()

    def original(self, token: str) -> str:
        """Return a token with what its stand-ins stand for."""
        for spelled, stand_in in self.stand_ins.items():
            token = token.replace(stand_in, spelled)
        return token


@dataclass(slots=True)
class Word:
    """A word with its tokens' probabilities, forced ones at 1, and without forcing."""

    text: str
    probabilities: list[Any]
    unforced: list[Any]


def merged(
    tokens: Sequence[str], probabilities: Sequence[Any], family: Family, forcing: Forcing
) -> list[Word]:
    """Return the words of a chunk; special tokens are left out by the caller.

    A piece inside a word that is a forced token begins a word of its own. A first token that
    continues a word (the reference fails on it) begins one.
    """
    words: list[Word] = []
    unforced: Any = None
    for token, probability in zip(tokens, probabilities, strict=True):
        bare = token.lstrip("#" if family == "bert" else "▁")
        if not words or _begins(token, bare, family, forcing):
            unforced = probability
            value = 1.0 if forcing.holds(bare) else probability
            text = forcing.original(token)
            value = 1.0 if _is_digit(text, forcing) else value
            words.append(Word(text, [value], [unforced]))
        else:
            word = words[-1]
            word.text += bare
            word.probabilities.append(1.0 if _is_digit(token, forcing) else probability)
            word.unforced.append(unforced)  # not this token's: the reference's context filter
    return words


def reduced(probabilities: Sequence[Any], how: str) -> Any:
    """Return a word's probability from its tokens': their "mean" or the "first"."""
    return probabilities[0] if how == "first" else sum(probabilities) / len(probabilities)


def _begins(token: str, bare: str, family: Family, forcing: Forcing) -> bool:
    if family == "bert":
        return forcing.holds(bare) or not token.startswith("##")
    return token in string.punctuation or forcing.holds(token) or token.startswith("▁")


def _is_digit(token: str, forcing: Forcing) -> bool:
    return forcing.digits and any(char.isdecimal() for char in token)
