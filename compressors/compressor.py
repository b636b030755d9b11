"""Score, select, render: the whole of prompt compression behind one method."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ..middleware.errors import InvalidRequest
from .budget import Budget
from .compressed import Compressed
from .formats import guard
from .keep import Wishes
from .notes import Note, woven
from .render import text_of
from .scorers.base import Scorer
from .segments import Segment, joined, segments
from .spending import Group, Job, Kept
from .structured.policy import JsonPolicy
from .tokens import TokenCounter

__all__ = ["Compressed", "Compressor"]

_BATCH = 1_000_000
_ATTEMPTS = 6


@dataclass(frozen=True, slots=True)
class Compressor:
    """Makes texts shorter, within a budget counted in the target's tokens. Thread-safe."""

    scorer: Scorer
    counter: TokenCounter

    def compress(
        self,
        texts: Sequence[str],
        budget: Budget,
        *,
        question: str | None = None,
        keep: Sequence[str | re.Pattern[str]] = (),
        formats: Sequence[str | None] | None = None,
        joint: bool = False,
        budgets: Sequence[Budget | None] | None = None,
        force_keep: Sequence[str | re.Pattern[str]] = (),
        force_drop: Sequence[str | re.Pattern[str]] = (),
        drop_consecutive: bool = False,
        keep_digits: bool = False,
        segments: bool = False,
        json: JsonPolicy | None = None,
        fold: bool = True,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Compressed]:
        """Return each text compressed, in order.

        ``question`` prefers what it asks about. ``formats`` holds a name or file name a text
        ("json", "main.py", ".log"; None: look at the text). ``joint`` spends one budget over all
        texts, so that a dull text gives its tokens to a dense one; else each text has the budget
        for itself. ``budgets`` holds a text's own budget, or None for the common one.

        What matches a ``keep`` pattern or a ``force_keep`` string stays as it is, even over the
        budget; so do all words with a digit with ``keep_digits``. With ``drop_consecutive``,
        ``force_keep`` strings that end up side by side stay once. Units that a ``force_drop``
        string covers go, at rate 1 too, unless they must stay; a unit that it covers in part
        ("May" of "12 May 2021") stays. Strings are matched as ``Wishes`` says.

        ``segments`` reads ``<headrace rate=0.4>..</headrace>`` and the like as markup (see
        ``segments.segments``): tags are in no output, a segment has a budget of its own or stays
        byte for byte, and what is outside shares the common budget. Of a target in tokens, the
        text outside gets what its segments leave.

        ``progress`` is called now and then with the characters done and their total.

        JSON and JSON Lines keep every record, key, number and short string; white space goes
        first, then words of long texts in strings, each of which keeps at least one; ``json`` says
        otherwise by key. In logs, runs of lines that say the same are folded to the first and the
        last with a count (``Compressed.notes``; not with ``fold=False``), then words go, whole
        lines first, those that tell of errors last. CSV, XML, YAML, TOML, code, diffs, TeX,
        subtitles, and parts of JSON, CSV and XML are returned whole, with a ``reason``. A rate of
        0 leaves nothing of prose.

        Raises InvalidRequest for None as texts or budget, a text that is no string, a ``keep``
        that is no regular expression, ``formats`` or ``budgets`` of another length than ``texts``,
        and tags that make no sense.
        """
        wishes = Wishes.of(
            keep,
            force_keep,
            force_drop,
            drop_consecutive=drop_consecutive,
            keep_digits=keep_digits,
        )
        inputs = [
            _Input(text, hint, own, _parts(text, segments))
            for text, hint, own in _checked(texts, budget, formats, budgets)
        ]
        total, done = sum(len(text) for text in texts), 0
        results: list[Compressed] = []
        for batch in [inputs] if joint else _batches(inputs):
            started = time.perf_counter()
            found = self._batch(batch, budget, question, wishes, joint, json, fold)
            seconds = time.perf_counter() - started
            tokens = sum(result.tokens_in for result in found) or 1
            results += [replace(r, seconds=seconds * r.tokens_in / tokens) for r in found]
            done += sum(len(one.text) for one in batch)
            if progress is not None:
                progress(done, total)
        return results

    def _batch(
        self,
        inputs: Sequence[_Input],
        budget: Budget,
        question: str | None,
        wishes: Wishes,
        joint: bool,
        json: JsonPolicy | None,
        fold: bool,
    ) -> list[Compressed]:
        """Compress texts that fit into memory together, their scores asked for at once."""
        pieces = [one.text[part.start : part.end] for one in inputs for part in one.parts]
        sizes = self.counter.count_many(pieces)
        counts = iter(zip(pieces, sizes, strict=True))
        plans = [_Plan([one], budget) for one in inputs]
        if joint:
            shared = [one for one in inputs if one.budget is None]
            plans = [_Plan([one], budget) for one in inputs if one.budget is not None]
            plans += [_Plan(shared, budget)] if shared else []
        jobs: dict[int, list[Job]] = {}
        for one in inputs:
            jobs[id(one)] = []
            for part in one.parts:
                text, tokens = next(counts)
                found = wishes.find(text)
                own = part.budget or one.budget
                share = _share(own or budget, sum(sizes) if joint and own is None else tokens)
                guarded = (
                    None
                    if part.is_whole
                    else guard(
                        text,
                        one.hint,
                        found.kept,
                        json=json,
                        fold=fold,
                        share=share,
                        question=question,
                    )
                )
                jobs[id(one)].append(Job(text, tokens, found, guarded, part.is_whole))
        for plan in plans:
            plan.add(jobs)
        self._score([group for plan in plans for group in plan.busy], question, wishes)
        done = {id(one): result for plan in plans for one, result in self._spend(plan, jobs)}
        return [done[id(one)] for one in inputs]

    def _score(self, groups: Sequence[Group], question: str | None, wishes: Wishes) -> None:
        """Give each group the scored units of its prose, all from one call of the scorer."""
        wanted = [
            (group, job)
            for group in groups
            for job in group.jobs
            if job.is_prose
        ]
        units = [job.units for _, job in wanted]
        rows = self.scorer.score(units, question)
        for (group, job), one, row in zip(wanted, units, rows, strict=True):
            group.score(job, one, row, wishes, self.counter)

    def _spend(
        self, plan: _Plan, jobs: dict[int, list[Job]]
    ) -> Iterator[tuple[_Input, Compressed]]:
        """Yield each text's result; the parts put together are counted, and no more than allowed.

        White space between parts has tokens, too, so it may take a second attempt.
        """
        less = 0
        results: list[Compressed] = []
        for _ in range(_ATTEMPTS):
            kept, allowed = plan.spend(self.counter, less)
            results = [self._result(one, jobs[id(one)], kept) for one in plan.inputs]
            over = sum(result.tokens_out for result in results) - allowed
            if over <= 0 or not plan.is_parted:
                break
            less += over
        out, target = sum(result.tokens_out for result in results), plan.rest.budget.target_tokens
        if plan.is_parted and target is not None and out > target:
            said = f"with its segments the text takes {out} tokens, {target} were asked for"
            results = [replace(result, reason=result.reason or said) for result in results]
        yield from zip(plan.inputs, results, strict=True)

    def _result(self, one: _Input, jobs: Sequence[Job], kept: dict[int, Kept]) -> Compressed:
        parts = [kept[id(job)] for job in jobs]
        moved = [
            [(a + part.start, b + part.start) for a, b in own.spans if a < b]
            for part, own in zip(one.parts, parts, strict=True)
        ]
        scores = tuple(
            (a + part.start, b + part.start, score)
            for part, own in zip(one.parts, parts, strict=True)
            for a, b, score in own.scores
        )
        notes = tuple(
            Note(note.at + part.start, note.text)
            for part, own in zip(one.parts, parts, strict=True)
            for note in own.notes
        )
        reasons = dict.fromkeys(own.reason for own in parts if own.reason)
        if not one.is_marked:
            spans, before = moved[0] if moved else [], sum(job.tokens for job in jobs)
            text, after = woven(one.text, spans, notes), sum(own.tokens for own in parts)
        else:
            spans = joined(one.text, one.parts, moved)
            text = woven(one.text, spans, notes)
            bare = text_of(one.text, [(part.start, part.end) for part in one.parts])
            before, after = self.counter.count_many([bare, text])
        return Compressed(
            text,
            one.text,
            tuple(spans),
            before,
            after,
            self.scorer.name,
            reason="; ".join(reasons) or None,
            scores=scores,
            notes=notes,
        )


