"""One line of a skeleton: whether it begins a point, and what the point says.

Models number their points in many ways: ``1.`` ``1)`` ``(1)`` ``1、`` ``一、`` ``１．`` ``iv.``
``a)`` ``-`` ``**1.**`` ``### 1.`` All of them are read here. A number that is only part of the text
(2023, 2.5, 9.81) is not a point.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["number", "roman", "letter", "bullet"]

_CJK = {c: i for i, c in enumerate("一二三四五六七八九", 1)}
_ROMAN = {"i": 1, "v": 5, "x": 10}
_MARK = r"[ \t*_#>`]*"
_END = r"[.)\]、:：|．）。﹒]"
_NUMBER = re.compile(
    rf"(?P<open>[(\[（])?(?P<n>\d{{1,2}}|[一二三四五六七八九十]{{1,3}}){_MARK}{_END}+(?!\d)"
)
_SUB = re.compile(rf"{_MARK}(?P<n>\d{{1,2}})(?:\.\d{{1,2}})+[.):]?[ \t]+(?P<text>\S.*)")
_WORD = re.compile(rf"(?:point|step|part|section)[ \t]+(?P<n>\d{{1,2}}){_MARK}{_END}+(?!\d)", re.I)
_ROMANS = re.compile(rf"\(?(?P<n>[ivx]{{1,5}}){_MARK}[.)](?=[\s*_])", re.I)
_LETTER = re.compile(rf"\(?(?P<n>[a-z]){_MARK}[.)](?=[\s*_])", re.I)
_BULLET = re.compile(r"(?:[-+•·▪◦‣●–—]|\*(?!\*))[ \t]+")
_NEXT = re.compile(rf"(?P<before>.)\s+(?:\*\*)?(?P<n>\d{{1,2}}){_END}(?=\s)")


@dataclass(frozen=True, slots=True)
class Head:
    """A point's first line; ``indent`` is in columns, ``number`` None for a bullet."""

    kind: Kind
    number: int | None
    indent: int
    text: str


def read_head(line: str) -> Head | None:
    """Return the point that this line begins, None when it is plain text.

    >>> read_head("  **2)** Lower cost")
    Head(kind='number', number=2, indent=2, text='Lower cost')
    """
    expanded = line.expandtabs(4).rstrip()
    body = expanded.lstrip(" \u3000")
    indent = len(expanded) - len(body)
    if bullet := _BULLET.match(body):
        inner = read_head(body[bullet.end() :])
        if inner is not None and inner.kind == "number":  # "- 1. Alpha"
            return Head("number", inner.number, indent, inner.text)
        return Head("bullet", None, indent, clean(body[bullet.end() :]))
    body = re.sub(rf"^{_MARK}", "", body)
    for pattern in (_NUMBER, _WORD):
        if found := pattern.match(body):
            return Head("number", _value(found["n"]), indent, clean(body[found.end() :]))
    if (found := _ROMANS.match(body)) and (number := _roman(found["n"].casefold())) is not None:
        return Head("roman", number, indent, clean(body[found.end() :]))
    if found := _LETTER.match(body):
        number = ord(found["n"].casefold()) - ord("a") + 1
        return Head("letter", number, indent, clean(body[found.end() :]))
    return None


def read_sub_point(line: str) -> tuple[int, str] | None:
    """Return (number of the point above, text) of a line like ``1.2 Text``."""
    found = _SUB.match(line)
    return (int(found["n"]), clean(found["text"])) if found else None


def split_inline(head: Head) -> list[Head]:
    """Split ``1. A. 2. B. 3. C``, a whole list in one line; the head alone where it is none.

    The numbers must count on from the head's own, and there must be two of them or the text
    before must have ended.
    """
    if head.kind != "number" or head.number is None:
        return [head]
    cuts: list[tuple[int, int, str]] = []
    for found in _NEXT.finditer(head.text):
        if int(found["n"]) == head.number + len(cuts) + 1:
            cuts.append((found.start() + 1, found.end(), found["before"]))
    if not cuts or (len(cuts) == 1 and cuts[0][2] not in ".;,!?"):
        return [head]
    starts = [0, *(end for _, end, _ in cuts)]
    ends = [*(start for start, _, _ in cuts), len(head.text)]
    return [
        Head("number", head.number + i, head.indent, clean(head.text[start:end]))
        for i, (start, end) in enumerate(zip(starts, ends, strict=True))
    ]


def clean(text: str) -> str:
    """Return the text without Markdown emphasis around it and without a colon at its end."""
    text = text.strip().strip("*_`#").strip()
    text = re.sub(r"(\*\*|__)(.+?)\1", r"\2", text)
    if text.count("**") % 2:
        text = text.replace("**", "")
    return text.rstrip(" :：*_").strip()


def _value(digits: str) -> int:
    if digits[0].isdigit():
        return int(digits)
    tens, ten, ones = digits.rpartition("十")
    return (_CJK.get(tens, 1) * 10 if ten else 0) + _CJK.get(ones, 0)


def _roman(text: str) -> int | None:
    values = [_ROMAN[c] for c in text]
    pairs = zip(values, [*values[1:], 0], strict=True)
    total = sum(-value if value < after else value for value, after in pairs)
    return total if total > 0 else None
