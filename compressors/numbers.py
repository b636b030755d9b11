"""Numbers written in several pieces, joined: a part of one is another number.

``1 234,56``, ``5 mg/kg``, ``≥ 3``, ``6.02 × 10^23``, ``1 1/2``, ``4111 1111 1111``. What has no
letters between its digits is one number here, even where it was meant as two: two numbers kept
or dropped together are never read as a third.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .pieces import Piece

_SPACES = frozenset(("", " ", "\u00a0", "\u202f"))
_SIGN = re.compile(r"[-+*/×÷·^<>=≤≥≈≠~±\u2212–—√∼]{1,3}|(?:US|CA|AU|NZ|HK|S)?[$€£¥₹₩₽]|[A-Z]{3}")
_CURRENCIES = frozenset("USD EUR GBP CHF JPY CNY INR AUD CAD SEK NOK DKK PLN CZK BRL".split())  # noqa: SIM905
_TAIL = re.compile(r"[/°²³^%‰′″万千億百亿兆円元]")
_LONGEST = 80


def joined_numbers(text: str, found: Sequence[Piece]) -> list[Piece]:
    """Return the pieces with those of one number as one piece of kind "number"."""
    merged: list[Piece] = []
    for i, piece in enumerate(found):
        if merged and _is_one(
            text, merged[-1], piece, found[i + 1] if i + 1 < len(found) else None
        ):
            merged[-1] = Piece(merged[-1].body, piece.end, "word", "number")
        else:
            merged.append(piece)
    return merged


def _is_one(text: str, last: Piece, piece: Piece, after: Piece | None) -> bool:
    """Whether the next piece goes on with the number that ``last`` is, or is the start of."""
    space = text[last.end : piece.body]
    if space not in _SPACES or piece.end - last.body > _LONGEST:
        return False
    if not _may_join(last) or not _may_join(piece):
        return False
    before, content = text[last.body : last.end], text[piece.body : piece.end]
    if _is_sign(before):
        return content[0].isdigit() and _stands_alone(text, last, space)
    if not _is_number(before):
        return False
    if content[0].isdigit() and (before[-1].isdigit() or not space or _SIGN.search(before[-1])):
        return True
    if not space and _TAIL.match(content):
        return True
    if _is_sign(content) and content not in _CURRENCIES and after is not None:
        gap = text[piece.end : after.body]
        return gap in _SPACES and text[after.body].isdigit() and _may_join(after)
    return False


def _may_join(piece: Piece) -> bool:
    return piece.role in ("word", "between") and piece.kind in ("word", "number", "mark")


def _is_number(content: str) -> bool:
    return content[0].isdigit() or (not content[0].isalpha() and any(map(str.isdigit, content)))


def _is_sign(content: str) -> bool:
    found = _SIGN.fullmatch(content)
    return found is not None and (not content.isalpha() or content in _CURRENCIES)


def _stands_alone(text: str, sign: Piece, space: str) -> bool:
    """Whether a sign belongs to the number after it: a dash between words does not."""
    mark = text[sign.body : sign.end]
    before = text[sign.body - 1] if sign.body else " "
    return not space or (mark not in "-–—*/^" or not before.isspace())
