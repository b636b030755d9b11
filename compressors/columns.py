"""Tables that a terminal prints: columns under one another, a row whole or absent.

``psql`` and ``mysql`` draw lines between the columns; ``ps``, ``df``, ``kubectl`` and the like name
them in capitals above; ``ls -l`` has no names, its rows begin with the mode of a file. Frames of a
stack trace are rows without a head.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator

Row = tuple[int, int, bool]
"""Where a row starts and ends, and whether it is the head of those below it."""

_LINE = re.compile(r"[^\n]+")
_RULED = re.compile(r"[ \t]*[-+|=─┼┬┴├┤╞╪╡═]{3,}[-+|=─┼┬┴├┤╞╪╡═ \t]*\r?$")
_HAS_JOINT = re.compile(r"─┼─|\+-|(?<!-)-{3,}+ ++-{3}|(?<!=)={3,}+ ++={3}")
_HEAD = re.compile(r"[ \t]*(?:[%#A-Z][A-Za-z0-9%/_()#-]*(?: {1,}|\t|\r?$)){3,}(?:on\r?)?$")
_MODE = re.compile(r"[ \t]*[-dlbcps](?:[r-][w-][xsStT-]){3}[.+@]? +\d+ ")
_NAMES = re.compile(r"[ \t]{4,}[a-z][\w/%-]*(?:[ \t]{2,}[a-z][\w/%-]*){2,}[ \t]*\r?$")  # as free's
_SHOUTED = re.compile(r"[ \t]*[%A-Z][A-Z0-9%+/_-]*(?: +[%A-Z][A-Za-z0-9%+/_-]*){4,}[ \t]*\r?$")
_FRAME = re.compile(
    r"[ \t]+(?:at (?:async )?[^\n]{0,400}?[\w>)\]](?:$|\r$)|File \"[^\"\n]{1,300}\", line \d+.*"
    r"|from [^\s:]+:\d+:in .*|\.\.\. \d+ more\r?|\d+: +(?:0x[0-9a-f]+ - )?\S.*"
    r"|at [^\s:]+:\d+(?::\d+)?\r?"
    r"|[^\s:]+\.go:\d+(?: \+0x[0-9a-f]+)?\r?)$"
)
_TRACEBACK = re.compile(r"[ \t]*(?:Exception Group )?Traceback \(most recent call last\):\r?$")
_FILE = re.compile(r"[ \t]*File \"[^\"\n]{1,300}\", line \d+")
_PLACED = re.compile(r"at .*(?:[:(]|\bline )\d|File \"|from |\.go:\d|at |\.\.\. \d|\d+: ")
_WIDE_GAP = re.compile(r"\S {2,}\S|\t")
_FEWEST = 1


def columns(text: str) -> Iterator[Row]:
    """Yield the rows of tables and the frames of traces in a text, in order."""
    lines = [match.span() for match in _LINE.finditer(text)]
    i = 0
    while i < len(lines):
        body = text[slice(*lines[i])]
        first = body.lstrip()[:1]
        if first in ("T", "E") and _TRACEBACK.match(body):
            stop = yield from _traceback(text, lines, i)
            i = stop
            continue
        if first and first in "-+|=─├┌╞═" and _RULED.match(body) and _HAS_JOINT.search(body):
            head = i
            if i > 0 and lines[i - 1][1] + 1 == lines[i][0] and _is_row(text[slice(*lines[i - 1])]):
                head = i - 1
            elif i + 2 < len(lines) and _RULED.match(text[slice(*lines[i + 2])]):
                i += 2  # a line above the names as well
            stop = _below(text, lines, i + 1, is_ruled=True)
            if stop - i > 1:
                yield lines[head][0], lines[i][1], True
                yield from ((*lines[k], False) for k in range(i + 1, stop))
                i = stop
                continue
        elif _is_head(body):
            stop = _below(text, lines, i + 1, is_ruled=False)
            if stop - i > _FEWEST:
                yield *lines[i], True
                yield from ((*lines[k], False) for k in range(i + 1, stop))
                i = stop
                continue
        elif _MODE.match(body) or (body[:1] in " \t" and _is_frame(body)):
            yield *lines[i], False
        i += 1


def is_short_table(text: str) -> bool:
    """Whether a text is a table's head with one row or two, which a budget may have no room for."""
    lines = [line for line in text[:4000].splitlines() if line.strip()]
    if not 2 <= len(lines) <= 3 or len(text) > 4000 or _TRACEBACK.match(lines[0]):
        return False
    rows = list(columns(text))
    return len(rows) == len(lines) and rows[0][2] and not any(is_head for *_, is_head in rows[1:])


def _traceback(text: str, lines: list[tuple[int, int]], i: int) -> Generator[Row, None, int]:
    """Yield what Python prints of an exception from ``i`` on, return the index after it.

    A frame is its place with its code and the marks below; the last row is the exception.
    """
    yield *lines[i], True
    depth = _depth(text, lines[i])
    i += 1
    while i < len(lines) and _FILE.match(text, *lines[i]):
        own = _depth(text, lines[i])
        end = i + 1
        while end < len(lines) and _depth(text, lines[end]) > own:
            end += 1
        yield lines[i][0], lines[end - 1][1], False
        i = end
    if i < len(lines) and _depth(text, lines[i]) == depth and lines[i - 1][1] + 1 == lines[i][0]:
        yield *lines[i], False
        i += 1
    return i


def _depth(text: str, line: tuple[int, int]) -> int:
    body = text[slice(*line)]
    return len(body) - len(body.lstrip())


def _below(text: str, lines: list[tuple[int, int]], i: int, *, is_ruled: bool) -> int:
    """Return the index after the last row from ``i`` on, with no blank line before it."""
    while i < len(lines) and lines[i - 1][1] + 1 == lines[i][0]:
        body = text[slice(*lines[i])]
        if not body.strip() or not (_is_row(body) if is_ruled else _WIDE_GAP.search(body)):
            break
        i += 1
    return i


def _is_head(body: str) -> bool:
    if not _WIDE_GAP.search(body):
        return False
    is_named = bool(_HEAD.match(body)) and len(body.split()) > 2
    return is_named or bool(_NAMES.match(body) or _SHOUTED.match(body))


def _is_row(body: str) -> bool:
    return "|" in body or "│" in body or bool(_WIDE_GAP.search(body)) or bool(_RULED.match(body))


def _is_frame(body: str) -> bool:
    return bool(_FRAME.match(body)) and bool(_PLACED.match(body.lstrip()))
