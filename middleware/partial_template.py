"""A template's fields while they are being written."""

from __future__ import annotations

from typing import Any

from .matching import Field, Live
from .partial import PartialJson
from .template import Template


class PartialTemplate:
    """Reads a template's text piece by piece; ``value`` holds the fields that are certain.

    A field is certain when no text that may follow gives it another value: a free text when the
    text behind it has begun. With ``grow``, the field that is being written is there too, as far
    as it goes, if it is free text or JSON.

    >>> reader = PartialTemplate('["Age: ",{"name":"age","kind":"regex","spec":"[0-9]+"},"."]')
    >>> reader.push("Age: 4"), reader.push("2"), reader.push("."), reader.value
    (False, False, True, {'age': '42'})
    """

    def __init__(self, spec: str, *, grow: bool = False) -> None:
        self.template = Template.from_spec(spec)
        self.text = ""
        self.value: dict[str, Any] = {}
        self.has_value = True
        self._grow = grow
        self._part = self._start = 0  # everything before them is certain
        self._certain: dict[str, Any] = {}
        self._is_stuck = False

    def push(self, piece: str) -> bool:
        """Take the next piece; returns whether ``value`` has changed."""
        self.text += piece
        before = self.value
        if self._is_stuck:
            return False
        try:
            self._advance()
        except (TimeoutError, ValueError):
            self._is_stuck = True  # the check of the finished text says why
            return False
        self.value = {**self._certain, **(self._growing() if self._grow else {})}
        return self.value != before

    def _advance(self) -> None:
        parts = self.template.parts
        live = Live(parts, self.text)
        while self._part < len(parts):
            found = live.ends(self._part, self._start)
            going = [end for end in found.at if live.is_live(self._part + 1, end)]
            if found.is_open or len(going) != 1:
                return
            part = parts[self._part]
            if isinstance(part, Field):
                self._certain[part.name] = part.read(self.text[self._start : going[0]])
            self._part, self._start = self._part + 1, going[0]

    def _growing(self) -> dict[str, Any]:
        parts = self.template.parts
        part = parts[self._part] if self._part < len(parts) else ""
        if isinstance(part, str):
            return {}
        rest = self.text[self._start :]
        if part.kind == "text":
            return {part.name: rest[: len(rest) - _overlap(rest, part.until or "")]}
        if part.kind == "json_schema":
            reader = PartialJson(grow=True)
            reader.push(rest)
            return {part.name: reader.value} if reader.has_value else {}
        return {}


def _overlap(text: str, following: str) -> int:
    """Return how much of the text's end may be the beginning of what follows."""
    longest = min(len(text), len(following) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(following[:n])), 0)
