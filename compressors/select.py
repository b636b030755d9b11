"""Scores and a budget to kept units."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from .budget import Budget
from .render import Span, closure, render, text_of
from .tidy import tidied
from .tokens import TokenCounter
from .units import Units

_TRIALS = 24
_MAX_FILLS = 32
_WORK = 100_000


@dataclass(frozen=True, slots=True)
class Scored:
    """A text's units, a score in [0, 1] for each of them, and what must stay.

    ``forced`` are indices of units that stay whatever their score, ``pinned`` those whose white
    space stays as well.
    """

    units: Units
    scores: Sequence[float]
    forced: frozenset[int] = frozenset()
    pinned: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Selection:
    """The spans kept of each text, their tokens, and whether the forced units alone are over."""

    spans: list[list[Span]]
    tokens: list[int]
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class _Word:
    text: int
    unit: int


def select(texts: Sequence[Scored], budget: Budget, limit: int, counter: TokenCounter) -> Selection:
    """Keep the best units of all texts together, within ``limit`` tokens counted on the result.

    One threshold for all of them (LLMLingua-2, appendix on dynamic rates: a dense text keeps
    more than a dull one). Units of equal score are taken in an order spread evenly over the
    texts, the same every time. Room that the threshold leaves is filled with the best units
    that fit. ``limit`` is not used with a threshold budget.
    """
    ranked = _ranked(texts)
    if budget.threshold is not None:
        least = budget.threshold
        best = [word for word in ranked if texts[word.text].scores[word.unit] >= least]
        return _Trial(texts, counter).of(best)
    trial = _Trial(texts, counter)
    base = trial.of(())
    if sum(base.tokens) > limit:
        return Selection(base.spans, base.tokens, is_over=True)
    costs = _costs(texts, ranked, counter)
    number, found = _largest(lambda n: trial.of(ranked[:n]), costs, base, limit)
    return _filled(trial, ranked, costs, number, found, limit)


@dataclass(frozen=True, slots=True)
class _Trial:
    texts: Sequence[Scored]
    counter: TokenCounter

    def of(self, words: Iterable[_Word]) -> Selection:
        """Return what is left when these words stay, with its tokens."""
        kept = [[False] * len(scored.units.units) for scored in self.texts]
        for scored, flags in zip(self.texts, kept, strict=True):
            for unit in scored.forced:
                flags[unit] = True
        for word in words:
            kept[word.text][word.unit] = True
        spans = [
            render(scored.units, _closed(scored, flags), scored.pinned)
            for scored, flags in zip(self.texts, kept, strict=True)
        ]
        texts = [text_of(s.units.text, part) for s, part in zip(self.texts, spans, strict=True)]
        return Selection(spans, self.counter.count_many(texts))


def _closed(scored: Scored, flags: Sequence[bool]) -> list[bool]:
    closed = closure(scored.units.units, flags, scored.forced)
    return closed if all(closed) else tidied(scored.units, closed, scored.forced)


def _ranked(texts: Sequence[Scored]) -> list[_Word]:
    words = [
        _Word(text, unit)
        for text, scored in enumerate(texts)
        for unit in scored.units.words
        if unit not in scored.forced
    ]
    places = {word: _spread(place) for place, word in enumerate(words)}
    words.sort(key=lambda word: (-texts[word.text].scores[word.unit], places[word]))
    return words


def _spread(place: int) -> float:
    """Van der Corput's sequence on base 2, by the golden ratio: neighbours end up far apart."""
    return (place * 0.6180339887498949) % 1.0


def _costs(texts: Sequence[Scored], words: Sequence[_Word], counter: TokenCounter) -> list[int]:
    """Estimate each word's tokens alone, with a space before it when it has one."""
    pieces: list[str] = []
    for word in words:
        unit = texts[word.text].units.units[word.unit]
        space = " " if unit.body > unit.start else ""
        pieces.append(space + texts[word.text].units.text[unit.body : unit.end])
    return counter.count_many(pieces)


def _largest(
    attempt: Callable[[int], Selection], costs: Sequence[int], base: Selection, limit: int
) -> tuple[int, Selection]:
    """Return how many of the best words fit, and the result with them.

    The estimated costs say where to look; only a count of the real text decides.
    """
    sums = [0, *accumulate(costs)]
    low, high, found = 0, len(costs) + 1, base
    low_tokens, scale = sum(base.tokens), 1.0
    for trial in range(_TRIALS + len(costs).bit_length()):
        if high - low <= 1:
            break
        guess = (low + high) // 2
        if trial < _TRIALS // 2:
            wanted = sums[low] + max(limit - low_tokens, 0) / scale
            guess = _position(sums, wanted, low + 1, high - 1)
        result = attempt(guess)
        tokens = sum(result.tokens)
        if sums[guess] > sums[low]:
            scale = max((tokens - low_tokens) / (sums[guess] - sums[low]), 0.1)
        if tokens <= limit:
            low, low_tokens, found = guess, tokens, result
        else:
            high = guess
    return low, found


def _position(sums: Sequence[int], wanted: float, low: int, high: int) -> int:
    while low < high:
        middle = (low + high + 1) // 2
        if sums[middle] <= wanted:
            low = middle
        else:
            high = middle - 1
    return low


def _filled(
    trial: _Trial,
    ranked: Sequence[_Word],
    costs: Sequence[int],
    number: int,
    found: Selection,
    limit: int,
) -> Selection:
    """Add further words, best first, while they fit; a long text gets fewer attempts."""
    chosen, rest = list(ranked[:number]), list(zip(ranked[number:], costs[number:], strict=True))
    attempts = min(max(_WORK // (len(ranked) + 1), 3), _MAX_FILLS)
    while attempts > 0:
        room = limit - sum(found.tokens)
        more: list[_Word] = []
        for word, cost in rest:
            if max(cost, 1) <= room:
                more.append(word)
                room -= max(cost, 1)
        refused: set[_Word] = set()
        while more and attempts > 0:
            attempts -= 1
            result = trial.of([*chosen, *more])
            if sum(result.tokens) <= limit:
                chosen += more
                found = result
                break
            half = len(more) // 2
            refused.update(more[half:])
            more = more[:half]
        gone = refused.union(more)
        if not gone:
            break
        rest = [(word, cost) for word, cost in rest if word not in gone]
    return found
