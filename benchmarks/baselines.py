"""What the quality benchmarks share: scorers to compare with, and a counter of words."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from headrace.compressors import Perplexity, QuestionPerplexity, Scorer, Units, make_scorer
from headrace.compressors.mini import Mini


@dataclass(frozen=True)
class Random:
    """Every word is worth a number drawn by lot."""

    seed: int = 0
    name: str = "random"

    def score(self, texts: Sequence[Units], question: str | None = None) -> list[list[float]]:
        """Return random scores, the same for the same text."""
        return [
            [rng.random() for _ in units.units]
            for units in texts
            for rng in [random.Random(f"{self.seed}:{units.text}")]
        ]


class Remembering:
    """A scorer that scores the same texts once, whatever the budget."""

    def __init__(self, scorer: Scorer) -> None:
        self.name = scorer.name
        self._scorer = scorer
        self._known: dict[tuple[tuple[str, ...], str | None], list[list[float]]] = {}

    def score(self, texts: Sequence[Units], question: str | None = None) -> list[list[float]]:
        """Return the scorer's scores."""
        key = (tuple(units.text for units in texts), question)
        if key not in self._known:
            self._known[key] = self._scorer.score(texts, question)
        return self._known[key]


@dataclass(frozen=True)
class WordCounter:
    """Counts words, as the published tables of deletion by words do."""

    name: str = "words"

    def count(self, text: str) -> int:
        """Return the number of words."""
        return len(re.findall(r"\S+", text))

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Return the number of words of each text."""
        return [self.count(text) for text in texts]


def baseline(name: str) -> Scorer:
    """Return a scorer by its row's name; language models in bfloat16, each text read once."""
    if name == "random":
        return Random()
    if name == "mini":
        return Mini(precision="bfloat16")
    if name == "selective-context":
        return Remembering(Perplexity(method="selective-context", dtype="bfloat16"))
    if name == "llmlingua":
        return Remembering(Perplexity(dtype="bfloat16"))
    if name == "longllmlingua":
        return Remembering(QuestionPerplexity(dtype="bfloat16"))
    return Remembering(make_scorer(name)) if name == "sentences" else make_scorer(name)
