"""Texts that were chosen to an exact budget: the last step of ``compress_documents``."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..middleware.types import Document
from .budget import Budget
from .compressor import Compressor
from .context import through, written
from .passages import Fixed
from .render import Span, text_of
from .scorers.base import Choice, Scorer, choice_of
from .tokens import TokenCounter
from .units import Units

_ROUNDS = 8
_REFILLS = 3


@dataclass(frozen=True, slots=True)
class Candidate:
    """A document of which ``spans`` are up for the budget, better documents first.

    ``hint`` is the format that the caller gave; ``units`` are those of the whole document,
    ``worth`` has a factor for the score of each.
    """

    index: int
    document: Document
    spans: tuple[Span, ...]
    fixed: Fixed
    hint: str | None
    units: Units
    worth: Sequence[float]

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
        scorer = self.compressor.scorer
        rows = known(candidates, scorer, self.question)
        engine = replace(self.compressor, scorer=Known(scorer, rows))
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
            titles=[c.document.title for c in candidates],
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
class Known:
    """Scores of texts that are known already, each by the place of its unit; others are scored.

    ``rows`` holds for a text its units' first characters, in order, and their scores.
    """

    scorer: Scorer
    rows: Mapping[str, tuple[list[int], list[float]]]

    @property
    def name(self) -> str:
        """The scorer's own name."""
        return self.scorer.name

    def choice(self, text: str) -> Choice:
        """Return which scorer reads a text; see ``choice_of``."""
        return choice_of(self.scorer, text)

    def score(self, texts: Sequence[Units], question: str | None = None) -> list[list[float]]:
        """Return a score for each unit; see ``Scorer.score``."""
        other = [units for units in texts if units.text not in self.rows]
        fresh = iter(self.scorer.score(other, question) if other else [])
        return [self._known(units) if units.text in self.rows else next(fresh) for units in texts]

    def _known(self, units: Units) -> list[float]:
        places, scores = self.rows[units.text]
        found: list[float] = []
        for unit in units.units:
            place = max(bisect_right(places, unit.body) - 1, 0)
            found.append(scores[place] if scores else 0.0)
        return found


def known(
    candidates: Sequence[Candidate], scorer: Scorer, question: str
) -> dict[str, tuple[list[int], list[float]]]:
    """Return for the text of each prose candidate's spans the places and scores of its units.

    The scorer reads the whole document, so that a word is judged with all that stands around it
    (and what a reranker has read is not read again).
    """
    prose = [c for c in candidates if not c.fixed.is_whole]
    rows = scorer.score([c.units for c in prose], question) if prose else []
    found: dict[str, tuple[list[int], list[float]]] = {}
    for candidate, row in zip(prose, rows, strict=True):
        units = candidate.units.units
        places, scores = list[int](), list[float]()
        at, i = 0, 0
        for start, end in candidate.spans:
            while i < len(units) and units[i].body < end:
                if units[i].body >= start:
                    places.append(at + units[i].body - start)
                    scores.append(row[i] * candidate.worth[i])
                i += 1
            at += end - start
        found[text_of(candidate.document.text, candidate.spans)] = places, scores
    return found
