"""Documents to sentences with values: the middle step of ``compress_documents``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..middleware.types import Document
from .budget import Budget
from .compressor import Compressor
from .render import Span, closure, render
from .scorers.lexical import Lexical
from .scorers.sentences import Rated, SentenceScorer
from .sentence_split import Sentence
from .structure import split
from .tokens import TokenCounter
from .units import Units

DOCUMENT = 0.2
"""What the best document adds to its sentences' scores in [0, 1], the worst adding nothing."""
SHARE = 0.5
"""How much of a word's score depends on its sentence's value."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """What may not go of a text: all or nothing (``is_whole``), or spans that the caller wants."""

    is_whole: bool
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """A document, its sentences with their scores (none without a sentence scorer), its bonus."""

    index: int
    document: Document
    units: Units
    rated: Rated
    bonus: float
    fixed: Fixed

    @property
    def everything(self) -> tuple[Span, ...]:
        """The whole text."""
        return ((0, len(self.document.text)),)

    def spans(self, chosen: Sequence[Sentence]) -> tuple[Span, ...]:
        """Return the spans of sentences and of what must stay, with what they carry along."""
        kept = [False] * len(self.units.units)
        for sentence in chosen:
            kept[sentence.first : sentence.last] = [True] * (sentence.last - sentence.first)
        forced: set[int] = set()
        for i, unit in enumerate(self.units.units):
            if meets(self.fixed.spans, unit.body, unit.end):
                kept[i] = True
                forced.add(i)
        fixed = frozenset(forced)
        return tuple(render(self.units, closure(self.units.units, kept, fixed), fixed))


def worth(draft: Draft, best: float) -> list[float]:
    """Return for each unit what its sentence is worth.

    That is 1 for a sentence of value ``best``, and less by up to ``SHARE`` for worse ones.
    """
    factors = [1.0] * len(draft.units.units)
    for sentence, score in draft.rated:
        factor = 1 - SHARE * (1 - (score + draft.bonus) / best) if best else 1.0
        for i in range(sentence.first, sentence.last):
            factors[i] = factor
    return factors


def fixed(
    texts: Sequence[str],
    formats: Sequence[str | None],
    keep: Sequence[str | re.Pattern[str]],
    counter: TokenCounter,
) -> list[Fixed]:
    """Return what may not go of each text: what is left of it when there is no budget at all."""
    nothing, engine = Budget(target_tokens=0), Compressor(Lexical(), counter)
    bare = engine.compress(texts, nothing, formats=formats, fold=False)
    kept = engine.compress(texts, nothing, formats=formats, keep=keep, fold=False) if keep else bare
    return [
        Fixed(True) if a.text.strip() else Fixed(False, b.spans)
        for a, b in zip(bare, kept, strict=True)
    ]


def drafts(
    documents: Mapping[int, Document],
    held: Mapping[int, Fixed],
    question: str,
    scorer: SentenceScorer | None,
) -> list[Draft]:
    """Return a draft a document, in their order; the documents have a score."""
    units = [replace(split(d.text), title=d.title) for d in documents.values()]
    rows: list[Rated] = [[] for _ in documents]
    if scorer is not None and documents:
        rows = scorer.rate(units, question, [document.title for document in documents.values()])
    scores = [document.score or 0.0 for document in documents.values()]
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    scale = (high - low) or 1.0
    return [
        Draft(i, document, own, row, DOCUMENT * (score - low) / scale, held[i])
        for (i, document), own, row, score in zip(
            documents.items(), units, rows, scores, strict=True
        )
    ]


def best_sentences(
    found: Sequence[Draft], tokens: int, counter: TokenCounter, *, is_strict: bool = False
) -> dict[int, tuple[Span, ...]]:
    """Return the spans of the best sentences of all documents, up to so many tokens.

    A sentence is worth its score and its document's bonus. A document that stays or goes as one is
    worth its best sentence. The last one crosses the limit; with ``is_strict`` those that
    would are passed over.
    """
    items: list[tuple[float, Draft, list[Sentence]]] = []
    for draft in found:
        sentences = [sentence for sentence, _ in draft.rated]
        if draft.fixed.is_whole:
            best = max((score for _, score in draft.rated), default=0.0)
            items.append((best + draft.bonus, draft, sentences))
        else:
            items += [(score + draft.bonus, draft, [sentence]) for sentence, score in draft.rated]
    items.sort(key=lambda item: -item[0])
    costs = counter.count_many(
        [draft.document.text[its[0].start : its[-1].end] if its else "" for _, draft, its in items]
    )
    chosen: dict[int, list[Sentence]] = {draft.index: [] for draft in found}
    for (_, draft, its), cost in zip(items, costs, strict=True):
        if tokens <= 0:
            break
        if not is_strict or cost <= tokens:
            chosen[draft.index] += its
            tokens -= cost
    return {
        draft.index: draft.everything
        if draft.fixed.is_whole and chosen[draft.index]
        else draft.spans(sorted(chosen[draft.index], key=lambda sentence: sentence.first))
        for draft in found
    }


def meets(spans: Sequence[Span], start: int, end: int) -> bool:
    """Whether any of the spans has a character of ``start:end``."""
    return any(a < end and start < b for a, b in spans)
