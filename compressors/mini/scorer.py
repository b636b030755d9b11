"""Importance from headrace-mini."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..scorers.base import Choice
from ..scorers.lexical import Lexical, keys, matches
from ..units import Units
from . import weights
from .coverage import reason_against
from .engine import Engine, Passage, Reading, shared
from .mixing import closed, per_unit, together, unasked
from .runners import Precision


@dataclass(frozen=True)
class Mini:
    """Scores words with the embedded model: with a question, by what answers it.

    A unit's score is the mean keep probability of its tokens (LLMLingua-2, section 4.2). Content
    words side by side come nearer to the best of them (``phrase``), words between two better ones
    to those (``closing``). With a question, words that it says itself are lowered (``shared``: a
    reader has them there), all are raised by the best word of their sentence (``sentence``), so
    that what stands beside an answer stays with it, and by the share of the question's rare words
    in it (``words``), and scaled by the text's relevance to the
    question (``relevance``): of many documents the right one keeps its words. All are shares,
    chosen on SQuAD articles set apart for that and on HotpotQA.

    The model reads English. Texts in other languages, code and logs are scored by ``Lexical``;
    ``reason_against`` says why. Reads 256 tokens at a time, overlapping; loads on first use. What
    ``MiniReranker`` has read with the same question is not read again.
    """

    folder: Path = weights.DATA
    device: str | None = None
    precision: Precision = "float32"
    phrase: float = 0.2
    closing: float = 0.8
    shared: float = 0.35
    sentence: float = 0.2
    words: float = 0.2
    relevance: float = 0.25
    name: str = "mini"

    def score(self, texts: Sequence[Units], question: str | None = None) -> list[list[float]]:
        """Return a score for each unit; see ``Scorer.score``."""
        mine = [not reason_against(units.text) for units in texts]
        asked = (question or "").strip()
        own = [units for units, is_mine in zip(texts, mine, strict=True) if is_mine]
        readings = iter(self._engine.read(asked, [Passage(u.text, u.title) for u in own]))
        other = [units for units, is_mine in zip(texts, mine, strict=True) if not is_mine]
        rest = iter(Lexical().score(other, question) if other else [])
        return [
            self._mixed(units, next(readings), asked) if is_mine else next(rest)
            for units, is_mine in zip(texts, mine, strict=True)
        ]

    def choice(self, text: str) -> Choice:
        """Return which scorer reads a text; see ``choice_of``."""
        reason = reason_against(text)
        return Choice(self.name) if reason is None else Choice("lexical", reason, compares=True)

    def _mixed(self, units: Units, reading: Reading, question: str) -> list[float]:
        scores = per_unit(units, reading)
        if question:
            scores = unasked(scores, units, question, self.shared)
        scores = closed(together(scores, units, self.phrase), units, self.closing)
        if not question:
            return scores
        best: dict[int, float] = {}
        for unit, score in zip(units.units, scores, strict=True):
            best[unit.sentence] = max(best.get(unit.sentence, 0.0), score)
        (shares,) = matches([units], keys(question))
        factor = (1.0 / (1.0 + math.exp(-reading.relevance))) ** self.relevance
        share, words = self.sentence, self.words
        return [
            factor
            * min(
                (1 - share) * score + share * best[unit.sentence] + words * shares[unit.sentence], 1
            )
            for unit, score in zip(units.units, scores, strict=True)
        ]

    @cached_property
    def _engine(self) -> Engine:
        return shared(self.folder, self.device, self.precision)
