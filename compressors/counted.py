"""Numbers with what they count, as one unit: "1,200 kilograms", "12 times a minute"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .pieces import Piece
from .scorers.vocabulary import FREQUENCIES, QUALITIES, RATES, YEARS, binds

_NUMBER = r"(?:\d{1,3}(?:[.,'’ \u00a0\u202f]\d{3}){1,6}(?:[.,]\d{1,20})?|\d{1,20}(?:[.,]\d{1,20})?)"
_SCALE = (
    r"(?:[ \u00a0](?:hundred|thousand|[mb]illions?|trillion|Millionen|Milliarden|M(?:io|rd)\.?"
    r"|tausend|milliards?|mil(?:lones|l[ei]|ioni)?|miliardi|тыс(?:\.|яч\w?)|мл(?:н|рд)\.?|миллион\w{0,2}"
    r"|de|di))*"
)
_COUNT = re.compile(
    rf"(?:[A-Za-zα-ω]{{1,2}}[ ]?[<>=≤≥≈])?[<>≤≥≈~±+−-]?[ ]?{_NUMBER}"
    rf"(?:(?:[ ]?[–-][ ]?|[ ][^\W\d_]{{1,7}}[ ](?:the[ ])?){_NUMBER})?{_SCALE}"
)
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_QUALITY = re.compile(r"\w{2,}(?:ous|ive|able|ible|ful|less|al|ic|ed|ing|ых|их)")
_LONGEST = 60


def counted(text: str, found: Sequence[Piece], stop: frozenset[str], tongue: str) -> list[Piece]:
    """Return the pieces with each bare number and what it counts as one of kind "number".

    What it counts is the content word right after it, in lower case (German nouns aside), with
    words of quality before it ("12 new patients") and a rate behind it ("a minute", "per head").
    ``stop`` are the function words of the text, ``tongue`` is its language. A year after "in" or
    "since" counts nothing. Grammar is not known: "on day 3 rain fell" has "3 rain" as well.
    """
    merged: list[Piece] = []
    i = 0
    while i < len(found):
        last = i
        if _is_number(text, found[i]):
            last = _things(text, found, i, stop, tongue)
            last = _rate(text, found, last, stop)
        kind = "number" if last > i else found[i].kind
        merged.append(Piece(found[i].body, found[last].end, found[i].role, kind))
        i = last + 1
    return merged


def _is_number(text: str, piece: Piece) -> bool:
    if piece.role != "word" or piece.kind not in ("word", "number"):
        return False
    near = text[piece.body : min(piece.end, piece.body + _LONGEST)]
    return any(map(str.isdigit, near)) and piece.end - piece.body <= _LONGEST


def _things(text: str, found: Sequence[Piece], i: int, stop: frozenset[str], tongue: str) -> int:
    """Return the index of the word that names what the number at ``i`` counts, ``i`` if none."""
    number = text[found[i].body : found[i].end]
    if not _COUNT.fullmatch(number):
        return i
    is_year = _YEAR.fullmatch(number) is not None
    if is_year and i and text[found[i - 1].body : found[i - 1].end].lower() in YEARS:
        return i
    at = i
    while at - i < 3:
        word = _word(text, found, at)
        is_noun = tongue == "de" and not is_year
        if not word or not (word[0].islower() or is_noun) or word.lower() in stop:
            break
        if not word[0].isalpha() or binds(word.lower()):
            break
        at += 1
        follows = at + 1 < len(found) and found[at].end == found[at + 1].body
        if word.endswith("/") and follows and text[found[at + 1].body].isdigit():
            return at + 1
        is_quality = word in QUALITIES or _QUALITY.fullmatch(word) is not None
        if tongue == "de" and word[0].islower():
            is_quality = _word(text, found, at)[:1].isupper()
        if not is_quality:
            break
    return at


def _rate(text: str, found: Sequence[Piece], i: int, stop: frozenset[str]) -> int:
    """Return the index of the last word of "a minute", "per head" after ``i``, ``i`` if none."""
    link = _word(text, found, i)
    of = _word(text, found, i + 1).lower() if link else ""
    if of and ((link in RATES and of not in stop) or (link in FREQUENCIES.get(of, ()))):
        return i + 2
    return i


def _word(text: str, found: Sequence[Piece], i: int) -> str:
    """Return the word right after the piece at ``i``, nothing if that is no plain word."""
    if i + 1 >= len(found) or found[i].end >= found[i + 1].body:
        return ""
    piece = found[i + 1]
    if piece.role != "word" or piece.kind != "word" or piece.end - piece.body > _LONGEST:
        return ""
    space = text[found[i].end : piece.body]
    return text[piece.body : piece.end] if space in (" ", "\u00a0", "\u202f") else ""
