"""Segments of a text with a budget of their own: ``<headrace rate=0.4>..</headrace>``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..middleware.errors import InvalidRequest
from .budget import Budget
from .render import Span, fuses

_TAG = re.compile(r"<(?P<slash>/?)headrace(?=[\s/>]|\Z)(?P<inside>[^<>]*)(?P<end>>?)")
_ATTRIBUTE = re.compile(
    r"\s*(?P<name>[^\s=]+)(?:\s*=\s*(?:\"(?P<double>[^\"]*)\"|'(?P<single>[^']*)'|(?P<bare>\S*)))?"
)
_SPACE = re.compile(r"\s+")
_KNOWN = "keep, rate=, target=, threshold= or quality="


@dataclass(frozen=True, slots=True)
class Segment:
    """Characters ``start`` to ``end`` of a text, without tags.

    ``budget`` is the segment's own, None outside tags; ``is_whole`` says that nothing may go.
    """

    start: int
    end: int
    budget: Budget | None = None
    is_whole: bool = False


def segments(text: str) -> list[Segment]:
    """Return what the tags of a text say, in order; what is between two tags is not empty.

    A tag has one of the attributes ``keep`` (the segment stays byte for byte), ``rate``,
    ``target``, ``threshold`` and ``quality`` (its budget); any other character, "<" and "&" too,
    is text. Segments do not nest (LLMLingua's structured prompts do not, either).

    Raises InvalidRequest, with the place, for a tag that is nested, without its other half, not
    ended, or with other attributes.

    >>> [(one.start, one.end, one.is_whole) for one in segments("Hi <headrace keep>x</headrace>")]
    [(0, 3, False), (18, 19, True)]
    """
    found: list[Segment] = []
    open_at: int | None = None
    budget: Budget | None = None
    is_whole = False
    at = 0
    for tag in _TAG.finditer(text):
        if not tag["end"]:
            raise _wrong(text, tag.start(), "does not end", "write <headrace keep>")
        if at < tag.start():
            found.append(Segment(at, tag.start(), budget, is_whole))
        at = tag.end()
        if tag["slash"]:
            if tag["inside"].strip():
                raise _wrong(text, tag.start(), "closes with attributes", "write </headrace>")
            if open_at is None:
                raise _wrong(text, tag.start(), "closes what is not open", "leave it out")
            open_at, budget, is_whole = None, None, False
        else:
            if open_at is not None:
                raise _wrong(
                    text, tag.start(), f"is inside that at {open_at}", "segments do not nest"
                )
            open_at = tag.start()
            budget, is_whole = _asked(text, tag.start(), tag["inside"])
    if open_at is not None:
        raise _wrong(text, open_at, "is never closed", "add </headrace>")
    if at < len(text):
        found.append(Segment(at, len(text)))
    return found


def joined(text: str, parts: Sequence[Segment], kept: Sequence[Sequence[Span]]) -> list[Span]:
    """Return the spans of all parts together, with the white space that stood between them.

    ``kept`` are each part's spans in the text. Where no white space is left between what stays
    of two parts, the strongest of what was there is put back; where none was and two words would
    read as one, the mark between them.
    """
    spans: list[Span] = []
    last = 0
    for number, own in enumerate(kept):
        for start, end in own:
            if spans and start == own[0][0]:
                spans.extend(_seam(text, parts[last : number + 1], spans[-1], (start, end)))
            last = number
            if spans and spans[-1][1] == start:
                spans[-1] = (spans[-1][0], end)
            else:
                spans.append((start, end))
    return spans


def _seam(text: str, parts: Sequence[Segment], left: Span, right: Span) -> list[Span]:
    """Return the white space to keep between two spans of different parts."""
    gaps = [
        (max(part.start, left[1]), min(part.end, right[0]))
        for part in parts
        if part.start < right[0] and part.end > left[1]
    ]
    before = text[left[0] : left[1]]
    after = text[right[0] : right[1]]
    have = _strength(before[len(before.rstrip()) :]) + _strength(
        after[: len(after) - len(after.lstrip())]
    )
    runs = [match.span() for a, b in gaps for match in _SPACE.finditer(text, a, b)]
    best = max(runs, key=lambda run: _strength(text[run[0] : run[1]]), default=None)
    if best is not None and _strength(text[best[0] : best[1]]) > have:
        return [best]
    if not have and gaps and fuses(before[-1], after[0]):
        dropped = [i for a, b in gaps for i in range(a, b) if not text[i].isalnum()]
        return [(dropped[-1], dropped[-1] + 1)] if dropped else []
    return []


def _strength(space: str) -> int:
    """Rank white space: 3 a paragraph break, 2 a line break, 1 a space, 0 none."""
    return (1 + min(space.count("\n"), 2)) if space else 0


def _asked(text: str, at: int, inside: str) -> tuple[Budget | None, bool]:
    given = [match for match in _ATTRIBUTE.finditer(inside) if match["name"]]
    if len(given) != 1:
        raise _wrong(text, at, f"has {len(given) or 'no'} attributes", f"give one of {_KNOWN}")
    match = given[0]
    name = match["name"]
    value = next((v for k in ("double", "single", "bare") if (v := match[k]) is not None), None)
    if name == "keep" and value is None:
        return None, True
    if name not in _BUDGETS or value is None:
        raise _wrong(text, at, f"has {match[0].strip()!r:.60}", f"give one of {_KNOWN}")
    try:
        return _BUDGETS[name](value), False
    except InvalidRequest as error:
        raise _wrong(text, at, f"is wrong: {error}", "correct it") from error
    except ValueError:
        raise _wrong(text, at, f"has {name}={value!r:.60}", "give a number") from None


_BUDGETS: dict[str, Callable[[str], Budget]] = {
    "rate": lambda value: Budget(rate=float(value)),
    "target": lambda value: Budget(target_tokens=int(value)),
    "threshold": lambda value: Budget(threshold=float(value)),
    "quality": lambda value: Budget(quality=float(value)),
}


def _wrong(text: str, at: int, what: str, fix: str) -> InvalidRequest:
    line = text.count("\n", 0, at) + 1
    column = at - (text.rfind("\n", 0, at) + 1) + 1
    tag = text[at : at + 40].split(">")[0].split("\n")[0]
    return InvalidRequest(f"the tag {tag!r} at line {line}, column {column} {what}; {fix}")
