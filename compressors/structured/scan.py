"""Where the values of a JSON text lie, without changing a character of it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..render import Span
from .nodes import ESCAPE, Kind, Node, Path, char_of
from .view import Stretch

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"\ufeff]+', re.DOTALL)


def scan(text: str) -> list[Node]:
    """Return the values of a text that parses as JSON or JSON Lines, in order (RFC 8259).

    Iterative, so any depth will do. A key that comes twice is two nodes.
    """
    nodes: list[Node] = []
    open_: list[int] = []
    num_top = 0
    key: tuple[str, int] | None = None
    previous: re.Match[str] | None = None
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in "}]":
            nodes[open_.pop()].end = token.end()
        elif mark == ":":
            assert previous is not None  # a colon follows its key: the text parses
            key = decoded(text, previous.start() + 1, previous.end() - 1)[0], previous.start()
            nodes.pop()  # the key was taken for a value
            nodes[open_[-1]].children.pop()
        elif mark != ",":
            parent = open_[-1] if open_ else -1
            siblings = nodes[parent].children if open_ else None
            step: str | int = num_top if siblings is None else len(siblings)
            member = token.start()
            if key is not None:
                (step, member), key = key, None
            if siblings is None:
                num_top += 1
            else:
                siblings.append(len(nodes))
            kind: Kind = "other"
            if mark == "{":
                kind = "object"
            elif mark == "[":
                kind = "array"
            elif mark[0] == '"':
                kind = "string"
            if mark in "{[":
                open_.append(len(nodes))
            nodes.append(Node(kind, token.start(), token.end(), member, parent, step, []))
        previous = token
    return nodes


def path_of(nodes: Sequence[Node], index: int, *, lines: bool) -> Path:
    """Return the keys and places that lead to a node; a row of JSON Lines has its number."""
    steps: list[str | int] = []
    while index >= 0:
        node = nodes[index]
        if node.parent >= 0 or lines:
            steps.append(node.step)
        index = node.parent
    return tuple(reversed(steps))


def decoded(text: str, start: int, end: int) -> tuple[str, list[Stretch]]:
    """Return what the inside of a JSON string says, and where each part of it comes from.

    An escape, and a surrogate pair of two, is one stretch: it can't be cut.
    """
    parts: list[str] = []
    stretches: list[Stretch] = []
    at, place = start, 0

    def add(part: str, a: int, b: int) -> None:
        nonlocal place
        if part:
            parts.append(part)
            stretches.append(Stretch(place, len(part), a, b))
            place += len(part)

    for escape in ESCAPE.finditer(text, start, end):
        add(text[at : escape.start()], at, escape.start())
        add(char_of(escape[0]), *escape.span())
        at = escape.end()
    add(text[at:end], at, end)
    return "".join(parts), stretches


def without(nodes: Sequence[Node], gone: set[int]) -> list[Span]:
    """Return the spans to cut so that these members and their commas are gone."""
    cuts: list[Span] = []
    families: dict[int, list[int]] = {}
    for index in gone:
        families.setdefault(nodes[index].parent, [])
    for parent in families:
        siblings = (
            nodes[parent].children
            if parent >= 0
            else [i for i, node in enumerate(nodes) if node.parent < 0]
        )
        any_before = False
        for place, index in enumerate(siblings):
            node = nodes[index]
            if index not in gone:
                any_before = True
            elif any_before:
                cuts.append((nodes[siblings[place - 1]].end, node.end))
            elif place + 1 < len(siblings):
                cuts.append((node.member, nodes[siblings[place + 1]].member))
            else:
                cuts.append((node.member, node.end))
    return cuts
