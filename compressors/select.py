"""Scores and a budget to kept units."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import fsum

from .budget import Budget
from .render import Span, closure, render, text_of
from .tidy import tidied, without_repeats
from .tokens import TokenCounter
from .units import Units

_TRIALS = 24
_MAX_FILLS = 32
_FIRST = 2
_WORK = 100_000


@dataclass(frozen=True, slots=True)
class Scored:
    """A text's units, a score in [0, 1] for each of them, and what must stay.

    ``forced`` are indices of units that stay whatever their score, ``pinned`` those whose white
    space stays as well, ``dropped`` those that go. Of ``repeats`` (forced, too) one stays where
    equal ones would follow each other. ``spaces`` are units whose white space stays without them
    (one past the last: that at the end of the text); ``folds`` folds repeats of it, too.
    """

    units: Units
    scores: Sequence[float]
    forced: frozenset[int] = frozenset()
    pinned: frozenset[int] = frozenset()
    dropped: frozenset[int] = frozenset()
    repeats: frozenset[int] = frozenset()
    spaces: frozenset[int] = frozenset()
    folds: bool = False


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


def select(
    texts: Sequence[Scored], budget: Budget, limit: int | None, counter: TokenCounter
) -> Selection:
    """Keep the best units of all texts together, within ``limit`` tokens counted on the result.

    One threshold for all of them (LLMLingua-2, appendix on dynamic rates: a dense text keeps
    more than a dull one). Units of equal score are taken in an order spread evenly over the
    texts, the same every time. Room that the threshold leaves is filled with the best units
    that fit. Without a limit the budget's threshold or quality says how many stay.
    """
    ranked = _ranked(texts)
    trial = _Trial(texts, counter)
    if limit is None:
        return trial.of(ranked[: _num_good(texts, ranked, budget)])
    base = trial.of(())
    if sum(base.tokens) > limit:
        return Selection(base.spans, base.tokens, is_over=True)
    costs = _costs(texts, ranked, counter)
    number, found = _largest(lambda n: trial.of(ranked[:n]), costs, base, limit)
    return _filled(trial, ranked, costs, number, found, limit)


def worth(texts: Sequence[Scored], counter: TokenCounter) -> list[tuple[float, int]]:
    """Return (score, estimated tokens) of each word that may stay; 1.0 for what must."""
    words = [
        _Word(text, unit)
        for text, scored in enumerate(texts)
        for unit in scored.units.words
        if unit not in scored.dropped
    ]
    return [
        (1.0 if word.unit in texts[word.text].forced else texts[word.text].scores[word.unit], cost)
        for word, cost in zip(words, _costs(texts, words, counter), strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Trial:
    texts: Sequence[Scored]
    counter: TokenCounter

    def sentence(self, word: _Word) -> tuple[int, int]:
        """Return which sentence a word is of."""
        return word.text, self.texts[word.text].units.units[word.unit].sentence

    def of(self, words: Iterable[_Word]) -> Selection:
        """Return what is left when these words stay, with its tokens."""
        kept = [[False] * len(scored.units.units) for scored in self.texts]
        for scored, flags in zip(self.texts, kept, strict=True):
            for unit in scored.forced:
                flags[unit] = True
        for word in words:
            kept[word.text][word.unit] = True
        spans = [
            render(scored.units, _closed(scored, flags), scored.pinned, scored.spaces, scored.folds)
            for scored, flags in zip(self.texts, kept, strict=True)
        ]
        texts = [text_of(s.units.text, part) for s, part in zip(self.texts, spans, strict=True)]
        return Selection(spans, self.counter.count_many(texts))


def _closed(scored: Scored, flags: Sequence[bool]) -> list[bool]:
    closed = closure(scored.units.units, flags, scored.forced)
    for i in scored.dropped:
        closed[i] = False
    if not all(closed):
        closed = tidied(scored.units, closed, scored.forced)
    return without_repeats(scored.units, closed, scored.repeats) if scored.repeats else closed


def _num_good(texts: Sequence[Scored], ranked: Sequence[_Word], budget: Budget) -> int:
    """Return how many of the best words reach the threshold, or the share of all scores."""
    if budget.threshold is not None:
        least = budget.threshold
        return sum(texts[word.text].scores[word.unit] >= least for word in ranked)
    forced = fsum(
        scored.scores[i]
        for scored in texts
        for i in scored.forced
        if scored.units.units[i].role == "word"
    )
    values = [texts[word.text].scores[word.unit] for word in ranked]
    wanted = (budget.quality or 0.0) * (forced + fsum(values)) - forced
    sums = [0.0, *accumulate(values)]
    return min(bisect_left(sums, wanted - 1e-9), len(ranked))


def _ranked(texts: Sequence[Scored]) -> list[_Word]:
    words = [
        _Word(text, unit)
        for text, scored in enumerate(texts)
        for unit in scored.units.words
        if unit not in scored.forced and unit not in scored.dropped
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
    """Add further words, best first, while they fit; a long text gets fewer attempts.

    The first word of a sentence costs more than itself: a line break, perhaps a mark. So the last
    attempts are for the sentences of which something stays already.
    """
    chosen, rest = list(ranked[:number]), list(zip(ranked[number:], costs[number:], strict=True))
    attempts = min(max(_WORK // (len(ranked) + 1), 3), _MAX_FILLS)
    found = _topped(trial, chosen, rest, found, limit, attempts - attempts // 3)
    begun = {trial.sentence(word) for word in chosen}
    taken = set(chosen)
    near = [(w, cost) for w, cost in rest if w not in taken and trial.sentence(w) in begun]
    return _topped(trial, chosen, near, found, limit, attempts // 3)


def _topped(
    trial: _Trial,
    chosen: list[_Word],
    rest: Sequence[tuple[_Word, int]],
    found: Selection,
    limit: int,
    attempts: int,
) -> Selection:
    """Add to ``chosen`` words of the ``rest``, with their estimated costs, while they fit."""
    begun = {trial.sentence(word) for word in chosen}
    while attempts > 0:
        room = limit - sum(found.tokens)
        more: list[_Word] = []
        for word, cost in rest:
            if room <= 0:
                break
            cost = max(cost, 1) + (0 if trial.sentence(word) in begun else _FIRST)
            if cost <= room:
                more.append(word)
                room -= cost
        refused: set[_Word] = set()
        while more and attempts > 0:
            attempts -= 1
            result = trial.of([*chosen, *more])
            if sum(result.tokens) <= limit:
                chosen += more
                begun.update(map(trial.sentence, more))
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
