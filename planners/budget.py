"""How many tokens each part may write, so that all parts together keep the caller's limit."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .calibration import SLACK, START

MIN_TOKENS = 24


def wanted_tokens(length: int, factor: float = START, slack: float = SLACK) -> int:
    """Return max_tokens for a part of this planned length (tokens).

    ``factor`` is how long texts become against what was planned, ``slack`` the room above that
    (``Calibration``).
    """
    return math.ceil(slack * factor * length) + 32


def fitting_nodes(max_tokens: int | None, max_nodes: int) -> int:
    """Return how many parts of a useful size fit in ``max_tokens``, at most ``max_nodes``."""
    return max_nodes if max_tokens is None else min(max_nodes, max_tokens // MIN_TOKENS)


@dataclass(slots=True)
class Budget:
    """Shares out the request's ``max_tokens`` (None: without limit), counted in tokens."""

    max_tokens: int | None

    def grant(self, wanted: int, num_open: int) -> int:
        """Take up to ``wanted`` tokens; ``num_open`` parts, this one included, still need some.

        Returns 0 when nothing is left.
        """
        if self.max_tokens is None:
            return wanted
        granted = min(wanted, self.max_tokens // max(num_open, 1))
        self.max_tokens -= granted
        return granted

    def refund(self, num_tokens: int) -> None:
        """Give back what a part did not use."""
        if self.max_tokens is not None:
            self.max_tokens += max(num_tokens, 0)
