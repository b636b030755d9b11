"""Words that do not stay without others: a list item's parent, the subject of "only"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from .pieces import Piece
from .scorers.vocabulary import (
    CONDITIONS,
    CONTRASTS,
    EXCEPTIONS,
    LINKS,
    OPENINGS,
    is_negation,
    turns,
)
from .units import Unit

Range = tuple[int, int]

_ITEM = re.compile(r"[-*+•‣◦·]|\(?(?:\d{1,3}|[a-zA-Z])[.)]")
_EDGE = 1e-6
_DEEPEST = 200
_LONGEST = 60
_STOPS = ";:—–(["
_NEVER_NESTED = frozenset(("front", "table"))


def parents(text: str, found: Sequence[Piece], lines: Sequence[int]) -> dict[int, Range]:
    """Return for the first piece of each line that hangs under a list item the item's pieces.

    ``lines`` are the indices at which a line begins, without the first.
    """
    hangs: dict[int, Range] = {}
    stack: list[tuple[int, Range]] = []
    starts = [0, *lines, len(found)]
    for first, stop in pairwise(starts):
        if first >= stop:
            continue
        piece = found[first]
        near = text[max(piece.body - _DEEPEST, 0) : piece.body]
        indent = len(near[near.rfind("\n") + 1 :].expandtabs(4))
        while stack and stack[-1][0] >= indent:
            stack.pop()
        if stack and piece.kind not in _NEVER_NESTED:
            hangs[first] = stack[-1][1]
        if piece.role == "mark" and _ITEM.match(text, piece.body):
            stack.append((indent, (first + 1, stop)))
    return hangs


def leads(text: str, piece: Piece) -> bool:
    """Whether the rest of a sentence needs its first word: "Only admins", "No child"."""
    if piece.kind != "bound" or piece.end - piece.body > 60:
        return False
    return turns(text[piece.body : piece.end].split()[0].lower().replace("’", "'"))


def scopes(
    text: str, found: Sequence[Piece], sentences: Sequence[int]
) -> dict[int, tuple[int, ...]]:
    """Return for words that a negation or condition reaches the pieces that hold these.

    "I don't want to fly before 11" is the contrary without its "don't want": a negation reaches
    the words after it, up to the end of the sentence, a semicolon, colon or dash, "but" and the
    like, and a comma before what may begin another clause. A sentence that it begins it
    reaches as a whole (``leads``). "Stop at six unless told otherwise" is another order without
    its "unless told": an exception reaches the words before it as well. "If the customer is
    not in the list" needs its "not in the list".
    """
    under: dict[int, tuple[int, ...]] = {}
    holder, leader, number, comma, condition = -1, -1, -1, False, -1
    before: list[int] = []
    for i, piece in enumerate(found):
        if sentences[i] != number:
            number, holder, comma, before = sentences[i], -1, False, []
            leader = i if piece.role == "word" and leads(text, piece) else -1
        if piece.role != "word":
            mark = text[piece.body : piece.end]
            comma = mark.startswith(",")
            if mark[:1] in _STOPS:
                holder, before = -1, []
            continue
        words = _first_words(text, piece)
        first = words[0] if words else ""
        if first in CONTRASTS or (comma and (first in LINKS or first in OPENINGS)):
            holder = -1
        comma = False
        if max(holder, leader) >= 0:
            under[i] = (holder if holder >= 0 else leader,)
        if piece.kind == "bound" and any(map(turns, words)):
            if holder == condition >= 0 and any(map(is_negation, words)):
                under[holder] = (*under.get(holder, ()), i)
            condition = i if not CONDITIONS.isdisjoint(words) else -1
            holder = i
            if not EXCEPTIONS.isdisjoint(words):
                for other in before:
                    under[other] = (*under.get(other, ()), i)
        before.append(i)
    return under


def _first_words(text: str, piece: Piece) -> list[str]:
    return (
        text[piece.body : min(piece.end, piece.body + _LONGEST)].lower().replace("’", "'").split()
    )


def lifted(units: Sequence[Unit], scores: Sequence[float]) -> list[float]:
    """Return the scores with what a word needs no lower than the word."""
    raised = list(scores)
    best: dict[Range, int | None] = {}
    needy = [i for i, unit in enumerate(units) if unit.role == "word" and unit.needs]
    for order in (reversed(needy), needy, reversed(needy)):  # needs of needs, on both sides
        for i in order:
            for need in units[i].needs:
                if need not in best:
                    words = [j for j in range(*need) if units[j].role == "word"]
                    best[need] = max(words, key=lambda j: scores[j], default=None)
                top = best[need]
                if top is not None and raised[top] <= raised[i]:
                    raised[top] = min(raised[i] + _EDGE, 1.0)
    return raised


def without_orphans(
    units: Sequence[Unit], kept: Sequence[bool], forced: frozenset[int]
) -> list[bool]:
    """Return which words stay of ``kept``: those whose needs are met, and the forced ones."""
    chosen = [keep and unit.role == "word" for keep, unit in zip(kept, units, strict=True)]
    needy = [i for i, keep in enumerate(chosen) if keep and units[i].needs and i not in forced]
    while needy:
        met: dict[Range, bool] = {}
        left: list[int] = []
        for i in needy:
            for need in units[i].needs:
                if need not in met:
                    met[need] = any(chosen[need[0] : need[1]])
                if not met[need]:
                    chosen[i] = False
                    break
            else:
                left.append(i)
        if len(left) == len(needy):
            break
        needy = left
    return chosen
