"""What is wrong with a part's text: it says what another part says, or refuses to say anything."""

from __future__ import annotations

import re
from collections.abc import Mapping

FLAGGED = 0.3  # share of 5-grams in common from which on two parts are reported
REPEATED = 0.5  # and from which on the later one is written again
_SIZE = 5
_LEAST = 8  # 5-grams; less text says nothing
_WORD = re.compile(r"[\u2e80-\U0003ffff]|[^\W\u2e80-\U0003ffff]+")
_REFUSAL = re.compile(
    r"\W*(?:(?:i['’]?m|i am) sorry|sorry\b|i (?:can['’]?t|cannot|won['’]?t|am unable|am not able"
    r"|can not)\b|as an ai\b|unfortunately,? i\b|对不起|抱歉|我无法)",
    re.I,
)
_REFUSAL_WORDS = 40


def grams(text: str) -> set[tuple[str, ...]]:
    """Return the 5-grams of the words; a Chinese, Japanese or Korean character is a word."""
    words = _WORD.findall(text.casefold())
    return {tuple(words[i : i + _SIZE]) for i in range(len(words) - _SIZE + 1)}


def most_alike(text: str, others: Mapping[int, str]) -> tuple[int, float]:
    """Return which other text has most of this one's 5-grams, and their share; (0, 0.0) if none.

    >>> most_alike("a b c d e f g h i j k l m n", {1: "x", 2: "a b c d e f g h i"})
    (2, 0.5)
    """
    own = grams(text)
    if len(own) < _LEAST:
        return 0, 0.0
    shares = {id: len(own & grams(other)) / len(own) for id, other in others.items()}
    id = max(shares, key=lambda id: shares[id], default=0)
    return (id, shares[id]) if id and shares[id] else (0, 0.0)


def is_refusal(text: str) -> bool:
    """Whether a text does nothing but refuse."""
    return bool(_REFUSAL.match(text)) and len(_WORD.findall(text)) <= _REFUSAL_WORDS
