"""How many tokens each part may write, so that all parts together keep the caller's limit."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .calibration import SLACK, START

MIN_TOKENS = 24  # of a part's text
PART_TOKENS = 48  # the same with its heading
MIN_DIVIDED = 120  # of an answer that is divided


def wanted_tokens(length: int, factor: float = START, slack: float = SLACK) -> int:
    """Return max_tokens for a part of this planned length (tokens).

    ``factor`` is how long texts become against what was planned, ``slack`` the room above that
    (``Calibration``).
    """
    return math.ceil(slack * factor * length) + 32


def fitting_nodes(max_tokens: int | None, max_nodes: int) -> int:
    """Return how many parts of a useful size fit in ``max_tokens``, at most ``max_nodes``.

    Below ``MIN_DIVIDED`` none do: an answer that short gains nothing from parts.
    """
    if max_tokens is None:
        return max_nodes
    return min(max_nodes, max_tokens // PART_TOKENS) if max_tokens >= MIN_DIVIDED else 0


@dataclass(slots=True)
class Budget:
    """Shares out the request's ``max_tokens`` (None: without limit), counted in tokens."""

    max_tokens: int | None

    def grant(self, wanted: int, num_open: int, *, kept: int = 0) -> int:
        """Take up to ``wanted`` tokens; ``num_open`` parts, this one included, still need some.

        ``kept`` tokens stay for the others. Returns 0 when nothing is left.
        """
        if self.max_tokens is None:
            return wanted
        most = min(self.max_tokens // max(num_open, 1), self.max_tokens - kept)
        granted = max(min(wanted, most), 0)
        self.max_tokens -= granted
        return granted

    def take(self, num_tokens: int) -> bool:
        """Take exactly so many tokens, or nothing."""
        if self.max_tokens is None:
            return True
        if num_tokens > self.max_tokens:
            return False
        self.max_tokens -= num_tokens
        return True

    def refund(self, num_tokens: int) -> None:
        """Give back what a part did not use."""
        if self.max_tokens is not None:
            self.max_tokens += max(num_tokens, 0)
