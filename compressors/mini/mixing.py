"""From a network's token probabilities to what a word is worth in its text."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Sequence

from ..scorers.lexical import keys
from ..scorers.vocabulary import STOP_WORDS
from ..units import Units
from .engine import Reading


def per_unit(units: Units, reading: Reading) -> list[float]:
    """Return the mean keep probability of each unit's tokens.

    Units without a token of their own, and unknown ones, score at least the text's mean.
    """
    keep, starts, ends = reading.keep, reading.starts, reading.ends
    average = _mean(keep) if keep else 1.0
    scores: list[float] = []
    at = 0
    for unit in units.units:
        while at < len(ends) and ends[at] <= unit.body:
            at += 1
        last = at
        while last < len(starts) and starts[last] < unit.end:
            last += 1
        if last == at:
            scores.append(average)
        elif any(reading.known[at:last]):
            scores.append(_mean(keep[at:last]))
        else:
            scores.append(max(_mean(keep[at:last]), average))
    return scores


def _mean(values: array[float]) -> float:
    return min(max(sum(values) / len(values), 0.0), 1.0)


def together(scores: Sequence[float], units: Units, share: float) -> list[float]:
    """Bring content words that stand side by side nearer to the best of them, by a share.

    "East African Community" is one answer: its weakest word should not go alone.
    """
    raised = list(scores)
    for run in _runs(units):
        best = max(scores[i] for i in run)
        for i in run:
            raised[i] += share * (best - scores[i])
    return raised


def _runs(units: Units) -> Iterator[list[int]]:
    run: list[int] = []
    for i, unit in enumerate(units.units):
        is_content = unit.role == "word" and units.content(i).lower() not in STOP_WORDS["en"]
        if run and (not is_content or unit.sentence != units.units[run[-1]].sentence):
            yield run
            run = []
        if is_content:
            run.append(i)
    if run:
        yield run


def closed(scores: Sequence[float], units: Units, share: float) -> list[float]:
    """Raise words between two better ones, up to two words away on each side, to a share of them.

    "Huggins and Rowley" needs its "and": deleted word by word, an answer is no longer a phrase.
    """
    places = [i for i, unit in enumerate(units.units) if unit.role == "word"]
    raised = list(scores)
    for at, i in enumerate(places):
        before = [j for j in places[max(at - 2, 0) : at] if _same(units, i, j)]
        after = [j for j in places[at + 1 : at + 3] if _same(units, i, j)]
        if before and after:
            least = min(max(scores[j] for j in before), max(scores[j] for j in after))
            raised[i] = max(scores[i], share * least)
    return raised


def _same(units: Units, one: int, two: int) -> bool:
    return units.units[one].sentence == units.units[two].sentence


def unasked(scores: Sequence[float], units: Units, question: str, share: float) -> list[float]:
    """Lower the words that the question already says, by a share: the reader has them there.

    Not names and numbers: they say which of several things the answer is about.
    """
    asked = keys(question)
    return [
        score * (1.0 - share) if _repeats(units.content(i), asked) else score
        for i, score in enumerate(scores)
    ]


def _repeats(content: str, asked: Collection[str]) -> bool:
    own = keys(content)
    return bool(own) and own <= set(asked) and content.islower()
