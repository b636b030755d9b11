"""Texts that were chosen to an exact budget: the last step of ``compress_documents``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..middleware.types import Document
from .budget import Budget
from .compressor import Compressor
from .context import through, written
from .passages import Fixed
from .render import Span, text_of
from .scorers.base import Scorer
from .tokens import TokenCounter
from .units import Units

_ROUNDS = 8
_REFILLS = 3


@dataclass(frozen=True, slots=True)
class Candidate:
    """A document of which ``spans`` are up for the budget, better documents first.

    ``hint`` is the format that the caller gave; ``worth`` the factors of its sentences' words, each
    with the sentence's end among the characters of the spans.
    """

    index: int
    document: Document
    spans: tuple[Span, ...]
    fixed: Fixed
    hint: str | None
    worth: tuple[tuple[int, float], ...] = ()

    @property
    def is_forced(self) -> bool:
        """Whether the caller wants something of it kept."""
        return bool(self.fixed.spans)


@dataclass(frozen=True, slots=True)
class Fitted:
    """What is left of a candidate: spans of the document's text, counted tokens, a reason."""

    document: Document
    spans: tuple[Span, ...]
    tokens: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Fit:
    """What is left by index, why the others went, and by how many tokens the budget is broken."""

    kept: dict[int, Fitted]
    dropped: dict[int, str]
    over: int = 0


@dataclass(frozen=True)
class Fitter:
    """Drops words, and documents where that is not enough, until all as they are written fit."""

    compressor: Compressor
    question: str
    keep: Sequence[str | re.Pattern[str]]

    @property
    def _counter(self) -> TokenCounter:
        return self.compressor.counter

    def fit(self, candidates: Sequence[Candidate], limit: int) -> Fit:
        """Return what is left within ``limit`` tokens, titles and breaks counted.

        Documents that nothing is left of give the tokens of their titles to the others.
        """
        worth = {text_of(c.document.text, c.spans): c.worth for c in candidates}
        engine = replace(self.compressor, scorer=Blended(self.compressor.scorer, worth))
        alive, dropped = [*candidates], dict[int, str]()
        fit = Fit({}, dropped)
        correction = 0
        for attempt in range(_ROUNDS + len(candidates)):
            room = limit - self._overhead(alive) - correction
            if room <= 0 and (worst := next((c for c in alive[::-1] if not c.is_forced), None)):
                alive.remove(worst)
                dropped[worst.index] = "there is no room for it"
                continue
            kept, gone = self._cut(engine, alive, max(room, 0))
            texts = [kept[c.index].document for c in alive if c.index in kept]
            fit = Fit(kept, dropped, max(self._counter.count(written(texts)) - limit, 0))
            if gone and attempt < _REFILLS:
                dropped.update(gone)
                alive = [c for c in alive if c.index not in gone]
            elif not fit.over or (room <= 0 and all(c.is_forced for c in alive)):
                dropped.update(gone)
                break
            else:
                correction += fit.over
        return fit

    def _overhead(self, alive: Sequence[Candidate]) -> int:
        """Return the tokens of titles and breaks, about: the result is counted as it is."""
        return self._counter.count(written(replace(c.document, text="") for c in alive))

    def _cut(
        self, engine: Compressor, alive: Sequence[Candidate], room: int
    ) -> tuple[dict[int, Fitted], dict[int, str]]:
        kept, gone = dict[int, Fitted](), dict[int, str]()
        prose = [c for c in alive if not c.fixed.is_whole]
        for place, candidate in enumerate(alive):
            if not candidate.fixed.is_whole:
                continue
            share = room if not place or not prose else room // 2
            found = self._compressed(engine, [candidate], share)[0]
            if found.tokens <= share and found.tokens:
                kept[candidate.index] = found
                room -= found.tokens
            else:
                why = found.reason or "it is kept whole"
                gone[candidate.index] = f"{why}: {found.tokens} tokens, there is room for {share}"
        for candidate, found in zip(prose, self._compressed(engine, prose, room), strict=True):
            if found.document.text.strip():
                kept[candidate.index] = found
            else:
                gone[candidate.index] = "the budget went to better sentences"
        return kept, gone

    def _compressed(
        self, engine: Compressor, candidates: Sequence[Candidate], room: int
    ) -> list[Fitted]:
        results = engine.compress(
            [text_of(c.document.text, c.spans) for c in candidates],
            Budget(target_tokens=room),
            question=self.question,
            keep=self.keep,
            formats=[c.hint for c in candidates],
            joint=True,
            fold=False,
        )
        return [
            Fitted(
                replace(c.document, text=r.text), through(c.spans, r.spans), r.tokens_out, r.reason
            )
            for c, r in zip(candidates, results, strict=True)
        ]


@dataclass(frozen=True)
class Blended:
    """A scorer's scores, each multiplied by its sentence's worth; no text is scored twice.

    ``worth`` holds for a text the ends of its sentences and what they are worth, in order.
    """

    scorer: Scorer
    worth: Mapping[str, Sequence[tuple[int, float]]]
    _known: dict[str, list[float]] = field(default_factory=dict[str, list[float]], repr=False)

    @property
    def name(self) -> str:
        """The scorer's own name."""
        return self.scorer.name

    def score(self, texts: Sequence[Units], question: str | None = None) -> list[list[float]]:
        """Return a score for each unit; see ``Scorer.score``."""
        if any(units.text not in self._known for units in texts):
            rows = self.scorer.score(texts, question)
            for units, row in zip(texts, rows, strict=True):
                self._known[units.text] = self._weighted(units, row)
        return [self._known[units.text] for units in texts]

    def _weighted(self, units: Units, scores: list[float]) -> list[float]:
        worth = self.worth.get(units.text)
        if not worth:
            return scores
        weighted: list[float] = []
        at = 0
        for unit, score in zip(units.units, scores, strict=True):
            while at < len(worth) - 1 and worth[at][0] <= unit.body:
                at += 1
            weighted.append(score * worth[at][1])
        return weighted
