"""Importance of whole sentences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from ...middleware.errors import InvalidRequest
from ...middleware.models import locate
from ...middleware.types import Document
from ..rerankers import BM25, BiEncoder, Reranker, make_reranker
from ..rerankers.bm25 import terms
from ..sentence_split import Sentence, sentences
from ..units import Units
from .base import Scorer
from .lexical import Lexical

_STEP = 1e-9
_BEST = 3

Rated = list[tuple[Sentence, float]]
"""A text's sentences in order, each with a score in [0, 1]."""


class SentenceScorer(Scorer, Protocol):
    """A scorer that gives all units of a sentence one score."""

    def rate(
        self, texts: Sequence[Units], question: str | None = None, titles: Sequence[str] = ()
    ) -> list[Rated]:
        """Return the sentences of each text with their scores, 1 matters most.

        ``titles`` holds what each text is called; none are known when it is empty.
        """
        ...


@dataclass(frozen=True)
class Sentences:
    """Scores each sentence by a reranker: RECOMP's extractive compressor (Xu et al. 2024, 3.1).

    ``reranker`` reads a sentence as a document, headed by the text's title: a bi-encoder as in
    RECOMP, a cross-encoder as in Provence, or BM25. ``lexical`` is the share of BM25 in a score,
    over all sentences of the call and divided by the best: embeddings miss names and rare words.
    Cosines below 0 count as 0. (On HotpotQA's dev questions the mixture kept more answers and
    supporting sentences than either part; reading a sentence with its neighbours kept fewer.)

    Without a question a sentence is worth its mean likeness to the sentences of its text: the
    degree centrality of LexRank (Erkan & Radev 2004, 3.1, without a threshold), over the
    bi-encoder's embeddings, else over counted terms.

    The units of a sentence have scores that fall by less than a millionth, and those of two
    sentences never mix, so that a selector that takes the best units takes whole sentences.
    """

    reranker: Reranker = field(default_factory=BiEncoder)
    lexical: float = 0.5
    name: str = "sentences"

    def __post_init__(self) -> None:
        if not 0 <= self.lexical <= 1:
            raise InvalidRequest(f"lexical must be in [0, 1], got {self.lexical!r}")

    def score(self, texts: Sequence[Units], question: str | None = None) -> list[list[float]]:
        """Return a score for each unit; see ``Scorer.score``."""
        return _per_unit(texts, self.rate(texts, question))

    def rate(
        self, texts: Sequence[Units], question: str | None = None, titles: Sequence[str] = ()
    ) -> list[Rated]:
        """Return the sentences of each text with their scores; see ``SentenceScorer.rate``."""
        found = [sentences(units) for units in texts]
        rows = [
            [units.text[sentence.start : sentence.end] for sentence in row]
            for units, row in zip(texts, found, strict=True)
        ]
        asked = (question or "").strip()
        scores = self._asked(asked, rows, titles) if asked else self._central(rows)
        return [[*zip(row, its, strict=True)] for row, its in zip(found, scores, strict=True)]

    def _asked(
        self, question: str, rows: Sequence[Sequence[str]], titles: Sequence[str]
    ) -> list[list[float]]:
        heads = titles or [""] * len(rows)
        documents = [
            Document(text, title=head)
            for head, row in zip(heads, rows, strict=True)
            for text in row
        ]
        scores = self.reranker.score(question, documents)
        if isinstance(self.reranker, BM25):
            scores = _relative(scores)
        elif self.lexical:
            mine, share = map(_bounded, scores), self.lexical
            words = _relative(BM25().score(question, documents))
            scores = [(1 - share) * a + share * b for a, b in zip(mine, words, strict=True)]
        flat = map(_bounded, scores)
        return [[next(flat) for _ in row] for row in rows]

    def _central(self, rows: Sequence[Sequence[str]]) -> list[list[float]]:
        if not isinstance(self.reranker, BiEncoder):
            return [_by_terms(row) for row in rows]
        flat = [text for row in rows for text in row]
        if not flat:
            return [[] for _ in rows]
        vectors: Any = self.reranker.embed(flat)
        scores: list[list[float]] = []
        at = 0
        for row in rows:
            own = vectors[at : at + len(row)]
            at += len(row)
            likeness: list[float] = (own @ own.mean(0)).tolist() if len(row) else []
            scores.append([_bounded(value) for value in likeness])
        return scores


