"""Which texts and parts of texts share a budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .budget import Budget
from .detection import detect
from .formats import guard
from .keep import Wishes
from .long import LONG
from .segments import Segment, segments
from .spending import Group, Job, Kept
from .structured.policy import JsonPolicy
from .tokens import TokenCounter

BATCH = 1_000_000
"""Characters of several texts that are in memory, as units, at once."""


@dataclass(frozen=True, slots=True)
class Input:
    """A text, what is known of its format, its own budget if it has one, and its parts."""

    text: str
    hint: str | None
    budget: Budget | None
    parts: Sequence[Segment]
    title: str = ""

    @property
    def is_marked(self) -> bool:
        """Whether the text has tags."""
        return len(self.parts) != 1 or self.parts[0] != Segment(0, len(self.text))


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of all texts of a call."""

    budget: Budget
    question: str | None
    wishes: Wishes
    joint: bool
    json: JsonPolicy | None
    fold: bool

    def job(self, one: Input, part: Segment, tokens: int, share: float) -> Job:
        """Return the work on a part, of which about ``share`` may stay."""
        text = one.text[part.start : part.end]
        found = self.wishes.find(text)
        if part.is_whole:
            return Job(text, tokens, found, None, is_whole=True)
        guarded = guard(
            text,
            one.hint,
            found.kept,
            json=self.json,
            fold=self.fold,
            share=share,
            question=self.question,
        )
        return Job(text, tokens, found, guarded, title=one.title)

    def plans(self, inputs: Sequence[Input], sizes: Sequence[int]) -> list[Plan]:
        """Return the texts by the budget that they share; ``sizes`` are the parts' tokens."""
        shared = [one for one in inputs if one.budget is None] if self.joint else []
        alone = [one for one in inputs if not self.joint or one.budget is not None]
        plans = [Plan([one], one.budget or self.budget) for one in alone]
        plans += [Plan(shared, self.budget)] if shared else []
        total, counts = sum(sizes), iter(sizes)
        jobs: dict[int, list[Job]] = {}
        for one in inputs:
            jobs[id(one)] = []
            for part in one.parts:
                tokens, own = next(counts), part.budget or one.budget
                whole = total if self.joint and own is None else tokens
                share = share_of(own or self.budget, whole)
                jobs[id(one)].append(self.job(one, part, tokens, share))
        for plan in plans:
            plan.add(jobs)
        return plans


@dataclass(slots=True)
class Plan:
    """Texts that share a budget, their parts' jobs, and the groups that these are in."""

    inputs: Sequence[Input]
    budget: Budget
    jobs: list[list[Job]] = field(default_factory=list[list[Job]])
    own: list[Group] = field(default_factory=list[Group])
    rest: Group = field(init=False)
    fixed: list[Job] = field(default_factory=list[Job])

    @property
    def busy(self) -> list[Group]:
        """The groups that may have to lose something."""
        parted = self.is_parted  # a target may turn out smaller then
        return [
            group
            for group in (*self.own, self.rest)
            if not group.is_idle() or (parted and group.budget.target_tokens is not None)
        ]

    @property
    def is_parted(self) -> bool:
        """Whether a text has several parts."""
        return any(one.is_marked for one in self.inputs)

    def add(self, jobs: dict[int, list[Job]]) -> None:
        """Sort the jobs, by the ``id`` of their input, into groups."""
        self.jobs = [jobs[id(one)] for one in self.inputs]
        self.rest = Group(self.budget)
        for one, own in zip(self.inputs, self.jobs, strict=True):
            for part, job in zip(one.parts, own, strict=True):
                if part.is_whole:
                    self.fixed.append(job)
                elif part.budget is not None:
                    self.own.append(Group(part.budget, [job]))
                else:
                    self.rest.jobs.append(job)

    def spend(self, counter: TokenCounter, less: int) -> tuple[dict[int, Kept], int]:
        """Return what is left of each job, and the tokens that all may come to."""
        kept = {id(job): Kept([(0, len(job.text))], job.tokens) for job in self.fixed}
        each = 0 if self.rest.jobs else -(-less // max(len(self.own), 1))
        for group in self.own:
            kept |= group.spend(counter, each)
        spent = sum(one.tokens for one in kept.values())
        is_total = self.rest.budget.target_tokens is not None
        kept |= self.rest.spend(counter, less + (spent if is_total else 0))
        limit = self.rest.budget.limit(self.rest.tokens)
        if limit is None:
            return kept, self.rest.tokens + spent
        return kept, max(limit, spent) if is_total else limit + spent


def share_of(budget: Budget, tokens: int) -> float:
    """Return the share of the tokens that may stay, 0 where scores decide."""
    limit = budget.limit(tokens)
    return 0.0 if limit is None else min(limit / max(tokens, 1), 1.0)


def parts_of(text: str, is_marked: bool) -> Sequence[Segment]:
    """Return the segments of a text, one for all of it without ``is_marked``."""
    return segments(text) if is_marked and text else [Segment(0, len(text))]


def batches(inputs: Sequence[Input]) -> Iterator[Sequence[Input]]:
    """Yield neighbouring texts of so many characters together that units fit into memory."""
    batch: list[Input] = []
    size = 0
    for one in inputs:
        if batch and size + len(one.text) > BATCH:
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += len(one.text)
    if batch:
        yield batch


def long_kind(batch: Sequence[Input]) -> str | None:
    """Return the format of a text that is to be compressed in chunks, None for others."""
    if len(batch) != 1 or len(batch[0].text) <= LONG or batch[0].is_marked:
        return None
    kind = detect(batch[0].text, batch[0].hint)
    return kind if kind in ("prose", "log") else None
