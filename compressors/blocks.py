"""Regions of several lines that are kept whole or dropped whole."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from .columns import columns
from .diffs import diffs
from .parts import code_paragraphs
from .structured.loose import records

_FENCE = re.compile(
    r"^[ \t]{0,3}(?:[-*+>][ \t]++|\d{1,9}\.[ \t]++)?[ \t]*+(?P<fence>`{3,}|~{3,})", re.MULTILINE
)
_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(?:.*\n){1,60}?---[ \t]*$", re.MULTILINE)
_RULE = re.compile(
    r"^(?=[^\n]*\|)(?=[^\n]*-)[ \t]*+\|?[ \t]*+:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$",
    re.MULTILINE,
)
_HTML_ROW = re.compile(
    r"<thead\b(?:(?!</?thead\b).){0,4000}</thead\s*>|<tr\b(?:(?!</?tr\b).){0,4000}</tr\s*>",
    re.DOTALL | re.IGNORECASE,
)
_RECORD = re.compile(r"\{\s*(?=[\"}])|\[\s*(?=[\[{\"\d-])")


@dataclass(frozen=True, slots=True)
class Region:
    """Characters ``start`` to ``end`` that stay together.

    ``kind`` is the pattern's name; ``head`` marks the heading rows of a table, which are kept
    with any of the rows below them.
    """

    start: int
    end: int
    kind: str
    head: bool = False


def blocks(text: str) -> list[Region]:
    """Return front matter, code, diffs, table rows, frames and JSON values, in order, disjoint."""
    taken: list[Region] = []
    if front := _FRONT.search(text):
        taken.append(Region(front.start() + text.startswith("\ufeff"), front.end(), "front"))
    found = sorted(
        (*fenced(text), *_tables(text), *_html_rows(text)), key=lambda region: region.start
    )
    for region in found:
        if not taken or region.start >= taken[-1].end:
            taken.append(region)
    patches = (Region(start, end, "fence") for start, end in diffs(text))
    taken = _merge(taken, patches)
    taken = _merge(taken, (_line(text, a, b, head=head) for a, b, head in columns(text)))
    code = (Region(start, end, "fence") for start, end in code_paragraphs(text))
    loose = (Region(one.start, one.end, "json") for one in records(text))
    return _merge(_merge(_merge(taken, code), loose), _records(text))


def _merge(first: list[Region], second: Iterator[Region]) -> list[Region]:
    kept = list(first)
    borders = iter(first)
    border = next(borders, None)
    for region in second:
        while border is not None and border.end <= region.start:
            border = next(borders, None)
        if border is None or border.start >= region.end:
            kept.append(region)
    return sorted(kept, key=lambda region: region.start)


def fenced(text: str) -> Iterator[Region]:
    """Yield fences (CommonMark 0.31, section 4.5): an unclosed one runs to the end of the text."""
    at = 0
    while opening := _FENCE.search(text, at):
        fence = opening["fence"]
        closing = re.compile(rf"^[ \t]*{fence[0]}{{{len(fence)},}}[ \t]*\r?$", re.MULTILINE)
        line_end = text.find("\n", opening.end())
        info = text[opening.end() : line_end if line_end >= 0 else len(text)]
        if (fence[0] == "`" and "`" in info) or info.strip().startswith("^"):
            # inline code, or what Python prints under the code of a frame
            at = opening.end()
            continue
        closed = closing.search(text, line_end) if line_end >= 0 else None
        end = closed.end() if closed else len(text.rstrip())
        end -= closed is not None and text[end - 1] == "\r"
        yield Region(opening.start("fence"), end, "fence")
        at = max(end, opening.end())


def _tables(text: str) -> Iterator[Region]:
    """GitHub Flavored Markdown 0.29, section 4.10: heading row, delimiter row, rows with pipes."""
    end = 0
    for rule in _RULE.finditer(text):
        if rule.start() < end:
            continue
        head = text.rfind("\n", 0, max(rule.start() - 1, 0)) + 1
        heading = text[head : max(rule.start() - 1, 0)]
        if "|" not in heading or head < end:
            continue
        rows = list(_rows(text, rule.end()))
        yield _line(text, head, rule.end(), head=bool(rows))
        yield from rows
        end = rows[-1].end if rows else rule.end()


def _html_rows(text: str) -> Iterator[Region]:
    """Rows of HTML tables; a row without data cells is a heading."""
    for row in _HTML_ROW.finditer(text):
        body = row[0].lower()
        yield Region(*row.span(), "table", "<th" in body and "<td" not in body)


def _rows(text: str, at: int) -> Iterator[Region]:
    while at < len(text) and text[at] == "\n":
        stop = text.find("\n", at + 1)
        stop = stop if stop >= 0 else len(text)
        if "|" not in text[at + 1 : stop]:
            return
        yield _line(text, at + 1, stop)
        at = stop


def _line(text: str, start: int, end: int, *, head: bool = False) -> Region:
    body = text[start:end]
    return Region(start + len(body) - len(body.lstrip()), start + len(body.rstrip()), "table", head)


def _records(text: str) -> Iterator[Region]:
    """JSON objects and arrays inside prose. Gives up on a text with many that do not parse."""
    decoder = json.JSONDecoder()
    at, failures = 0, 0
    while failures < 64 and (opening := _RECORD.search(text, at)):
        start = opening.start()
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            failures += 1
            at = start + 1
            continue
        at = end
        if value and end - start > 4:
            yield Region(start, end, "json")
