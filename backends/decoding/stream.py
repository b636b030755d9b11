"""Tokens to text, as far as it is certain."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Decode = Callable[[Sequence[int]], str]

_PARTIAL = "\ufffd"


class Detokenizer:
    """Turns tokens into text piece by piece; a character is given out when it is whole.

    ``decode`` turns a run of tokens into text. Only a short window is decoded each time: a token
    before the new ones shows whether they start with a space. Bytes that never become a
    character at the end of the answer are dropped; ``bytes_of`` a token tells them from U+FFFD.
    """

    def __init__(self, decode: Decode, bytes_of: Callable[[int], bytes] | None = None) -> None:
        self._decode = decode
        self._bytes_of = bytes_of
        self._tokens: list[int] = []
        self._given = 0  # tokens of the window whose text was given out

    def push(self, token: int) -> str:
        """Return the text that this token makes certain."""
        self._tokens.append(token)
        known = self._decode(self._tokens[: self._given])
        text = self._decode(self._tokens)
        if text.endswith(_PARTIAL) or len(text) <= len(known):
            return ""
        self._tokens = self._tokens[self._given :]
        self._given = len(self._tokens)
        return text[len(known) :]

    def flush(self) -> str:
        """Return what is left at the end, without broken characters at its end."""
        known = self._decode(self._tokens[: self._given])
        text = self._decode(self._tokens)
        rest = text[len(known) :].rstrip(_PARTIAL)
        if len(known) + len(rest) < len(text) and self._bytes_of is not None:
            raw = b"".join(self._bytes_of(token) for token in self._tokens)
            sign = _PARTIAL.encode()
            while raw.endswith(sign):
                raw, rest = raw[: -len(sign)], rest + _PARTIAL
        self._tokens, self._given = [], 0
        return rest


class StopFilter:
    """Holds back whatever may be the start of a stop string, and ends the text before one.

    >>> stop = StopFilter(["END"])
    >>> stop.push("one E"), stop.push("ND two"), stop.is_hit
    ('one ', '', True)
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = [stop for stop in stops if stop]
        self._held = ""
        self.is_hit = False

    def push(self, text: str) -> str:
        """Return the text that can be given out now."""
        if self.is_hit:
            return ""
        self._held += text
        hits = [at for stop in self._stops if (at := self._held.find(stop)) >= 0]
        if hits:
            self.is_hit = True
            return self._take(min(hits))
        held = max((_overlap(self._held, stop) for stop in self._stops), default=0)
        return self._take(len(self._held) - held)

    def flush(self) -> str:
        """Return what was held back, at the end of an answer without a stop string."""
        return "" if self.is_hit else self._take(len(self._held))

    def _take(self, length: int) -> str:
        text, self._held = self._held[:length], self._held[length:]
        return text


def _overlap(text: str, stop: str) -> int:
    """Return the length of the longest end of the text that is a start of the stop string."""
    longest = min(len(text), len(stop) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(stop[:n])), 0)
