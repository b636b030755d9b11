"""What the caller wants kept, as units."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from ..middleware.errors import InvalidRequest
from .governed import lifted
from .render import Span
from .select import Scored
from .units import Units

_SECONDS = 5.0


def patterns_of(keep: Sequence[str | re.Pattern[str]]) -> list[re.Pattern[str]]:
    """Compile the patterns.

    Raises InvalidRequest that names a pattern which is no regular expression, and where.
    """
    if isinstance(keep, (str, re.Pattern)):
        raise InvalidRequest(f"keep must be a list of patterns, got {keep!r:.80}; put it into one")
    compiled: list[re.Pattern[str]] = []
    for pattern in keep:
        try:
            regex = re.compile(pattern)
        except re.error as error:
            at = "" if error.pos is None else f" at position {error.pos}"
            raise InvalidRequest(
                f"keep pattern {pattern!r:.80} is no regular expression: {error.msg}{at};"
                " escape literal text with re.escape"
            ) from error
        except TypeError as error:
            raise InvalidRequest(f"a keep pattern must be a string, got {pattern!r:.80}") from error
        if not isinstance(regex.pattern, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidRequest(
                f"a keep pattern must be for text, got bytes {regex.pattern!r:.80}"
            )
        compiled.append(regex)
    return compiled


def matches(text: str, patterns: Sequence[re.Pattern[str]]) -> tuple[Span, ...]:
    """Return where the patterns match, merged, empty matches left out.

    Raises InvalidRequest for a pattern that takes more than some seconds: nested repeats such as
    ``(a+)+$`` take for ever.
    """
    found = sorted(
        span for pattern in patterns for span in _spans(text, pattern) if span[1] > span[0]
    )
    merged: list[Span] = []
    for start, end in found:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return tuple(merged)


def _spans(text: str, pattern: re.Pattern[str]) -> list[Span]:
    import regex  # re's twin with a time limit

    flags = regex.VERSION0
    for ours, theirs in ((re.I, regex.I), (re.M, regex.M), (re.S, regex.S), (re.X, regex.X)):
        flags |= theirs if pattern.flags & ours else 0
    try:
        twin = regex.compile(pattern.pattern, flags)
        return [match.span() for match in twin.finditer(text, timeout=_SECONDS)]
    except TimeoutError:
        raise InvalidRequest(
            f"keep pattern {pattern.pattern!r:.80} takes too long; write it without nested repeats"
        ) from None


def scored_with(units: Units, scores: Sequence[float], forced: Sequence[Span]) -> Scored:
    """Return the scored units; those that a forced range touches must stay, with its space."""
    ends = [unit.end for unit in units.units]
    kept: set[int] = set()
    pinned: set[int] = set()
    for start, end in forced:
        i = bisect_right(ends, start)
        while i < len(ends) and units.units[i].start < end:
            unit = units.units[i]
            if unit.body < end:
                kept.add(i)
            if start < unit.body:
                pinned.add(i)
            i += 1
    return Scored(units, lifted(units.units, scores), frozenset(kept), frozenset(pinned & kept))


def marks(scored: Scored) -> tuple[tuple[int, int, float], ...]:
    """Return (start, end, score) of each word, 1.0 for what must stay."""
    return tuple(
        (unit.body, unit.end, 1.0 if i in scored.forced else round(scored.scores[i], 4))
        for i, unit in enumerate(scored.units.units)
        if unit.role == "word"
    )