@dataclass(frozen=True)
class PooledSentences:
    """Scores each sentence by a token scorer that has read the whole text.

    A sentence is worth the mean of its best three units ("best"), of all ("mean"), or its best one
    ("max"). With the embedded model that is Provence's idea (Chirkova et al. 2025): the
    sentences of a document are judged together, in the pass that scores its tokens. What the
    scorer does without a question holds here too.
    """

    scorer: Scorer
    pool: Literal["best", "mean", "max"] = "best"

    @property
    def name(self) -> str:
        """The scorer's name and ours."""
        return f"sentences:{self.scorer.name}"

    def score(self, texts: Sequence[Units], question: str | None = None) -> list[list[float]]:
        """Return a score for each unit; see ``Scorer.score``."""
        return _per_unit(texts, self.rate(texts, question))

    def rate(
        self, texts: Sequence[Units], question: str | None = None, titles: Sequence[str] = ()
    ) -> list[Rated]:
        """Return the sentences of each text with their scores; see ``SentenceScorer.rate``.

        The titles are not read.
        """
        rows = self.scorer.score(texts, question)
        return [
            [(s, self._pooled(units, s, row)) for s in sentences(units)]
            for units, row in zip(texts, rows, strict=True)
        ]

    def _pooled(self, units: Units, sentence: Sentence, scores: Sequence[float]) -> float:
        span = range(sentence.first, sentence.last)
        words = sorted((scores[i] for i in span if units.units[i].role == "word"), reverse=True)
        size = {"best": _BEST, "mean": len(words), "max": 1}[self.pool]
        taken = words[:size]
        return _bounded(sum(taken) / len(taken)) if taken else 0.0


def make_sentences(method: str = "auto") -> SentenceScorer:
    """Return a sentence scorer by name.

    "auto" reads sentences with all-MiniLM-L6-v2 where it is on this machine, else with BM25;
    "mini" pools the embedded model's tokens, "lexical" those of ``Lexical``; anything else is a
    reranker (``make_reranker``).

    Raises what ``make_reranker`` raises.
    """
    if method == "mini":
        from ..mini import Mini

        return PooledSentences(Mini())
    if method == "lexical":
        return PooledSentences(Lexical())
    if method == "auto":
        return Sentences(BiEncoder() if locate("minilm") else BM25())
    return Sentences(make_reranker(method))


def _bounded(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def _relative(values: Sequence[float]) -> list[float]:
    """Return the values divided by the largest."""
    most = max(values, default=0.0) or 1.0
    return [value / most for value in values]


def _by_terms(texts: Sequence[str]) -> list[float]:
    """Return each text's mean cosine to all, over counted terms."""
    rows: list[dict[str, float]] = []
    centre: dict[str, float] = {}
    for text in texts:
        counts = Counter(terms(text))
        length = math.sqrt(sum(number**2 for number in counts.values())) or 1.0
        rows.append({term: number / length for term, number in counts.items()})
        for term, weight in rows[-1].items():
            centre[term] = centre.get(term, 0.0) + weight / len(texts)
    return [_bounded(sum(weight * centre[term] for term, weight in row.items())) for row in rows]


def _per_unit(texts: Sequence[Units], rows: Sequence[Rated]) -> list[list[float]]:
    """Spread the sentences' scores over their units, in an order that keeps sentences together."""
    scores = [[0.0] * len(units.units) for units in texts]
    floor = _STEP * sum(map(len, scores))
    last = 1.0
    ranked = [(row, sentence, score) for row, its in enumerate(rows) for sentence, score in its]
    for row, sentence, score in sorted(ranked, key=lambda entry: -entry[2]):
        last = min(last, floor + (1 - floor) * score)
        for i in range(sentence.first, sentence.last):
            scores[row][i] = last
            last -= _STEP
    return scores
