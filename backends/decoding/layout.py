"""How a JSON text is laid out: where its writer puts blanks and line breaks."""

from __future__ import annotations

from copy import copy

_BLANKS = " \t\r\n"


class Layout:
    r"""Reads a JSON text piece by piece and learns its whitespace.

    >>> layout = Layout()
    >>> layout.push('{\n  "a": 1')
    '{"a":1'
    >>> layout.styled(',"b":')
    ',\n  "b":'
    """

    def __init__(self) -> None:
        self._depth = 0
        self._is_string = False
        self._is_escaped = False
        self._last = ""  # the last character that is no whitespace
        self._gap = ""  # whitespace since then
        self._indent: str | None = None  # None: on one line, as far as is known
        self._after = {":": " ", ",": " "}

    def push(self, text: str) -> str:
        """Take the next piece; returns it without the whitespace between its tokens."""
        bare: list[str] = []
        for char in text:
            if not self._is_string and char in _BLANKS:
                self._gap += char
                continue
            self._learn(char)
            bare.append(char)
            self._step(char)
        return "".join(bare)

    def styled(self, bare: str) -> str:
        """Return what comes next, given without whitespace, as this writer would set it."""
        ahead = copy(self)
        out: list[str] = []
        for char in bare:
            gap = "" if ahead._is_string else ahead._expected(char)
            if gap.startswith(ahead._gap):
                gap = gap[len(ahead._gap) :]
            elif ahead._gap:  # it has set other whitespace here
                gap = ""
            out.append(gap + char)
            ahead._step(char)
        return "".join(out)

    def _step(self, char: str) -> None:
        self._gap = ""
        if self._is_string:
            if self._is_escaped:
                self._is_escaped = False
            elif char == "\\":
                self._is_escaped = True
            elif char == '"':
                self._is_string = False
        elif char == '"':
            self._is_string = True
        elif char in "{[":
            self._depth += 1
        elif char in "}]":
            self._depth -= 1
        self._last = char

    def _learn(self, char: str) -> None:
        if self._is_string or not self._last:
            return
        if self._last in ":," and "\n" not in self._gap:
            self._after[self._last] = self._gap
        opened = self._last in "{[" and char not in "}]"
        if opened and "\n" not in self._gap:
            self._indent = None if self._last == "{" else self._indent
        elif opened:
            blanks = self._gap[self._gap.rindex("\n") + 1 :]
            self._indent = blanks[: len(blanks) // max(self._depth, 1)]

    def _expected(self, char: str) -> str:
        last = self._last
        if not last or char in ",:":
            return ""
        if last == ":":
            return self._after[":"]
        if self._indent is not None:
            if last in "{[" and char in "}]":
                return ""
            if last in "{[,":
                return "\n" + self._indent * self._depth
            if char in "}]":
                return "\n" + self._indent * (self._depth - 1)
            return ""
        return self._after[","] if last == "," else ""
