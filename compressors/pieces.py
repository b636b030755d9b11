"""Text to pieces: protected regions, words with their punctuation peeled off."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from .blocks import Region, blocks
from .graphemes import joins_previous
from .patterns import ABBREVIATION, MARKER, PATTERNS
from .units import Role
from .wide import WIDE, wide_pieces

OPENERS = {"(": ")", "[": "]", "{": "}", "“": "”", "„": "“", "‘": "’", "«": "»", "‹": "›"} | {
    "（": "）", "「": "」", "『": "』", "【": "】", "《": "》", "〈": "〉", "〔": "〕", "［": "］"
}  # fmt: skip
"""Brackets and quotes that come in pairs."""
SYMMETRIC = frozenset("\"'*_~")
"""Marks that open and close alike."""

_CHUNK = re.compile(r"\S+")
_INNER = re.compile(r"(?<=\w)(?:—|--|…|\.{3,})(?=[\w\"“(])")
_LIST = re.compile(r"(?<=[^\s;]);(?=[^\s;])")
_LONG = 120
_RUN = re.compile(r"[.!?…؟।]+|([*_~])\1*|.", re.DOTALL)
_CLOSERS = frozenset(OPENERS.values()) | SYMMETRIC
_ENDS = frozenset(".!?…؟।")
_JOINS = frozenset(",;:،؛")
_TRAIL = _CLOSERS | _ENDS | _JOINS
_LEAD = frozenset(OPENERS) | SYMMETRIC | frozenset("¿¡")
_KNOWN = _TRAIL | _LEAD
_EXTENDED = frozenset(("code", "template"))


@dataclass(slots=True)
class Piece:
    """A unit in the making."""

    body: int
    end: int
    role: Role = "word"
    kind: str = "word"


def pieces(text: str) -> list[Piece]:
    """Return the pieces of a text in order; between them is only white space."""
    found: list[Piece] = []
    at = 0
    for region in _regions(text):
        found.extend(_chunks(text, at, region.start))
        role: Role = "mark" if region.head or region.kind == "mark" else "word"
        found.append(Piece(region.start, region.end, role, region.kind))
        at = region.end
    found.extend(_chunks(text, at, len(text)))
    return _whole_graphemes(text, found)


def _regions(text: str) -> list[Region]:
    candidates: list[tuple[int, int, int, Region]] = []
    for region in blocks(text):
        candidates.append((region.start, -1, -region.end, region))
    for match in MARKER.finditer(text):
        start, end = match.span("mark")
        end = start + len(text[start:end].rstrip())
        candidates.append((start, 0, -end, Region(start, end, "mark")))
    for rank, (kind, pattern) in enumerate(PATTERNS, 1):
        for match in pattern.finditer(text):
            group = kind if kind in pattern.groupindex else 0
            region = _extended(text, Region(*match.span(group), kind))
            candidates.append((region.start, rank, -region.end, region))
    candidates.sort(key=lambda candidate: candidate[:3])
    solid = [c[3] for c in candidates if c[1] == -1]
    chosen: list[Region] = []
    at, border = 0, 0
    for start, rank, _, region in candidates:
        while border < len(solid) and solid[border].end <= start:
            border += 1
        inside = rank != -1 and border < len(solid) and solid[border].start < region.end
        if at <= start < region.end and not inside:
            chosen.append(region)
            at = region.end
    return chosen


def _extended(text: str, region: Region) -> Region:
    """Grow over what is written against it (``file_{n}.txt``), trim what is not its own."""
    start, end = region.start, region.end
    if region.kind in _EXTENDED and text[start] != "<" and not text.startswith("[", start):
        while start and _is_word(text[start - 1]) and region.start - start < _LONG:
            start -= 1
        while end < len(text) and (
            _is_word(text[end])
            or (text[end] in "._-/" and end + 1 < len(text) and _is_word(text[end + 1]))
        ):
            end += 1
    elif region.kind == "number":
        while start and _continues(text, start - 1, start - 2):
            start -= 1
            if region.start - start > _LONG:
                return Region(end, end, region.kind)
        while end < len(text) and _continues(text, end, end + 1):
            end += 1
            if end - region.end > _LONG:
                return Region(end, end, region.kind)
    elif region.kind == "url" and text[start] != "<":
        while end > max(start + 1, region.end - 64) and text[end - 1] in ".,;:!?'\"*_~)]}>":
            pair = {")": "(", "]": "[", "}": "{"}.get(text[end - 1])
            body = text[start:end]
            if pair and body.count(pair) >= body.count(text[end - 1]):
                break
            end -= 1
    return Region(start, end, region.kind)


def _continues(text: str, at: int, beyond: int) -> bool:
    """Whether a number goes on here: a word character, or a sign between digits."""
    if text[at] in "-–.,:/+'’":
        return 0 <= beyond < len(text) and text[beyond].isdigit()
    return _is_word(text[at])


def _is_word(char: str) -> bool:
    return (char.isalnum() or char == "_") and not WIDE.match(char)


def _chunks(text: str, start: int, end: int) -> Iterator[Piece]:
    for match in _CHUNK.finditer(text, start, end):
        chunk = match[0]
        if chunk.isalnum() and chunk.isascii():
            yield Piece(match.start(), match.end())
        elif chunk.isascii() or not WIDE.search(chunk):
            yield from _dashed(text, *match.span())
        else:
            for a, b, what in wide_pieces(text, *match.span()):
                if what == "other":
                    yield from _dashed(text, a, b)
                elif what in ("open", "close", "end", "join"):
                    yield Piece(a, b, cast("Role", what), "mark")
                else:
                    yield Piece(a, b, "word", "particle" if what == "particle" else "word")


def _dashed(text: str, start: int, end: int) -> Iterator[Piece]:
    cuts = _LIST if end - start > _LONG and not text.startswith("data:", start) else _INNER
    for match in cuts.finditer(text, start, end):
        yield from _peeled(text, start, match.start())
        yield Piece(*match.span(), "join", "dash")
        start = match.end()
    yield from _peeled(text, start, end)


def _peeled(text: str, start: int, end: int) -> Iterator[Piece]:
    a = start
    while a < end and text[a] in _LEAD:
        a += 1
    b = end
    while b > a and text[b - 1] in _TRAIL and not _is_own(text, a, b):
        b -= 1
    if a >= b:
        yield from _marks(text, start, end)
        return
    yield from _marks(text, start, a, "open")
    core = text[a:b]
    if any(char.isalnum() for char in core) or ord(max(core)) > 0x2000:
        yield Piece(a, b)
    else:
        yield Piece(a, b, "between", "mark")
    yield from _marks(text, b, end, "close")


def _is_own(text: str, start: int, end: int) -> bool:
    """Whether the last character belongs to the word: ``f(x)``, ``U.S.``."""
    last = text[end - 1]
    if last in ")]}":
        opener = {")": "(", "]": "[", "}": "{"}[last]
        body = text[start:end]
        return body.count(opener) >= body.count(last)
    return last == "." and ABBREVIATION.fullmatch(text, start, end) is not None


def _marks(text: str, start: int, end: int, side: Role = "between") -> Iterator[Piece]:
    """Yield punctuation; ``side`` is what quotes and emphasis are here, which look alike."""
    for match in _RUN.finditer(text, start, end):
        first = match[0][0]
        role = side
        if first in _ENDS:
            role = "end"
        elif first in _JOINS:
            role = "join"
        elif first in OPENERS or first in "¿¡":
            role = "open"
        elif first in OPENERS.values():
            role = "close"
        yield Piece(*match.span(), role if first in _KNOWN else "between", "mark")


def _whole_graphemes(text: str, found: list[Piece]) -> list[Piece]:
    whole: list[Piece] = []
    for piece in found:
        if joins_previous(text, piece.body):
            if whole and whole[-1].end == piece.body:
                last = whole[-1]
                role: Role = "word" if "word" in (last.role, piece.role) else last.role
                whole[-1] = Piece(last.body, piece.end, role, last.kind)
                continue
            piece.body -= 1
        whole.append(piece)
    return whole
