"""Guesses from the prompt itself: answers often copy (Saxena 2023, prompt lookup decoding)."""

from __future__ import annotations

from collections.abc import Sequence

_LONGEST, _SHORTEST = 3, 2  # tokens that must agree before something is copied


class Lookup:
    """Finds where the newest tokens stood before, and what followed there.

    >>> lookup = Lookup(4)
    >>> lookup.guess([1, 2, 3, 4, 5, 9, 2, 3])
    [4, 5, 9, 2]
    """

    def __init__(self, num_tokens: int) -> None:
        self._num_tokens = num_tokens
        self._ends: dict[tuple[int, ...], int] = {}  # of a run of tokens: where it ended last
        self._seen = 0

    def guess(self, tokens: Sequence[int]) -> list[int]:
        """Return what might follow ``tokens``, prompt and answer; they only ever grow."""
        for end in range(max(self._seen, _SHORTEST), len(tokens)):
            for size in range(_SHORTEST, min(_LONGEST, end) + 1):
                self._ends[tuple(tokens[end - size : end])] = end
        self._seen = len(tokens)
        for size in range(_LONGEST, _SHORTEST - 1, -1):
            followed = self._ends.get(tuple(tokens[-size:]))
            if followed is not None:
                return [*tokens[followed : followed + self._num_tokens]]
        return []
