"""What a value of a JSON text is, and what its escapes say."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["object", "array", "string", "other"]
Path = tuple[str | int, ...]
ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}"
    r"|\\x[0-9a-fA-F]{2}|\\U[0-9a-fA-F]{8}|\\N\{[^{}\n]{1,80}\}|\\.",  # Python's, no JSON
    re.DOTALL,
)
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


@dataclass(slots=True)
class Node:
    """A value at ``start`` to ``end``; ``member`` is where its key begins, or the value itself.

    ``parent`` is the index of the array or object that it stands in, -1 at the top, ``step`` its
    key or place there. ``children`` are indices of nodes.
    """

    kind: Kind
    start: int
    end: int
    member: int
    parent: int
    step: str | int
    children: list[int]


def char_of(escape: str) -> str:
    """Return what an escape says, a character."""
    if escape[1] in "xU":
        return chr(min(int(escape[2:], 16), 0x10FFFF))
    if escape[1] != "u":
        return _SHORT.get(escape[1], escape[1])
    if len(escape) == 12:
        high, low = int(escape[2:6], 16), int(escape[8:], 16)
        return chr(0x10000 + ((high - 0xD800) << 10) + low - 0xDC00)
    return chr(int(escape[2:], 16))
