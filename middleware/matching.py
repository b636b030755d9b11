"""Which part of a text belongs to which part of a template.

A part has one or more places where it may end. A text belongs to the template along a *path*: an
end for each part, the next one beginning there. Fields prefer to be long; a path is looked for
with backtracking, and what failed once is not tried again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import isfinite
from typing import Any, cast

from .check import PATTERN_SECONDS, SCHEMA_SECONDS, strict_json


def _finite(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"{text!r:.40} is too large for a float")
    return value


_READ: dict[str | None, Callable[[str], Any]] = {
    "int": int,
    "float": _finite,
    "bool": "true".__eq__,
    None: str,
}


@dataclass(frozen=True)
class Field:
    """A named part: ``kind`` is "text" or a constraint's.

    Free text runs ``until`` that text (None: to the end). ``scalar`` says as what a text is read;
    ``parse`` is the caller's type, which is not serialised.
    """

    name: str
    kind: str
    spec: Any = None
    until: str | None = None
    scalar: str | None = None
    parse: Callable[[str], Any] | None = field(default=None, compare=False, repr=False)

    def read(self, text: str) -> Any:
        """Return the plain value of the field's text: an int, JSON, a text."""
        return strict_json(text) if self.kind == "json_schema" else _READ[self.scalar](text)

    def value(self, text: str) -> Any:
        """Return the value of the field's text as the caller's type."""
        return self.parse(text) if self.parse else self.read(text)

    def to_dict(self) -> dict[str, Any]:
        """Return the field as JSON values, without what is None but for free text's ``until``."""
        plain = {"name": self.name, "kind": self.kind}
        if self.kind == "text":
            return {**plain, "until": self.until}
        scalar = {} if self.scalar is None else {"as": self.scalar}
        return {**plain, "spec": self.spec, **scalar}


Part = str | Field


@dataclass(frozen=True, slots=True)
class Ends:
    """Where a part may end, best first, and whether it may still go on behind the text's end."""

    at: Sequence[int] = ()
    is_open: bool = False


def ends(part: Part, text: str, start: int, behind: str, seconds: float = PATTERN_SECONDS) -> Ends:
    """Return where the part that begins at ``start`` may end; ``behind`` is the fixed text there.

    Raises TimeoutError when that takes longer than ``seconds``.
    """
    if isinstance(part, str):
        if text.startswith(part, start):
            return Ends([start + len(part)])
        return Ends(is_open=part.startswith(text[start:]))
    if part.kind == "text":
        if part.until is None:
            return Ends([len(text)], is_open=True)
        found = text.find(part.until, start)
        return Ends([found]) if found >= 0 else Ends(is_open=True)
    if part.kind == "choice":
        rest = text[start:]
        options = sorted(cast("Sequence[str]", part.spec), key=len, reverse=True)
        longer = any(len(one) > len(rest) and one.startswith(rest) for one in options)
        return Ends([start + len(one) for one in options if rest.startswith(one)], longer)
    if part.kind == "regex":
        return _pattern_ends(part.spec, text, start, behind, seconds)
    return _json_ends(text, start)


def _pattern_ends(pattern: str, text: str, start: int, behind: str, seconds: float) -> Ends:
    engine = _compiled(pattern)
    until = time.monotonic() + seconds
    rest = text[start:]

    def matches(part: str, *, partial: bool = False) -> bool:
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"the pattern {pattern!r:.60} takes too long")
        return engine.fullmatch(part, partial=partial, timeout=left) is not None

    is_open = matches(rest, partial=True)
    found: list[int] = []
    for end in range(len(rest), -1, -1):
        after = rest[end:]
        fits = after.startswith(behind) or behind.startswith(after) if behind else not after
        if fits and matches(rest[:end]):
            found.append(start + end)
    return Ends(found, is_open)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    import regex

    return regex.compile(pattern)


def _json_ends(text: str, start: int) -> Ends:
    def refuse(name: str) -> None:
        raise ValueError(f"{name} is no JSON")

    try:
        value, end = json.JSONDecoder(parse_constant=refuse).raw_decode(text, start)
    except (ValueError, RecursionError):
        return Ends(is_open=True)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return Ends([end], is_open=is_number and end == len(text))


class Live:
    """The paths of a text through parts; ``furthest`` is the part and place where it got stuck.

    Looking for them raises TimeoutError when it takes longer than ``seconds``, patterns included.
    """

    def __init__(self, parts: Sequence[Part], text: str, seconds: float = SCHEMA_SECONDS) -> None:
        self._until = time.monotonic() + seconds
        self._parts = parts
        self._text = text
        self._ends: dict[tuple[int, int], Ends] = {}
        self._dead: set[tuple[int, int, bool]] = set()
        self.furthest = (0, 0)

    def ends(self, part: int, start: int) -> Ends:
        """Return where that part may end if it begins at ``start``."""
        if (part, start) not in self._ends:
            following = self._parts[part + 1] if part + 1 < len(self._parts) else ""
            behind = following if isinstance(following, str) else ""
            self._ends[part, start] = ends(
                self._parts[part], self._text, start, behind, self._until - time.monotonic()
            )
        return self._ends[part, start]

    def path(self) -> list[tuple[int, int]] | None:
        """Return start and end of each part of the whole text, None when it does not fit."""
        return self._walk(0, 0, is_whole=True)

    def is_live(self, part: int = 0, start: int = 0) -> bool:
        """Whether the text from ``start`` on may be the beginning of these parts."""
        return self._walk(part, start, is_whole=False) is not None

    def _walk(self, part: int, start: int, *, is_whole: bool) -> list[tuple[int, int]] | None:
        if part == len(self._parts):
            if start == len(self._text):
                return []
            self.furthest = max(self.furthest, (part, start), key=lambda at: at[::-1])
            return None
        if (part, start, is_whole) in self._dead:
            return None
        found = self.ends(part, start)
        if found.is_open and not is_whole:
            return []
        for end in found.at:
            rest = self._walk(part + 1, end, is_whole=is_whole)
            if rest is not None:
                return [(start, end), *rest]
        self.furthest = max(self.furthest, (part, start), key=lambda at: at[::-1])
        self._dead.add((part, start, is_whole))
        return None
