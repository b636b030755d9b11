"""How many tokens a text had, where what an engine says of it need not be true."""

from __future__ import annotations

from dataclasses import dataclass

from .calibration import most_tokens, num_tokens

_MOST_CHARACTERS = 6  # of a token, where pieces are more than one
_APART = 3  # so many times more or less than the estimate is doubted


def believed_tokens(
    said: int, text: str, *, max_tokens: int | None, most_written: float = float("inf")
) -> int:
    """Return what is learnt of a text's length: ``said``, or an estimate where that cannot be.

    ``said`` counts as it is up to three times more or less than ``text`` looks like. More, up to
    ``max_tokens``, is reasoning that was not shown, where ``most_written`` tokens could have been
    written in the time. 0 where there is neither a number nor a text.

    >>> believed_tokens(40, "four words a line " * 8, max_tokens=200)
    40
    >>> believed_tokens(10**6, "four words a line " * 8, max_tokens=200)
    36
    """
    about = num_tokens(text) if text else 0
    most = float("inf") if max_tokens is None else max_tokens
    if about <= said * _APART and 0 < said <= about * _APART and said <= most:
        return said
    is_thought = about * _APART < said <= min(most, most_written)
    return said if is_thought else about


@dataclass(slots=True)
class Count:
    """Counts the tokens of one call, so that limits hold: by its usage, else by what came.

    Pieces are tokens as long as they are short; longer ones are counted by their characters.
    """

    max_tokens: int | None
    num_tokens: int = 0
    num_pieces: int = 0
    size: int = 0
    _most: int = 0

    def piece(self, text: str) -> None:
        """Take a piece of the stream."""
        self.num_pieces += 1
        self.num_tokens = max(self.num_tokens + 1, round(self.size / _MOST_CHARACTERS))
        self.size += len(text)
        self._most += most_tokens(text)

    def end(self, said: int = 0, *, is_cut: bool = False) -> int:
        """Return the tokens in all; ``said`` is what the usage says, 0 where there is none.

        A number that cannot be (below 0, above what the call was allowed, fewer than the text's
        characters can be) does not count. ``is_cut``: the call ended at its limit.
        """
        most = self.max_tokens
        if is_cut and most is not None:
            self.num_tokens = max(most, 1)
        elif max(self.size / _MOST_CHARACTERS, 1) <= said and (most is None or said <= most):
            self.num_tokens = said
        elif self.num_pieces * _MOST_CHARACTERS < self.size:
            found = max(self.num_tokens, self._most)
            self.num_tokens = found if most is None else min(found, max(most, self.num_tokens))
        return self.num_tokens
