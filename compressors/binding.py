"""Small words that turn or limit a statement, bound to the word they govern."""

from __future__ import annotations

from collections.abc import Sequence

from .counted import counted
from .pieces import Piece
from .scorers.vocabulary import (
    AUXILIARIES,
    DEADLINES,
    DENIALS,
    LINKS,
    PHRASES,
    STOP_WORDS,
    binds,
    clause,
    is_negation,
    language,
)

_REACH = 4
_MOST = 8
_BACK = 3
_SAMPLE = 2000
_LONGEST = 18
_NOTS = frozenset(("not", "never", "hardly", "barely"))
_VERBS = frozenset(("do", "does", "did", "can", "will", "could", "would", "should"))
_WHOLE = frozenset(("fence", "front", "table", "json", "data", "comment", "tag", "pair"))


def bound(text: str, found: Sequence[Piece]) -> list[Piece]:
    """Return the pieces with each binder and the next content word as one of kind "bound".

    "do not ever send" holds "not ever send", "less than 5 kg" is one piece. A negation at the end
    of its clause goes with the content word before it ("zahlt nicht"). Only white space may lie
    between, and no end of a line but that of wrapped prose.
    """
    found = _stressed(text, found)
    words = [_plain(text, piece) for piece in found]
    sample = [word for word in words[:_SAMPLE] if word]
    tongue = language(sample)
    stop = LINKS | STOP_WORDS["en"] | STOP_WORDS[tongue]
    found = counted(text, _conditions(text, found, words), stop, tongue)
    words = [_plain(text, piece) for piece in found]
    merged: list[Piece] = []
    i = 0
    while i < len(found):
        is_binder = _is_binder(words, i) or _is_deadline(text, found, words, i, stop)
        last = _last(text, found, words, i, stop) if is_binder else i
        whole = Piece(found[i].body, found[last].end, "word", "bound")
        is_last = _ends(words[i : last + 1]) and (last > i or is_negation(words[i]))
        if is_last and _bind_back(text, merged, whole, stop):
            merged[-1].end, merged[-1].kind = whole.end, "bound"
        elif last > i:
            merged.append(whole)
        else:
            merged.append(found[i])
        i = last + 1
    return merged


def _plain(text: str, piece: Piece) -> str:
    """Return a short word in lower case, nothing for all else."""
    if piece.role != "word" or piece.kind != "word" or piece.end - piece.body > _LONGEST:
        return ""
    word = text[piece.body : piece.end].lower().replace("’", "'").strip("*_")
    return "unless" if " " in word and clause(word.split()) else word


def _stressed(text: str, found: Sequence[Piece]) -> list[Piece]:
    """Return the pieces with a negation in emphasis (``*not*``) as one word."""
    merged: list[Piece] = []
    for piece in found:
        opened = len(merged) > 1 and merged[-2].role == "open" and piece.role == "close"
        if opened and text[piece.body] in "*_" and is_negation(_plain(text, merged[-1])):
            merged[-2:] = [Piece(merged[-2].body, piece.end)]
        else:
            merged.append(piece)
    return merged


def _is_binder(words: Sequence[str], i: int) -> bool:
    word = words[i]
    if not word:
        return False
    after = words[i + 1] if i + 1 < len(words) else ""
    return binds(word) or _is_pair(word, after) or (word in AUXILIARIES and after in _NOTS)


def _is_pair(word: str, after: str) -> bool:
    return after in PHRASES.get(word, ()) or after in DENIALS.get(word, ())


def _ends(words: Sequence[str]) -> bool:
    """Whether this is a negation alone, or one with its auxiliary: its verb stands before it."""
    return is_negation(words[-1]) and (
        len(words) == 1 or (len(words) == 2 and words[0] in AUXILIARIES and words[1] in _NOTS)
    )


def _is_deadline(
    text: str, found: Sequence[Piece], words: Sequence[str], i: int, stop: frozenset[str]
) -> bool:
    """Whether a word such as *before* stands before a date or number, as "vor dem 5. Mai"."""
    at = i
    if words[i] not in DEADLINES:
        return False
    while at - i < _BACK and _follows(text, found, at):
        at += 1
        if not words[at]:
            return found[at].kind == "number"
        if words[at] not in stop:
            return words[at][0].isdigit()
    return False


def _conditions(text: str, found: Sequence[Piece], words: Sequence[str]) -> list[Piece]:
    """Return the pieces with each condition of several words as one of kind "bound"."""
    merged: list[Piece] = []
    i = 0
    while i < len(found):
        last = i + max(clause(words[i : i + _MOST]) - 1, 0) if words[i] else i
        if all(_follows(text, found, j) for j in range(i, last)):
            whole = Piece(found[i].body, found[last].end, found[i].role, found[i].kind)
        else:
            whole, last = found[i], i
        merged.append(whole)
        i = last + 1
    return merged


def _last(
    text: str, found: Sequence[Piece], words: Sequence[str], first: int, stop: frozenset[str]
) -> int:
    """Return the index of the word that the binder at ``first`` governs, ``first`` if none."""
    since, i = 0, first
    while i - first < _MOST and since < _REACH and _follows(text, found, i):
        i += 1
        word = words[i]
        if word and (binds(word) or _is_pair(words[i - 1], word)):
            since = 0
        elif word and word in stop and not _is_verb(words, i, first):
            since += 1
        else:
            return _beyond(text, found, words, i, words[first])
    return i


def _is_verb(words: Sequence[str], i: int, first: int) -> bool:
    """Whether the verb of "does not mean" is here, though it is a small word elsewhere."""
    return (
        i == first + 2
        and words[first] in _VERBS
        and words[i - 1] in _NOTS
        and words[i] not in LINKS
    )


def _beyond(text: str, found: Sequence[Piece], words: Sequence[str], i: int, binder: str) -> int:
    """Go on past a verb to the rest of ne ... pas."""
    if not _follows(text, found, i):
        return i
    after = words[i + 1]
    is_split = binder == "ne" or binder.startswith("n'")
    return i + 1 if is_split and is_negation(after) else i


def _follows(text: str, found: Sequence[Piece], i: int) -> bool:
    """Whether the next piece is a word of the same clause."""
    if i + 1 >= len(found) or found[i + 1].role != "word" or found[i + 1].kind in _WHOLE:
        return False
    start, body = found[i].end, found[i + 1].body
    if body - start == 1 and text[start] == " ":
        return True
    return start < body and _is_one_line(text, start, body)


def _is_one_line(text: str, start: int, body: int) -> bool:
    space = text[start:body]
    if len(space.splitlines()) <= 1 and space[-1] not in "\n\r\u2028":
        return True
    return text[body].islower() and space.count("\n") == 1


def _bind_back(text: str, merged: list[Piece], piece: Piece, stop: frozenset[str]) -> bool:
    """Join to ``merged[-1]`` all from the content word before a negation, if there is one."""
    at, end = len(merged), piece.body
    while at and len(merged) - at < _BACK:
        at -= 1
        before = merged[at]
        near = before.end < end and _is_one_line(text, before.end, end)
        if before.role != "word" or before.kind not in ("word", "number", "bound") or not near:
            return False
        if before.kind == "bound" or text[before.body : before.end].lower() not in stop:
            merged[at:] = [Piece(before.body, merged[-1].end, "word", "bound")]
            return True
        end = before.body
    return False
