"""Which punctuation, brackets and list markers stand or fall with which words."""

from __future__ import annotations

import re
from bisect import bisect_right

from .binding import bound
from .governed import parents, scopes
from .numbers import joined_numbers
from .pieces import OPENERS, Piece, pieces
from .units import Unit, Units

_MAX_PAIR = 4000
_MAX_DEPTH = 64
_WRAPPED = 50
_TAG = re.compile(r"<(/?)([A-Za-z][\w:.-]*)")
_OF_TABLE = frozenset(("table", "tag"))
_EMPHASIS = frozenset(("**", "__", "~~", "***", '"'))
_WHOLE = frozenset(("fence", "front", "table"))


def split(text: str) -> Units:
    """Split a text into units.

    Every character is in exactly one unit or in the white space at the end.

    >>> split("- Pay 1,234.56 (now).").content(1)
    'Pay'
    """
    found = bound(text, joined_numbers(text, pieces(text)))
    found, pairs = _glued(found, _pairs(text, found))
    if not any(piece.role == "word" for piece in found):
        for piece in found:
            piece.role = "word"
        pairs = {}
    starts = [0, *(piece.end for piece in found)]
    sentences, lines = _sentences(text, found, starts)
    needs = _needs(found, pairs, sentences, lines)
    for i, governed in _governed(text, found, sentences, lines).items():
        needs[i] = governed
    units = tuple(
        Unit(starts[i], p.body, p.end, p.role, p.kind, sentences[i], needs[i])
        for i, p in enumerate(found)
    )
    return Units(text, units, starts[-1])


def _pairs(text: str, found: list[Piece]) -> dict[int, int]:
    """Match brackets, quotes and emphasis within a paragraph, tags within the text."""
    pairs: dict[int, int] = {}
    stack: list[tuple[str, int]] = []
    tags: dict[str, list[int]] = {}
    at = num_old = 0  # of what is open since an earlier line
    for i, piece in enumerate(found):
        if "\n" in (space := text[at : piece.body]) and space.count("\n") > 1:
            stack.clear()
        elif "\n" in space and stack:
            num_old = min(num_old, len(stack))
            stack[num_old:] = [e for e in stack[num_old:] if found[e[1]].role == "open"]
            num_old = len(stack)
        at = piece.end
        if piece.kind == "tag" and (tag := _TAG.match(text, piece.body)):
            name = tag[2]
            if not tag[1]:
                tags.setdefault(name, []).append(i)
            elif tags.get(name):
                pairs[tags[name].pop()] = i
        elif piece.role == "open":
            stack.append((OPENERS.get(mark := text[piece.body : piece.end], mark), i))
        elif piece.role == "close" or _is_either(text, piece):
            mark = text[piece.body : piece.end]
            is_either = piece.role != "close"
            level = len(stack) - 1
            lowest = max(level - _MAX_DEPTH, -1)
            while level > lowest and stack[level][0] != mark:
                level -= 1
            if level > lowest and piece.body - found[stack[level][1]].body < _MAX_PAIR:
                pairs[stack[level][1]] = i
                found[stack[level][1]].role, piece.role = "open", "close"
                del stack[level:]
            elif is_either:
                stack.append((mark, i))
    return pairs


def _is_either(text: str, piece: Piece) -> bool:
    """Whether a mark may open or close, as ``**`` between scripts without spaces does."""
    if piece.role != "between" or text[piece.body : piece.end] not in _EMPHASIS:
        return False
    around = text[piece.end : piece.end + 1], text[max(piece.body - 1, 0) : piece.body]
    return any(char and not char.isspace() for char in around)


def _glued(found: list[Piece], pairs: dict[int, int]) -> tuple[list[Piece], dict[int, int]]:
    """Give brackets and quotes without a partner to the word they are written against."""
    paired = {*pairs, *pairs.values()}
    glued: list[Piece] = []
    moved: dict[int, int] = {}
    body = None
    for i, piece in enumerate(found):
        if body is not None:
            piece.body, body = body, None
        alone = piece.role in ("open", "close") and i not in paired
        if piece.kind == "tag" and i in paired:
            piece.role = "open" if i in pairs else "close"
        if alone and piece.role == "open" and _touches(found, i + 1):
            body = piece.body
            continue
        if alone and piece.role == "close" and glued and glued[-1].end == piece.body:
            glued[-1].end = piece.end
            continue
        if alone:
            piece.role = "between"
        moved[i] = len(glued)
        glued.append(piece)
    return glued, {moved[a]: moved[b] for a, b in pairs.items()}


