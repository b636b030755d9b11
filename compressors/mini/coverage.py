"""Which texts the embedded model was not made for: languages but English, code, logs, tables."""

from __future__ import annotations

import re
from functools import lru_cache

from ..scorers.vocabulary import STOP_WORDS, language

_LETTERS = re.compile(r"[^\W\d_]+")
_CODE = re.compile(r"[{};=<>|\\/_\[\]#$&*+~^`]|\d")
_SAMPLE = 20_000


def reason_against(text: str) -> str | None:
    """Return why the embedded model should not score a text, None when it may.

    >>> reason_against("The committee met on Monday to talk about the new bridge.")
    >>> reason_against("Der Ausschuss traf sich am Montag, um über die Brücke zu reden.")
    'the text is not in English (de)'
    >>> reason_against("東京は日本の首都です。")
    'most letters are not Latin'
    """
    return _reason(text[:_SAMPLE])


@lru_cache(maxsize=256)
def _reason(sample: str) -> str | None:
    """Return the reason; several stages ask about the same text."""
    words = _LETTERS.findall(sample)
    letters = sum(map(len, words))
    if not letters:
        return None
    if sum(len(word) for word in words if word.isascii()) < 0.7 * letters and letters > 3:
        latin = sum(c < "\u0250" for word in words for c in word)
        if latin < 0.7 * letters:
            return "most letters are not Latin"
    dense = len(sample) - sample.count(" ")
    signs = len(_CODE.findall(sample))
    if len(words) >= 20 and signs > 0.12 * dense:
        return f"{signs / dense:.0%} of the text are digits and signs, as in code, logs and tables"
    lower = [word.lower() for word in words]
    if len(words) >= 8 and (name := language(lower)) != "en":
        english = sum(word in STOP_WORDS["en"] for word in lower)
        if sum(word in STOP_WORDS[name] for word in lower) >= max(2, 2 * english):
            return f"the text is not in English ({name})"
    return None
