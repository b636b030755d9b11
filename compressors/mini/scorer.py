"""Importance from headrace-mini."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..scorers.lexical import Lexical
from ..units import Units
from . import weights
from .coverage import reason_against
from .engine import Engine, Passage, Precision, Reading, shared


@dataclass(frozen=True)
class Mini:
    """Scores words with the embedded model: with a question, by what answers it.

    A unit's score is the mean keep probability of its tokens (LLMLingua-2, section 4.2). With a
    question it is raised by the best token of its sentence, so that what stands beside an answer
    stays with it, and scaled by the text's relevance to the question: of many documents the right
    one keeps its words (``sentence`` and ``relevance`` say how much; the values were chosen on
    HotpotQA).

    The model reads English. Texts in other languages, code and logs are scored by ``Lexical``;
    ``reason_against`` says why. Reads 256 tokens at a time, overlapping; loads on first use. What
    ``MiniReranker`` has read with the same question is not read again.
    """

    folder: Path = weights.DATA
    device: str | None = None
    precision: Precision = "float32"
    closing: float = 0.8
    sentence: float = 0.2
    relevance: float = 0.25
    name: str = "mini"

    def score(self, texts: Sequence[Units], question: str | None = None) -> list[list[float]]:
        """Return a score for each unit; see ``Scorer.score``."""
        mine = [not reason_against(units.text) for units in texts]
        asked = (question or "").strip()
        own = [units for units, is_mine in zip(texts, mine, strict=True) if is_mine]
        readings = iter(self._engine.read(asked, [Passage(units.text) for units in own]))
        other = [units for units, is_mine in zip(texts, mine, strict=True) if not is_mine]
        rest = iter(Lexical().score(other, question) if other else [])
        return [
            self._mixed(units, next(readings), bool(asked)) if is_mine else next(rest)
            for units, is_mine in zip(texts, mine, strict=True)
        ]

    def _mixed(self, units: Units, reading: Reading, is_asked: bool) -> list[float]:
        scores = closed(per_unit(units, reading), units, self.closing)
        if not is_asked:
            return scores
        best: dict[int, float] = {}
        for unit, score in zip(units.units, scores, strict=True):
            best[unit.sentence] = max(best.get(unit.sentence, 0.0), score)
        factor = (1.0 / (1.0 + math.exp(-reading.relevance))) ** self.relevance
        share = self.sentence
        return [
            factor * ((1.0 - share) * score + share * best[unit.sentence])
            for unit, score in zip(units.units, scores, strict=True)
        ]

    @cached_property
    def _engine(self) -> Engine:
        return shared(self.folder, self.device, self.precision)


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