def _touches(found: list[Piece], i: int) -> bool:
    return i < len(found) and found[i - 1].end == found[i].body


def _sentences(text: str, found: list[Piece], starts: list[int]) -> tuple[list[int], list[int]]:
    """Return each piece's sentence number, and the indices at which a line begins."""
    numbers: list[int] = []
    lines: list[int] = []
    number, line_at = 0, 0
    for i, piece in enumerate(found):
        space = text[starts[i] : piece.body]
        before = found[i - 1] if i else None
        first = text[piece.body]
        new = before is None
        if before is not None:
            if "\n" in space or "\r" in space or "\u2028" in space:
                wrapped = (
                    starts[i] - line_at > _WRAPPED and first.islower() and space.count("\n") == 1
                )
                new = not wrapped or piece.kind in _WHOLE or before.kind in _WHOLE
                new = new or piece.role == "mark" or before.role == "end"
                line_at = piece.body
                if new:
                    lines.append(i)
            elif before.role == "end":
                wide = text[before.body] in "。！？｡"
                new = piece.role not in ("close", "end") and (
                    wide or (bool(space) and not first.islower())
                )
            elif before.kind in _WHOLE or piece.kind in _WHOLE:
                new = True
        number += new and i > 0
        numbers.append(number)
    return numbers, lines


def _needs(
    found: list[Piece], pairs: dict[int, int], sentences: list[int], lines: list[int]
) -> list[tuple[tuple[int, int], ...]]:
    """Return for each piece the ranges of indices that must hold a kept word."""
    count = len(found)
    begins = _runs(sentences)
    words_before, words_after = _nearest_words(found)
    closes = {b: a for a, b in pairs.items()}
    needs: list[tuple[tuple[int, int], ...]] = []
    depth: list[int] = []
    for i, piece in enumerate(found):
        if piece.role == "word":
            needs.append(())
            continue
        first, last = begins[sentences[i]]
        before, after = words_before[i], words_after[i]
        near = (before, before + 1) if before >= first else (0, 0)
        if piece.role == "open":
            depth.append(pairs[i]) if i in pairs else None
            inside = (i + 1, pairs[i]) if i in pairs else (after, min(after + 1, last))
            needs.append((inside,))
        elif piece.role == "close":
            while depth and depth[-1] <= i:
                depth.pop()
            needs.append(((closes[i] + 1, i),) if i in closes else (near,))
        elif piece.role == "end":
            needs.append(((first, i),))
        elif piece.role == "join":
            while depth and depth[-1] <= i:
                depth.pop()
            stop = min(last, depth[-1]) if depth else last
            needs.append((near, (i + 1, stop)))
        elif piece.role == "between":
            needs.append((near, (after, after + 1) if after < last else (0, 0)))
        elif piece.kind == "table":
            stop = i + 1
            while stop < count and found[stop].kind in _OF_TABLE and found[stop].role != "mark":
                stop += 1
            needs.append(((i + 1, stop),))
        else:
            at = bisect_right(lines, i)
            needs.append(((i + 1, lines[at] if at < len(lines) else count),))
    return needs


def _governed(
    text: str, found: list[Piece], sentences: list[int], lines: list[int]
) -> dict[int, tuple[tuple[int, int], ...]]:
    """Return for the words that need others the ranges of which one word must stay."""
    governed: dict[int, tuple[tuple[int, int], ...]] = {}
    hangs = parents(text, found, lines)
    parent: tuple[tuple[int, int], ...] = ()
    borders = {0, *lines}
    under = scopes(text, found, sentences)
    for i, piece in enumerate(found):
        if i in borders:
            parent = (hangs[i],) if i in hangs else ()
        if piece.role != "word":
            continue
        own = (*((j, j + 1) for j in under.get(i, ())), *parent)
        if own:
            governed[i] = own
    return governed


def _runs(sentences: list[int]) -> list[tuple[int, int]]:
    """Return the first index and the one after the last of each sentence."""
    runs: list[tuple[int, int]] = []
    start = 0
    for i in range(1, len(sentences) + 1):
        if i == len(sentences) or sentences[i] != sentences[start]:
            runs.append((start, i))
            start = i
    return runs


def _nearest_words(found: list[Piece]) -> tuple[list[int], list[int]]:
    """Return the index of the word before and after each piece (-1 and the length: none)."""
    count = len(found)
    before, after = [-1] * count, [count] * count
    for i in range(1, count):
        before[i] = i - 1 if found[i - 1].role == "word" else before[i - 1]
    for i in range(count - 2, -1, -1):
        after[i] = i + 1 if found[i + 1].role == "word" else after[i + 1]
    return before, after
