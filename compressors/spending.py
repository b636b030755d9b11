"""Texts that share a budget: what is whole or JSON first, then prose by its scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from .budget import Budget
from .formats import Guarded
from .keep import Found, Wishes, marks
from .notes import Note
from .render import Span, text_of
from .select import Scored
from .structure import split
from .structured.frames import fitted, frame_of, original_of
from .structured.values import settled
from .structured.view import View
from .tokens import TokenCounter
from .units import Units


@dataclass(frozen=True, slots=True)
class Job:
    """A text, or a part of one, to compress; ``is_whole`` says that nothing may go."""

    text: str
    tokens: int
    found: Found
    guarded: Guarded | None
    is_whole: bool = False
    title: str = ""

    @property
    def is_prose(self) -> bool:
        """Whether units and scores are needed for it, or for the view on it."""
        return not self.is_whole and (self.guarded is None or self.guarded.view is not None)

    @property
    def units(self) -> Units:
        """What is to be scored: the text's own units, or its view's."""
        view = self.guarded.view if self.guarded else None
        return replace(split(self.text) if view is None else view.units, title=self.title)


@dataclass(frozen=True, slots=True)
class Kept:
    """What is left of a job."""

    spans: Sequence[Span]
    tokens: int
    reason: str | None = None
    scores: tuple[tuple[int, int, float], ...] = ()
    notes: tuple[Note, ...] = ()


@dataclass(slots=True)
class Group:
    """Jobs that share a budget, and the scored units of those that are prose."""

    budget: Budget
    jobs: list[Job] = field(default_factory=list[Job])
    scored: dict[int, Scored] = field(default_factory=dict[int, Scored])
    views: dict[int, View] = field(default_factory=dict[int, View])

    @property
    def tokens(self) -> int:
        """Tokens of all the jobs."""
        return sum(job.tokens for job in self.jobs)

    def limit(self, less: int = 0) -> int | None:
        """Return the most tokens that may be left; ``less`` is not taken from a rate of 1."""
        limit = self.budget.limit(self.tokens)
        return limit if limit is None or self.budget.rate == 1 else max(limit - less, 0)

    def is_idle(self, less: int = 0) -> bool:
        """Return whether nothing has to go."""
        if any(job.found.dropped or (job.guarded and job.guarded.is_forced) for job in self.jobs):
            return False
        limit = self.limit(less)
        return self.budget.keeps_all(self.tokens) if limit is None else limit >= self.tokens

    def score(
        self, job: Job, units: Units, scores: Sequence[float], wishes: Wishes, counter: TokenCounter
    ) -> None:
        """Take in a job's scores; JSON values with a rate of their own are shortened by them."""
        if job.guarded is None or (view := job.guarded.view) is None:
            self.scored[id(job)] = wishes.apply(units, scores, job.found)
            return
        if job.guarded.framed is not None:
            view, scores = settled(view, job.guarded.framed.values, scores, counter)
        self.views[id(job)] = view
        self.scored[id(job)] = view.scored(scores, wishes, job.found)

    def spend(self, counter: TokenCounter, less: int = 0) -> dict[int, Kept]:
        """Return what is left of each job, by its ``id``, with ``less`` tokens than the budget.

        Prose pays for what is whole with up to half of its own share, not with all of it: a table
        among the documents must not cost the others their last word.
        """
        if self.is_idle(less):
            return {id(job): Kept([(0, len(job.text))], job.tokens) for job in self.jobs}
        limit = self.limit(less)
        kept = {id(job): _unscored(job, limit, counter) for job in self.jobs if not job.is_prose}
        prose = [job for job in self.jobs if job.is_prose]
        if not prose:
            return kept
        scored = [self.scored[id(job)] for job in prose]
        views = [self.views.get(id(job)) for job in prose]
        frames = [
            frame_of(view, own, job.tokens, counter)
            for view, own, job in zip(views, scored, prose, strict=True)
        ]
        others = sum(one.tokens for one in kept.values())
        spent = others + sum(frame.fixed for frame in frames)
        least = sum(frame.least for frame in frames)
        left = None
        if limit is not None:
            words = sum(frame.words for frame in frames) if len(self.jobs) > 1 else 0
            fair = limit * words // max(self.tokens, 1) // 2
            left = max(limit - spent - least, fair) + least
        selection = fitted(views, scored, frames, self.budget, left, counter)
        out = sum(selection.tokens)
        for job, view, own, found, count in zip(
            prose, views, scored, selection.spans, selection.tokens, strict=True
        ):
            spans, notes = original_of(view, found)
            reason = None
            if selection.is_over:
                reason = f"what must be kept takes {out} tokens, {left} were left for it"
            elif job.tokens and not out and (left or self.budget.rate) and not own.dropped:
                reason = f"no word fits into {left or 0} tokens"
            elif spent and left == 0:
                reason = f"texts that are kept whole took {spent} of {limit} tokens"
            if job.guarded is not None and job.guarded.framed is not None:
                is_short = selection.is_over or (limit is not None and others + out > limit)
                reason = job.guarded.reason if is_short else job.guarded.framed.said or None
                if count >= job.tokens and not job.guarded.is_forced:
                    spans, count = [(0, len(job.text))], job.tokens
            scores = marks(own) if view is None else view.marks(marks(own))
            kept[id(job)] = Kept(spans, count, reason, scores, notes)
        return kept


def _unscored(job: Job, limit: int | None, counter: TokenCounter) -> Kept:
    """Return what is left of a job that is whole, or that loses white space only."""
    whole = [(0, len(job.text))]
    if job.guarded is None or job.is_whole:
        return Kept(whole, job.tokens)
    spans: Sequence[Span] = [span for span in job.guarded.spans if span[0] < span[1]]
    count = counter.count(text_of(job.text, spans))
    if count >= job.tokens and not job.guarded.is_forced:
        spans, count = whole, job.tokens  # some tokenizers count minified JSON as more
    is_short = job.guarded.is_whole or (limit is not None and count > limit)
    said = job.guarded.framed.said if job.guarded.framed else None
    return Kept(spans, count, job.guarded.reason if is_short else said or None)
