"""Words that do not stay without others: a list item's parent, the subject of "only"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from .pieces import Piece
from .scorers.vocabulary import (
    AUXILIARIES,
    CONDITIONS,
    CONTRASTS,
    EXCEPTIONS,
    LINKS,
    OPENINGS,
    RELATIVES,
    clause,
    denies,
    is_negation,
    turns,
)
from .units import Unit

Range = tuple[int, int]

_ITEM = re.compile(r"[-*+•‣◦·]|\(?(?:\d{1,3}|[a-zA-Z])[.)]")
_EDGE = 1e-6
_DEEPEST = 200
_LONGEST = 60
_INSERTS = ",—–-("
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
    reaches as a whole (``leads``); a relative clause needs its own ("which it does not have"), and
    so does the rest of a sentence after an insertion ("do not, whatever you do, open"). "Stop at
    six unless told otherwise" is another order without its "unless told": an exception reaches
    the words before it as well. "If the customer is not in the list" needs its "not in the list".
    """
    under: dict[int, tuple[int, ...]] = {}
    holder, leader, number, comma, condition = -1, -1, -1, False, -1
    split, waits = -1, False  # a negation before an insertion, and whether its verb is to come
    before: list[int] = []
    relative: list[int] = []

    def need(i: int, other: int) -> None:
        if other not in under.get(i, ()):
            under[i] = (*under.get(i, ()), other)

    for i, piece in enumerate(found):
        if sentences[i] != number:
            number, holder, comma, before, relative, split = sentences[i], -1, False, [], [], -1
            leader = i if piece.role == "word" and leads(text, piece) else -1
        if piece.role != "word":
            mark = text[piece.body : piece.end]
            comma = mark.startswith(",") and not (
                holder == i - 1 >= 0 and _is_clause(text, found[i - 1])
            )
            if comma:
                relative = []
            if mark[:1] in _STOPS:
                holder, before, relative = -1, [], []
                split = -1 if mark[:1] in ";:" else split
            continue
        words = _first_words(text, piece)
        first = words[0] if words else ""
        is_clause = clause(words) > 0
        is_other = is_clause or first in CONTRASTS or first in LINKS or first in OPENINGS
        if first in CONTRASTS or (comma and is_other):
            holder = -1
        if relative or (comma and first in RELATIVES):
            relative.append(i)
        if split >= 0:
            need(i, split)
            if waits and comma and not is_other and i > split + 2:
                need(split, i)
                waits = False
        comma = False
        if max(holder, leader) >= 0:
            need(i, holder if holder >= 0 else leader)
            is_led = holder == i - 2 >= 0 and found[i - 1].role != "word"
            if is_led and _is_clause(text, found[holder]):
                need(holder, i)
        if is_clause or (piece.kind == "bound" and denies(words)):
            negates = any(map(is_negation, words))
            if holder == condition >= 0 and negates:
                need(holder, i)
            is_condition = is_clause or not CONDITIONS.isdisjoint(words)
            condition = i if is_condition else -1
            holder = i
            if is_clause or not EXCEPTIONS.isdisjoint(words):
                for other in before:
                    need(other, i)
                before = []  # a later one reaches them through this one
            if negates:
                for other in relative[:-1]:
                    need(other, i)
                    need(i, relative[0])
                relative = []
            if split < 0 and _is_parted(text, found, i, words):
                split, waits = i, True
        before.append(i)
    return under


def _is_clause(text: str, piece: Piece) -> bool:
    return piece.role == "word" and clause(_first_words(text, piece)) > 0


def _is_parted(text: str, found: Sequence[Piece], i: int, words: Sequence[str]) -> bool:
    """Whether an insertion parts a negated auxiliary from its verb: "do not, whatever you do,"."""
    if not words or i + 2 >= len(found) or found[i + 1].role == "word":
        return False
    is_negated = words[-1] in ("cannot", "never") or words[-1].endswith("n't")
    if not is_negated and not (words[-1] == "not" and words[-2:-1] and words[-2] in AUXILIARIES):
        return False
    after = _first_words(text, found[i + 2])
    return text[found[i + 1].body] in _INSERTS and after[:1] != [] and after[0] not in CONTRASTS


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
