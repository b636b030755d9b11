"""Documents, a question and one budget: which documents, which sentences, which words."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import get_args

from ..middleware.errors import InvalidRequest
from ..middleware.types import Document
from .budget import Budget
from .compressor import Compressor
from .context import Context, DroppedDocument, KeptDocument, Order, ScoredSentence, ordered, written
from .fitting import Candidate, Fitter
from .passages import Draft, Fixed, best_sentences, drafts, fixed, meets, worth
from .render import Span, text_of
from .rerankers import Reranker
from .rerankers.base import full_text
from .rerankers.diversity import originals
from .scorers.base import Scorer
from .scorers.sentences import SentenceScorer
from .tokens import TokenCounter

DEPTH = 4.0
BREADTH = 2.5


def compress_documents(
    question: str,
    documents: Sequence[Document],
    budget: Budget,
    *,
    reranker: Reranker,
    scorer: Scorer | None,
    counter: TokenCounter,
    sentences: SentenceScorer | None = None,
    top_k: int | None = None,
    order: Order = "best first",
    copies: float | None = 0.8,
    keep: Sequence[str | re.Pattern[str]] = (),
    formats: Sequence[str | None] | None = None,
) -> Context:
    """Return what of the documents answers the question, within one budget over all of them.

    In this order:

    1. The ``reranker`` scores the documents. Near copies of a better one go (``copies`` is the
       least likeness, see ``originals``; None keeps them), as does what is not among the best
       ``top_k``
       and, once the better ones come to four times the budget, every other one (LongLLMLingua,
       section 4.1: the coarse step).
    2. Of their sentences the best stay, by ``sentences`` and by their document, until they come to
       2.5 times the budget (RECOMP, section 3.1). None leaves this step out.
    3. The ``scorer`` drops words until the budget is held (LLMLingua-2), all documents competing:
       better ones keep more. None drops no words: sentences stay or go as a whole.

    When everything fits, everything stays. ``budget`` counts the documents as ``Context.text``
    writes them, with titles. It is held, unless what matches ``keep`` is more; ``Context.reason``
    says so. Texts that no word may be taken out of (code, tables; ``formats`` as in
    ``Compressor.compress``) stay or go as one. Ids, titles and metadata are kept.

    Raises InvalidRequest for an empty question, a threshold as budget, a ``top_k`` below 1, an
    ``order`` that there is none of, or a document that is no Document.
    """
    started = time.perf_counter()
    hints = _checked(question, documents, budget, top_k, order, formats)
    if scorer is None and sentences is None:
        raise InvalidRequest("without a scorer and sentences nothing can be cut; give one of them")
    scores = reranker.score(question, documents) if documents else []
    scored = [replace(d, score=float(s)) for d, s in zip(documents, scores, strict=True)]
    ranked, dropped = _ranked(scored, top_k, copies)
    words = None if scorer is None else Compressor(scorer, counter)
    job = _Job(question, documents, scored, hints, counter, words, sentences, keep, dropped)
    tokens_in = counter.count(written(documents))
    limit = min(budget.limit(tokens_in) or 0, tokens_in)
    kept, over = job.within(limit, ranked)
    found = [kept[i] for i in ordered([i for i in ranked if i in kept], order)]
    gone = [
        DroppedDocument(documents[i], i, scored[i].score, why) for i, why in sorted(dropped.items())
    ]
    tokens_out = counter.count(written(k.document for k in found))
    return Context(
        tuple(found),
        tuple(gone),
        tokens_in,
        tokens_out,
        (scorer or sentences or reranker).name,
        reranker.name,
        time.perf_counter() - started,
        f"what must be kept takes {tokens_out} tokens, the budget is {limit}" if over else None,
    )


def _ranked(
    documents: Sequence[Document], top_k: int | None, copies: float | None
) -> tuple[list[int], dict[int, str]]:
    """Return the documents that may stay, best first, and why the others may not."""
    order = sorted(range(len(documents)), key=lambda i: -(documents[i].score or 0.0))
    firsts: Sequence[int] = range(len(order))
    if copies is not None:
        firsts = originals([full_text(documents[i]) for i in order], threshold=copies)
    ranked, dropped = list[int](), dict[int, str]()
    for place, i in enumerate(order):
        if not documents[i].text.strip():
            dropped[i] = "it has no text"
        elif firsts[place] != place:
            dropped[i] = f"nearly the same as document {order[firsts[place]]}"
        elif top_k is not None and len(ranked) >= top_k:
            dropped[i] = f"not among the best {top_k}"
        else:
            ranked.append(i)
    return ranked, dropped


@dataclass(frozen=True, slots=True)
class _Job:
    question: str
    given: Sequence[Document]
    documents: Sequence[Document]
    hints: Sequence[str | None]
    counter: TokenCounter
    words: Compressor | None
    sentences: SentenceScorer | None
    keep: Sequence[str | re.Pattern[str]]
    dropped: dict[int, str]

    def within(self, limit: int, ranked: list[int]) -> tuple[dict[int, KeptDocument], bool]:
        """Return what is kept of which document, and whether that is over the limit."""
        counter = self.counter
        held = self._held(ranked)
        if counter.count(written(self.documents[i] for i in ranked)) <= limit:
            found = self._drafts(ranked, held)
            return {draft.index: self._kept(draft, draft.everything) for draft in found}, False
        found = self._drafts(self._deep(limit, ranked, held), held)
        if self.words is None:
            return self._whole(limit, found)
        chosen = {draft.index: draft.everything for draft in found}
        if self.sentences is not None:
            chosen = best_sentences(found, int(BREADTH * limit), counter)
        for draft in found:
            if not chosen[draft.index]:
                self.dropped[draft.index] = "none of its sentences is among the best"
        best = max((score + d.bonus for d in found for _, score in d.rated), default=0.0)
        candidates = [
            Candidate(
                d.index,
                d.document,
                spans,
                d.fixed,
                self.hints[d.index],
                d.units,
                worth(d, best),
            )
            for d in found
            if (spans := chosen[d.index])
        ]
        fit = Fitter(self.words, self.question, self.keep).fit(candidates, limit)
        self.dropped.update(fit.dropped)
        kept = {
            draft.index: self._kept(draft, rest.spans, rest.reason)
            for draft in found
            if (rest := fit.kept.get(draft.index)) is not None
        }
        return kept, fit.over > 0

    def _whole(self, limit: int, found: list[Draft]) -> tuple[dict[int, KeptDocument], bool]:
        """Return what is kept when sentences stay or go as a whole."""
        kept, over = dict[int, KeptDocument](), 1
        tokens = limit
        while over > 0 and tokens >= 0:
            chosen = best_sentences(found, tokens, self.counter, is_strict=True)
            kept = {d.index: self._kept(d, spans) for d in found if (spans := chosen[d.index])}
            over = self.counter.count(written(k.document for k in kept.values())) - limit
            tokens = -1 if tokens == 0 else max(tokens - over, 0)
        for draft in found:
            if draft.index not in kept:
                self.dropped[draft.index] = "none of its sentences is among the best"
        return kept, over > 0

    def _held(self, ranked: Sequence[int]) -> dict[int, Fixed]:
        texts = [self.documents[i].text for i in ranked]
        formats = [self.hints[i] for i in ranked]
        found = fixed(texts, formats, self.keep, self.counter)
        return dict(zip(ranked, found, strict=True))

    def _deep(self, limit: int, ranked: Sequence[int], held: dict[int, Fixed]) -> list[int]:
        """Return the documents that the budget is deep enough for, best first."""
        counts = self.counter.count_many([d.text for d in self.documents])
        deep: list[int] = []
        total = 0
        for i in ranked:
            if total < DEPTH * limit or held[i].spans:
                deep.append(i)
                total += counts[i]
            else:
                self.dropped[i] = "better documents take the budget"
        return deep

    def _drafts(self, which: Sequence[int], held: dict[int, Fixed]) -> list[Draft]:
        documents = {i: self.documents[i] for i in which}
        return drafts(documents, held, self.question, self.sentences)

    def _kept(self, draft: Draft, spans: Sequence[Span], reason: str | None = None) -> KeptDocument:
        original = self.given[draft.index]
        text = text_of(original.text, spans)
        tokens_in, tokens_out = self.counter.count_many([original.text, text])
        sentences = tuple(
            ScoredSentence(s.start, s.end, round(score, 4), meets(spans, s.start, s.end))
            for s, score in draft.rated
        )
        return KeptDocument(
            replace(draft.document, text=text),
            original,
            draft.index,
            tuple(spans),
            sentences,
            tokens_in,
            tokens_out,
            reason,
        )


def _checked(
    question: str,
    documents: Sequence[Document],
    budget: Budget,
    top_k: int | None,
    order: Order,
    formats: Sequence[str | None] | None,
) -> Sequence[str | None]:
    """Return a format a document."""
    if not isinstance(question, str) or not question.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidRequest(
            f"choosing among documents needs a question, got {question!r:.80}; without one,"
            " compress the texts"
        )
    for document in documents:
        if not isinstance(document, Document):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidRequest(f"documents must be Documents, got {type(document).__name__}")
    if budget.rate is None and budget.target_tokens is None:
        raise InvalidRequest("documents share a rate or target_tokens, got a threshold or quality")
    if top_k is not None and (type(top_k) is not int or top_k < 1):
        raise InvalidRequest(f"top_k must be a whole number from 1 on, got {top_k!r}")
    if order not in get_args(Order):
        raise InvalidRequest(f"order must be one of {', '.join(get_args(Order))}, got {order!r}")
    if formats is None:
        return [None] * len(documents)
    if isinstance(formats, str) or len(formats) != len(documents):
        raise InvalidRequest(
            f"formats needs one entry a document, got {formats!r:.80} for {len(documents)}"
        )
    return formats
