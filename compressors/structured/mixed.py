"""Texts with records among their words: where the records lie, and the words that may go."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ..render import Span
from .loose import Record
from .nodes import Node
from .view import merged, minus

_FIRST = re.compile(r"[^\w\s]*\s*")
_LABEL = re.compile(r"(?:[^\s\w]*\w\S*[ \t]*+)?[^\w\s]*\s*\Z")
_FEWEST = 8  # words between two records that may be cut
_OUTSIDE = re.compile(r"[{}\[\]#]|//|/\*|[\"']\s{0,4}:")


def nodes_of(records: Sequence[Record]) -> list[Node]:
    """Return the values of all records as one list."""
    nodes: list[Node] = []
    for record in records:
        first = len(nodes)
        for node in record.nodes:
            parent = node.parent + first if node.parent >= 0 else -1
            nodes.append(
                replace(node, parent=parent, children=[child + first for child in node.children])
            )
    return nodes


def between(text: str, records: Sequence[Record], fences: Sequence[Span] = ()) -> list[Span]:
    """Return the words around the records that may be cut.

    The last word before a record stays, since it may be its name, and a few words stay whole.
    ``fences`` are blocks that stay with a record in them.
    """
    kept = [(record.start, record.end) for record in records]
    kept += [(a, b) for a, b in fences if any(a < end and start < b for start, end in kept)]
    found: list[Span] = []
    for start, end in minus([(0, len(text))], merged(kept)):
        if start and (first := _FIRST.match(text, start, end)):
            start = first.end()
        if end < len(text) and (label := _LABEL.search(text, start, end)):
            end = label.start()
        end = start + len(text[start:end].rstrip())
        if len(text[start:end].split()) >= _FEWEST:
            found.append((start, end))
    return found


def is_all(text: str, records: Sequence[Record]) -> bool:
    """Whether nothing outside the records looks like a part of one, or a comment."""
    spans = minus([(0, len(text))], [(record.start, record.end) for record in records])
    return bool(records) and not any(_OUTSIDE.search(text, a, b) for a, b in spans)
