"""Long texts to passages of a handy size, cut where their format allows it."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator

WHOLE = (".xml", ".html", ".toml", ".yaml", ".yml")


def passages(text: str, size: int, name: str = "") -> Iterator[str]:
    r"""Cut a text into pieces of about ``size`` characters.

    Prose and code are cut at paragraph ends, else at line ends: joined, the pieces are the text.
    ``name`` says what else the text is. A JSON array becomes arrays of whole records, a CSV file
    becomes tables of whole rows under its own heading, and what has no such borders (a JSON
    object, XML, YAML, TOML) stays in one piece.

    >>> list(passages("aa\n\nbb\n\ncc", 5))
    ['aa\n\n', 'bb\n\n', 'cc']
    >>> list(passages('[{"a": 1}, {"a": 2}, {"a": 3}]', 20, "x.json"))
    ['[{"a": 1}, {"a": 2}]', '[{"a": 3}]']
    >>> list(passages("id,n\n1,x\n2,y\n3,z\n", 13, "x.csv"))
    ['id,n\n1,x\n2,y\n', 'id,n\n3,z\n']
    """
    lower = name.lower()
    if len(text) <= size or lower.endswith(WHOLE):
        return iter([text] if text else [])
    if lower.endswith(".json"):
        return _records(text, size)
    if lower.endswith((".csv", ".tsv")):
        return _rows(text, size)
    return _paragraphs(text, size)


def _records(text: str, size: int) -> Iterator[str]:
    """Group the records of an array; a text that is no array is one piece."""
    decoder = json.JSONDecoder()
    at = len(text) - len(text.lstrip("\ufeff \t\r\n"))
    if text[at : at + 1] != "[":
        yield text
        return
    records: list[str] = []
    try:
        at += 1
        while (at := _skip(text, at)) < len(text) and text[at] != "]":
            _, end = decoder.raw_decode(text, at)
            records.append(text[at:end])
            at = end
    except (ValueError, RecursionError):
        yield text
        return
    group: list[str] = []
    for record in records:
        if group and sum(map(len, group)) + len(record) > size:
            yield f"[{', '.join(group)}]"
            group = []
        group.append(record)
    if group:
        yield f"[{', '.join(group)}]"


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n,":
        at += 1
    return at


def _rows(text: str, size: int) -> Iterator[str]:
    """Group whole rows, which may hold line breaks in quotes; the first row heads each group."""
    lines = text.splitlines(keepends=True)
    reader = csv.reader(lines)
    rows: list[str] = []
    at = 0
    try:
        for _ in reader:
            rows.append("".join(lines[at : reader.line_num]))
            at = reader.line_num
    except csv.Error:
        yield text
        return
    head, *rest = rows or [""]
    group = ""
    for row in rest:
        if group and len(head) + len(group) + len(row) > size:
            yield head + group
            group = ""
        group += row
    if group or not rest:
        yield head + group


def _paragraphs(text: str, size: int) -> Iterator[str]:
    piece: list[str] = []
    length = 0
    for line in text.splitlines(keepends=True):
        is_break = not line.strip()
        if length + len(line) > size and piece and not is_break:
            yield "".join(piece)
            piece, length = [], 0
        piece.append(line)
        length += len(line)
        if is_break and length > size // 2:
            yield "".join(piece)
            piece, length = [], 0
    if piece:
        yield "".join(piece)
