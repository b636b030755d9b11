"""What the caller wants kept or gone, as units."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..middleware.errors import InvalidRequest
from .governed import lifted
from .render import Span
from .select import Scored
from .units import Unit, Units
from .wide import WIDE

Pattern = re.Pattern[str]

_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Found:
    """Ranges of a text: ``kept`` stay, ``words`` of them may fold repeats, ``dropped`` go."""

    kept: tuple[Span, ...] = ()
    words: tuple[Span, ...] = ()
    dropped: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Wishes:
    """What must stay or go of every text, compiled.

    ``keep`` are regular expressions. ``force_keep`` and ``force_drop`` are literal strings, or
    compiled patterns. A literal is matched with its case, and where it begins or ends with a
    letter or digit only at the border of a word ("art" is not in "party"; scripts without spaces
    have no such borders); one of white space alone keeps the runs of white space that hold it.

    Raises InvalidRequest that names what is no pattern, empty, or no string.
    """

    keep: tuple[Pattern, ...] = ()
    force_keep: tuple[Pattern, ...] = ()
    force_drop: tuple[Pattern, ...] = ()
    drop_consecutive: bool = False
    keep_digits: bool = False

    @classmethod
    def of(
        cls,
        keep: Sequence[str | Pattern] = (),
        force_keep: Sequence[str | Pattern] = (),
        force_drop: Sequence[str | Pattern] = (),
        *,
        drop_consecutive: bool = False,
        keep_digits: bool = False,
    ) -> Wishes:
        """Compile the wishes."""
        return cls(
            tuple(_compiled("keep", pattern) for pattern in _listed("keep", keep)),
            tuple(_literal("force_keep", text) for text in _listed("force_keep", force_keep)),
            tuple(_literal("force_drop", text) for text in _listed("force_drop", force_drop)),
            drop_consecutive,
            keep_digits,
        )

    def find(self, text: str) -> Found:
        """Return where the text matches.

        Raises InvalidRequest for a pattern that takes more than some seconds: nested repeats such
        as ``(a+)+$`` take for ever.
        """
        words = _matches(text, self.force_keep)
        kept = _merged([*_matches(text, self.keep), *words])
        return Found(kept, tuple(words), _merged(_matches(text, self.force_drop)))

    def apply(self, units: Units, scores: Sequence[float], found: Found) -> Scored:
        """Return the scored units with what must stay and what must go.

        A unit stays that a kept range touches, and its white space if the range touches that. A
        unit goes when a dropped range covers all of it and it need not stay.
        """
        kept, pinned, spaces = _touched(units, found.kept, found.words)
        if self.keep_digits:
            kept |= {i for i in units.words if any(map(str.isdigit, units.content(i)))}
        gone = _covered(units, found.dropped) - kept
        repeats: set[int] = _touched(units, found.words, ())[0] if self.drop_consecutive else set()
        if gone:
            units = replace(units, units=tuple(_freed(units.units, gone)))
        return Scored(
            units,
            lifted(units.units, scores),
            frozenset(kept),
            frozenset(pinned & kept),
            frozenset(gone),
            frozenset(repeats),
            frozenset(spaces),
            self.drop_consecutive,
        )


def marks(scored: Scored) -> tuple[tuple[int, int, float], ...]:
    """Return (start, end, score) of each word: 1.0 for what must stay, 0.0 for what must go."""
    return tuple(
        (unit.body, unit.end, _score(scored, i))
        for i, unit in enumerate(scored.units.units)
        if unit.role == "word"
    )


def check_keep(keep: Sequence[str | Pattern]) -> None:
    """Raise InvalidRequest for what is no list of patterns."""
    for pattern in _listed("keep", keep):
        _compiled("keep", pattern)


def _score(scored: Scored, i: int) -> float:
    if i in scored.forced:
        return 1.0
    return 0.0 if i in scored.dropped else round(scored.scores[i], 4)


def _listed(name: str, given: Sequence[str | Pattern]) -> Sequence[str | Pattern]:
    if not isinstance(given, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidRequest(f"{name} must be a list, got {given!r:.80}; leave it out for none")
    if isinstance(given, (str, re.Pattern)):
        what = "patterns" if name == "keep" else "strings"
        raise InvalidRequest(f"{name} must be a list of {what}, got {given!r:.80}; put it into one")
    return given


def _compiled(name: str, pattern: str | Pattern) -> Pattern:
    try:
        regex = re.compile(pattern)
    except re.error as error:
        at = "" if error.pos is None else f" at position {error.pos}"
        raise InvalidRequest(
            f"{name} pattern {pattern!r:.80} is no regular expression: {error.msg}{at};"
            " escape literal text with re.escape"
        ) from error
    except TypeError as error:
        raise InvalidRequest(f"a {name} pattern must be a string, got {pattern!r:.80}") from error
    if not isinstance(regex.pattern, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidRequest(f"a {name} pattern must be for text, got bytes {regex.pattern!r:.80}")
    return regex


def _literal(name: str, text: str | Pattern) -> Pattern:
    if not isinstance(text, str):
        return _compiled(name, text)
    if not text:
        raise InvalidRequest(f"{name} has an empty string, which is everywhere; leave it out")
    if text.isspace():
        return re.compile(rf"(?<!\s)\s*?{re.escape(text)}\s*")
    before, after = (r"(?<!\w)" if _is_letter(text[0]) else "", r"(?!\w)")
    return re.compile(before + re.escape(text) + (after if _is_letter(text[-1]) else ""))


def _is_letter(char: str) -> bool:
    """Whether a word goes on over this character, in scripts that write words apart."""
    return (char.isalnum() or char == "_") and not WIDE.match(char)


def _matches(text: str, patterns: Sequence[Pattern]) -> list[Span]:
    """Return where the patterns match, but for empty matches."""
    return [(a, b) for pattern in patterns for a, b in _spans(text, pattern) if a < b]


def _merged(spans: list[Span]) -> tuple[Span, ...]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return tuple(merged)


def _spans(text: str, pattern: Pattern) -> list[Span]:
    import regex  # re's twin with a time limit

    flags = regex.VERSION0
    for ours, theirs in ((re.I, regex.I), (re.M, regex.M), (re.S, regex.S), (re.X, regex.X)):
        flags |= theirs if pattern.flags & ours else 0
    try:
        twin = regex.compile(pattern.pattern, flags)
        return [match.span() for match in twin.finditer(text, timeout=_SECONDS)]
    except TimeoutError:
        raise InvalidRequest(
            f"pattern {pattern.pattern!r:.80} takes too long; write it without nested repeats"
        ) from None


def _touched(
    units: Units, kept: Sequence[Span], literals: Sequence[Span]
) -> tuple[set[int], set[int], set[int]]:
    """Return the units that ranges touch, those whose white space they touch, and bare spaces.

    The last are the units (one past the last: the end of the text) whose white space alone a
    literal names.
    """
    ends = [unit.end for unit in units.units]
    touched: set[int] = set()
    pinned: set[int] = set()
    for start, end in kept:
        i = bisect_right(ends, start)
        while i < len(ends) and units.units[i].start < end:
            unit = units.units[i]
            if unit.body < end:
                touched.add(i)
            if start < unit.body:
                pinned.add(i)
            i += 1
    spaces = {
        bisect_right(ends, start) for start, end in literals if units.text[start:end].isspace()
    }
    return touched, pinned, spaces


def _covered(units: Units, ranges: Sequence[Span]) -> set[int]:
    ends = [unit.end for unit in units.units]
    covered: set[int] = set()
    for start, end in ranges:
        i = bisect_right(ends, start)
        while i < len(ends) and ends[i] <= end:
            if units.units[i].body >= start:
                covered.add(i)
            i += 1
    return covered


def _freed(units: Sequence[Unit], gone: set[int]) -> Iterator[Unit]:
    """Yield the units; a word no longer needs what must go."""
    for unit in units:
        if unit.role == "word" and unit.needs:
            needs = tuple(
                (a, b)
                for a, b in unit.needs
                if any(j not in gone and units[j].role == "word" for j in range(a, b))
            )
            yield unit if needs == unit.needs else replace(unit, needs=needs)
        else:
            yield unit