@dataclass(frozen=True, slots=True)
class _Input:
    text: str
    hint: str | None
    budget: Budget | None
    parts: Sequence[Segment]

    @property
    def is_marked(self) -> bool:
        """Whether the text has tags."""
        return len(self.parts) != 1 or self.parts[0] != Segment(0, len(self.text))


@dataclass(slots=True)
class _Plan:
    """Texts that share the common budget, and the groups that their parts are in."""

    inputs: Sequence[_Input]
    budget: Budget
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
        """Sort the parts' jobs into groups."""
        budgets = {one.budget for one in self.inputs if one.budget is not None}
        self.rest = Group(next(iter(budgets), self.budget))
        for one in self.inputs:
            for part, job in zip(one.parts, jobs[id(one)], strict=True):
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


def _batches(inputs: Sequence[_Input]) -> Iterator[Sequence[_Input]]:
    """Yield neighbouring texts of so many characters together that units fit into memory."""
    batch: list[_Input] = []
    size = 0
    for one in inputs:
        if batch and size + len(one.text) > _BATCH:
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += len(one.text)
    if batch:
        yield batch


def _share(budget: Budget, tokens: int) -> float:
    """Return the share of the tokens that may stay, 0 where scores decide."""
    limit = budget.limit(tokens)
    return 0.0 if limit is None else min(limit / max(tokens, 1), 1.0)


def _parts(text: str, is_marked: bool) -> Sequence[Segment]:
    return segments(text) if is_marked and text else [Segment(0, len(text))]


def _checked(
    texts: Sequence[str],
    budget: Budget,
    formats: Sequence[str | None] | None,
    budgets: Sequence[Budget | None] | None,
) -> Iterator[tuple[str, str | None, Budget | None]]:
    if isinstance(texts, str):
        raise InvalidRequest("texts must be a list of texts, got one text; put it into a list")
    if texts is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise InvalidRequest("texts must be a list of texts, got None")
    if budget is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise InvalidRequest("compressing needs a budget, got None; give Budget(rate=0.5)")
    for place, text in enumerate(texts):
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidRequest(
                f"text {place} must be a string, got {type(text).__name__}; convert it first"
            )
    for name, given in (("formats", formats), ("budgets", budgets)):
        if given is not None and (isinstance(given, str) or len(given) != len(texts)):
            raise InvalidRequest(
                f"{name} needs one entry a text, got {given!r:.80} for {len(texts)} texts"
            )
    return zip(texts, formats or [None] * len(texts), budgets or [None] * len(texts), strict=True)
