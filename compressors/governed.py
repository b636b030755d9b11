"""Words that do not stay without others: a list item's parent, the subject of "only"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from .pieces import Piece
from .scorers.vocabulary import turns
from .units import Unit

Range = tuple[int, int]

_ITEM = re.compile(r"[-*+•‣◦·]|\(?(?:\d{1,3}|[a-zA-Z])[.)]")
_EDGE = 1e-6
_DEEPEST = 200
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


def lifted(units: Sequence[Unit], scores: Sequence[float]) -> list[float]:
    """Return the scores with what a word needs no lower than the word."""
    raised = list(scores)
    best: dict[Range, int | None] = {}
    for i in range(len(units) - 1, -1, -1):
        if units[i].role != "word":
            continue
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
    met: dict[Range, bool] = {}
    for i in [i for i, keep in enumerate(chosen) if keep and units[i].needs]:
        if i in forced:
            continue
        for need in units[i].needs:
            if need not in met:
                met[need] = any(chosen[need[0] : need[1]])
            if not met[need]:
                chosen[i] = False
                break
    return chosen
