"""Guesses at what comes next in a JSON answer, for the model to check in the same pass.

A schema with bounded whitespace leaves few tokens that are *forced*: before a comma there could be
a blank. What follows is certain all the same once the row's own habit is known. A second automaton
of the same schema without any whitespace says which characters must come; they are set with the
row's whitespace and read by the model as a draft. A draft changes nothing about the answer: each
token is kept only when the model chooses it (speculative decoding with a deterministic draft,
Leviathan et al. 2023, section 2.3; Prompt Lookup has its draft from the prompt).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .layout import Layout

_LONGEST = 16  # tokens of a draft
_CREDIT = 12  # draft tokens that may be lost before a row stops guessing


class Guesser:
    """Guesses for one row. Give it every piece of text the row writes.

    ``compact``: an automaton (llguidance's LLMatcher) of the row's schema without whitespace.
    ``tokenize``: bytes to the tokens that the model would write for them.
    """

    def __init__(self, compact: Any, tokenize: Callable[[bytes], Sequence[int]]) -> None:
        self._compact = compact
        self._tokenize = tokenize
        self._layout = Layout()
        self._credit = _CREDIT

    def push(self, text: str) -> None:
        """Take the next piece of the answer's text."""
        if self._credit <= 0:
            return
        bare = self._layout.push(text)
        if bare and not self._compact.consume_tokens([*self._tokenize(bare.encode())]):
            self._credit = 0  # it has gone where the compact automaton cannot follow

    def guess(self) -> list[int]:
        """Return the tokens of what must come next, in the row's own layout; often none."""
        if self._credit <= 0 or self._compact.is_stopped():
            return []
        bare = self._compact.compute_ff_bytes()
        text = self._layout.styled(bare.decode("utf-8", "ignore"))
        return [*self._tokenize(text.encode())][:_LONGEST] if text else []

    def learn(self, guessed: int, accepted: int) -> None:
        """Take note of how many tokens of a draft were right; stop when they seldom are."""
        self._credit = min(self._credit + accepted - (guessed - accepted) // 2, 4 * _CREDIT)
