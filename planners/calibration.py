"""How long texts become against what was planned."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

START = 1.3  # models write about 1.3 times what they plan
SLACK = 1.5  # room above the expected length, at first
_NEW = 0.1  # weight of a new observation
_SLACKS = 1.25, 3.0
_BOUNDS = 0.25, 5.0
_ASCII = 4.0  # characters a token
_PIECE = re.compile(r"[a-zA-Z]+|\n+|[^\s]|(?<=\s)[^\S\n]+")


def num_tokens(text: str) -> int:
    """Return about how many tokens a text has.

    A quarter of its ASCII characters, half of those of other alphabets, and each wide character
    (Chinese, Japanese, Korean, emoji).

    >>> num_tokens("four plain words here"), num_tokens("中文")
    (6, 2)
    """
    plain = sum(map(str.isascii, text))
    wide = sum(char >= "\u2e80" for char in text)
    return round(plain / _ASCII + (len(text) - plain - wide) / 2 + wide + 0.49)


def most_tokens(text: str) -> int:
    """Return more tokens than a usual vocabulary takes for a text, for limits that must hold.

    A token for three letters of a word in ASCII, for every digit and mark, for a run of line
    breaks, and for each byte of anything else.

    >>> most_tokens("1. **Lower cost**:"), most_tokens("中文")
    (11, 6)
    """
    pieces = _PIECE.findall(text)
    return sum(-(-len(p) // 3) if p[0].isalpha() else 1 for p in pieces if p.isascii()) + sum(
        len(p.encode("utf-8", "surrogatepass")) for p in pieces if not p.isascii()
    )


@dataclass(slots=True)
class Calibration:
    """``actual / predicted`` length by kind of task: an exponentially weighted mean, from 1.3.

    Kept in the process, one for an engine's model.
    """

    _factors: dict[str, float] = field(default_factory=dict[str, float])
    _spreads: dict[str, float] = field(default_factory=dict[str, float])

    def factor(self, kind: str) -> float:
        """Return by what to multiply a planned length."""
        return self._factors.get(kind, START)

    def slack(self, kind: str) -> float:
        """Return how many times the expected length a text may have: 1.5 at first.

        Then one and three mean deviations, at least 1.25 and at most 3: parts that are cut have to
        be continued, which takes another call while the reader waits.
        """
        low, high = _SLACKS
        return min(max(1 + 3 * self._spreads.get(kind, (SLACK - 1) / 3), low), high)

    def observe(self, kind: str, predicted: int, actual: int) -> None:
        """Take the length of a text that ended by itself, without its reasoning (tokens)."""
        if predicted > 0 and actual > 0:
            low, high = _BOUNDS
            ratio = min(max(actual / predicted, low), high)
            factor, spread = self.factor(kind), self._spreads.get(kind, (SLACK - 1) / 3)
            off = min(abs(ratio / factor - 1), 1.0)
            self._spreads[kind] = spread * (1 - _NEW) + off * _NEW
            self._factors[kind] = factor * (1 - _NEW) + ratio * _NEW
