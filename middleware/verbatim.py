"""JSON that is changed in places: all else stays as it was written, numbers above all.

What is read and written again is not the same: 1e400 becomes Infinity, 1.10 becomes 1.1, a long
decimal loses digits, of a key that comes twice one is lost.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, cast

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)


@dataclass(slots=True)
class _Node:
    """A value; ``inner`` are those in it, each with its key ("" in a list) and its beginning."""

    start: int
    end: int
    inner: list[tuple[str, int, _Node]] = field(default_factory=list[tuple[str, int, "_Node"]])


def read_json(text: str | bytes) -> Any:
    """Return the value of a JSON text; a whole number too long for Python's limit is its text.

    Raises ValueError and RecursionError.
    """
    return json.loads(text, parse_int=_integer)


def decoded(data: bytes) -> str:
    """Return JSON's bytes as text, in the encoding that ``json.loads`` finds in them."""
    return data.decode(json.detect_encoding(data), "surrogatepass")


def members(text: str) -> dict[str, str]:
    """Return the values of a JSON object as they are written; of a key twice there, the last.

    >>> members('{"a": 1.10, "b": [1e400]}')
    {'a': '1.10', 'b': '[1e400]'}
    """
    return {key: text[one.start : one.end] for key, _, one in _tree(text).inner}


def rewritten(text: str, old: Any, new: Any) -> str:
    """Return ``text``, of which ``read_json`` made ``old``, saying ``new``.

    Whatever is the same object in both stays as it is written. Of a key that is there twice, the
    last is changed.

    >>> text = '{"n": 1.10, "x": [1], "n": 1e400}'
    >>> rewritten(text, old := read_json(text), {**old, "x": [2]})
    '{"n": 1.10, "x": [2], "n": 1e400}'
    """
    node = _tree(text)
    return text[: node.start] + _said(text, node, old, new) + text[node.end :]


def written(value: Any) -> str:
    """Return a value as JSON; half a surrogate pair, which UTF-8 has not, as an escape."""
    said = json.dumps(value, ensure_ascii=False)
    return json.dumps(value) if re.search("[\ud800-\udfff]", said) else said


def keeps_numbers(text: str) -> bool:
    """Whether all numbers of a JSON text mean the same when it is read and written again.

    >>> keeps_numbers('[1.10, 1E5, 12345678901234567890]'), keeps_numbers("[1e400]")
    (True, False)
    """
    marks = (token[0] for token in _TOKEN.finditer(text))
    return all(_is_kept(mark) for mark in marks if mark[0] in "-0123456789NI")


def _is_kept(number: str) -> bool:
    if number.lstrip("-").isdecimal():
        return isinstance(_integer(number), int)
    try:
        value = float(number)
        return math.isfinite(value) and Decimal(number) == Decimal(repr(value))
    except (ValueError, ArithmeticError):  # an exponent beyond decimal's
        return False


def _integer(digits: str) -> int | str:
    try:
        return int(digits)
    except ValueError:
        return digits


def _tree(text: str) -> _Node:
    """Return the values of a text that parses as JSON (RFC 8259), at any depth."""
    top = _Node(0, 0)
    open_ = [top]
    key: tuple[str, int] | None = None
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in ("}", "]"):
            open_.pop().end = token.end()
        elif mark == ":":
            _, start, said = open_[-1].inner.pop()  # the key was taken for a value
            key = json.loads(text[said.start : said.end], strict=False), start
        elif mark != ",":
            node = _Node(*token.span())
            name, start = key or ("", node.start)
            open_[-1].inner.append((name, start, node))
            key = None
            if mark in ("{", "["):
                open_.append(node)
    return top.inner[0][2]


def _said(text: str, node: _Node, old: Any, new: Any) -> str:
    if new is old:
        return text[node.start : node.end]
    if isinstance(old, dict) and isinstance(new, Mapping):
        return _object(text, node, cast("Any", old), cast("Mapping[str, Any]", new))
    if isinstance(old, list) and isinstance(new, (list, tuple)):
        return _array(text, node, cast("Sequence[Any]", old), cast("Sequence[Any]", new))
    return written(new)


def _object(text: str, node: _Node, old: dict[str, Any], new: Mapping[str, Any]) -> str:
    last = {key: at for at, (key, _, _) in enumerate(node.inner)}
    parts: list[str] = []
    before: int | None = None
    for at, (key, start, one) in enumerate(node.inner):
        if key not in new:
            before = None
            continue
        value = text[one.start : one.end]
        if at == last[key]:
            value = _said(text, one, old[key], new[key])
        comma = ", " if before is None else text[before:start]
        parts += [comma if parts else "", text[start : one.start], value]
        before = one.end
    for key in new:
        if key not in last:
            parts += [", " if parts else "", f"{written(key)}: {written(new[key])}"]
    if not node.inner:
        return f"{{{''.join(parts)}}}"
    head = text[node.start : node.inner[0][1]]
    return head + "".join(parts) + text[node.inner[-1][2].end : node.end]


def _array(text: str, node: _Node, old: Sequence[Any], new: Sequence[Any]) -> str:
    parts: list[str] = []
    first = 0
    for at, value in enumerate(new):
        origin = _origin(value, old, first)
        if len(old) == len(new) and (origin is None or _shares(value, old[at])):
            origin = at
        if origin is None:
            parts.append(written(value))
        else:
            parts.append(_said(text, node.inner[origin][2], old[origin], value))
            first = origin + 1
    return f"[{', '.join(parts)}]"


def _origin(value: Any, old: Sequence[Any], first: int) -> int | None:
    """Return the place of what a value is, or was made of: something in both is the same object."""
    places = range(first, len(old))
    exact = (at for at in places if old[at] is value and isinstance(value, (dict, list, str)))
    return next(exact, next((at for at in places if _shares(value, old[at])), None))


def _shares(value: Any, other: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(other, dict):
        return False
    mine, theirs = cast("dict[str, Any]", value), cast("dict[str, Any]", other)
    kinds = (str, dict, list, float)  # no object that Python shares between texts, mostly
    return any(k in theirs and v is theirs[k] and isinstance(v, kinds) for k, v in mine.items())
