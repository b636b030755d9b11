"""JSON values while they are being written: what is certain of them, and never more."""

from __future__ import annotations

import json
from typing import Any

import regex

_WORD = r"true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_ESCAPE = r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})'
MAX_DEPTH = 200
_SPACE = frozenset(" \t\n\r")
_ENDS = frozenset(",]} \t\n\r")
_CLOSER = {"{": "}", "[": "]"}


class PartialJson:
    """Reads a JSON text piece by piece.

    ``value`` holds what is certain: an object's finished fields, an array's finished items, inner
    objects as far as they are certain; a number only when it has ended. Nothing that was there
    is ever different later, but that arrays and objects grow. With ``grow``, texts that are still
    being written and an array's last item are there too, as far as they go. ``has_value`` is
    False before anything is certain. Reading stops where the text is no JSON, or is nested
    deeper than ``MAX_DEPTH`` (``is_broken``).

    >>> reader = PartialJson()
    >>> reader.push('{"name": "Ann", "age": 4'), reader.value
    (True, {'name': 'Ann'})
    >>> reader.push('2}'), reader.value, reader.is_done
    (True, {'name': 'Ann', 'age': 42}, True)
    """

    def __init__(self, *, grow: bool = False) -> None:
        self.text = ""
        self.value: Any = None
        self.has_value = False
        self.is_done = False
        self.is_broken = False
        self.num_valid = 0  # characters that are the beginning of a JSON text
        self._grow = grow
        self._stack: list[str] = []  # open containers
        self._want = "value"  # or "key", "first key", "first value", "colon", "comma"
        self._token = -1  # where an unfinished string or word begins
        self._is_key = False
        self._escape = ""  # an escape sequence as far as it is there
        self._solid = 0  # in a string: everything before it is whole characters
        self._certain: tuple[int, str] | None = None

    def push(self, piece: str) -> bool:
        """Take the next piece; returns whether ``value`` has changed."""
        before = self._certain
        at = len(self.text)
        self.text += piece
        while at < len(self.text) and not self.is_broken:
            at = self._step(at)
        if self._grow and self._token >= 0 and not self._is_key and self._in_string():
            self._note(self._solid, '"')
        return self._load() if self._certain != before else False

    def finish(self) -> bool:
        """End the text, and with it a number; returns whether ``value`` has changed."""
        before = self._certain
        if self._token >= 0 and not self._in_string() and not self.is_broken:
            self._word(len(self.text))
        return self._load() if self._certain != before else False

    @property
    def open(self) -> str:
        """What would close the text: quotes, brackets and braces in their order."""
        quote = '"' if self._token >= 0 and self._in_string() else ""
        return quote + self._closers()

    def _step(self, at: int) -> int:
        """Read the character there, or the token that it ends; returns where to go on."""
        c = self.text[at]
        if self._token >= 0:
            if self._in_string():
                self._string(at, c)
            elif c in _ENDS:
                self._word(at)
                return at  # the character itself is still to be read
            elif not self._may_be_word(self.text[self._token : at + 1]):
                return self._break()
        elif c not in _SPACE and not self._structure(at, c):
            return self._break()
        if not self.is_broken:
            self.num_valid = at + 1
        return at + 1

    def _structure(self, at: int, c: str) -> bool:
        """Read a character outside of strings and words; returns whether it may stand there."""
        wanted = self._want
        if self.is_done:
            return False
        if c in "}]":
            if not self._stack or _CLOSER[self._stack[-1]] != c:
                return False
            if wanted not in ("comma", f"first {'key' if c == '}' else 'value'}"):
                return False
            self._stack.pop()
            self._end(at + 1)
        elif wanted == "comma":
            self._want = "key" if self._stack[-1] == "{" else "value"
            return c == ","
        elif wanted == "colon":
            self._want = "value"
            return c == ":"
        elif wanted.endswith("key"):
            self._token, self._is_key, self._solid = at, True, at + 1
            return c == '"'
        elif c in "{[":
            if len(self._stack) == MAX_DEPTH:
                return False
            self._stack.append(c)
            self._want = "first key" if c == "{" else "first value"
            self._note(at + 1)
        else:
            self._token, self._is_key, self._solid = at, False, at + 1
            return c == '"' or self._may_be_word(c)
        return True

    def _string(self, at: int, c: str) -> None:
        if self._escape:
            self._escape += c
            self.is_broken = not regex.fullmatch(_ESCAPE, self._escape, partial=True)
            if len(self._escape) == (6 if self._escape[1] == "u" else 2):
                is_half = self._escape[2:4].lower() in ("d8", "d9", "da", "db")
                self._solid = self._solid if is_half else at + 1
                self._escape = ""
        elif c == "\\":
            self._escape = c
        elif c == '"':
            self._token = -1
            if self._is_key:
                self._want = "colon"
            else:
                self._end(at + 1)
        elif c < " ":
            self.is_broken = True
        else:
            self._solid = at + 1

    def _word(self, end: int) -> None:
        """End a number or a literal."""
        try:
            json.loads(self.text[self._token : end], parse_constant=_refuse)
        except ValueError:
            self._break()
            return
        self._token = -1
        self._end(end)

    def _end(self, end: int) -> None:
        """Take note that a value has ended."""
        self.is_done = not self._stack
        self._want = "comma"
        self._note(end)

    def _note(self, cut: int, quote: str = "") -> None:
        """Remember that everything before the cut is certain, if it is to be shown."""
        if self._grow or "[" not in self._stack[:-1]:
            self._certain = (cut, quote + self._closers())

    def _closers(self) -> str:
        return "".join(_CLOSER[one] for one in reversed(self._stack))

    def _load(self) -> bool:
        cut, closers = self._certain or (0, "")
        before, had = self.value, self.has_value
        try:
            self.value = json.loads(self.text[:cut] + closers, parse_constant=_refuse)
        except (ValueError, RecursionError):
            self.is_broken = True
            return False
        self.has_value = True
        return not had or before != self.value

    def _in_string(self) -> bool:
        return self.text[self._token] == '"'

    def _may_be_word(self, text: str) -> bool:
        return regex.fullmatch(_WORD, text, partial=True) is not None

    def _break(self) -> int:
        self.is_broken = True
        return len(self.text)


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
