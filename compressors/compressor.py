"""Score, select, render: the whole of prompt compression behind one method."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ..middleware.errors import InvalidRequest
from .budget import Budget
from .compressed import Compressed
from .keep import Wishes
from .long import Stored, Weighed, grouped, in_chunks
from .notes import Note, woven
from .plans import BATCH, Asked, Input, Plan, batches, long_kind, parts_of, share_of
from .render import text_of
from .scorers.base import Choice, Scorer, choice_of
from .segments import Segment, joined
from .select import worth
from .spending import Group, Job, Kept
from .structured.policy import JsonPolicy
from .tokens import TokenCounter

__all__ = ["Compressed", "Compressor"]

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
        titles: Sequence[str] | None = None,
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
        ("json", "main.py", ".log"; None: look at the text), ``titles`` what a text stands under,
        which some scorers read. ``joint`` spends one budget over all
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

        ``progress`` is called now and then with the characters done and their total. A text of
        more than 400,000 characters is compressed in chunks (``long.in_chunks``).

        JSON and JSON Lines keep every record, key, number and short string; white space goes
        first, then words of long texts in strings, each of which keeps at least one; ``json`` says
        otherwise by key. So do records among words and what is nearly JSON (what Python prints,
        JSON5, JSON cut off); what of it cannot be read stays. In logs, runs of lines that say the
        same are folded to the first and the last with a count (``Compressed.notes``;
        not with ``fold=False``), then words go, whole lines first, those that tell of errors last.
        CSV, XML, YAML, TOML, code, diffs, TeX, subtitles, and parts of JSON, CSV and XML are
        returned whole, with a ``reason``. A rate of 0 leaves nothing of prose.

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
            Input(text, hint, own, parts_of(text, segments), title)
            for text, hint, own, title in _checked(texts, budget, formats, budgets, titles)
        ]
        asked = Asked(budget, question, wishes, joint, json, fold)
        total, done = sum(len(text) for text in texts), 0
        results: list[Compressed] = []

        def tell(share: float, size: int) -> None:
            if progress is not None:
                progress(done + int(share * size), total)

        for batch in [inputs] if joint else batches(inputs):
            started = time.perf_counter()
            kind = None if joint else long_kind(batch)
            size = sum(len(one.text) for one in batch)
            if kind is None:
                found = self._batch(batch, asked)
            else:
                found = [self._long(batch[0], kind, asked, partial(tell, size=size))]
            seconds = time.perf_counter() - started
            tokens = sum(result.tokens_in for result in found) or 1
            results += [replace(r, seconds=seconds * r.tokens_in / tokens) for r in found]
            done += size
            tell(0, 0)
        return results

    def _long(
        self, one: Input, kind: str, asked: Asked, progress: Callable[[float], None]
    ) -> Compressed:
        """Compress a text of many pages in chunks."""
        budget = one.budget or asked.budget
        choice = choice_of(self.scorer, one.text)

        def weigh(texts: Sequence[str]) -> Iterator[Weighed]:
            is_relative = asked.question is not None and choice.compares
            for some in grouped(texts, BATCH if is_relative else 0):
                groups: list[Group] = []
                for text in some:
                    part = Segment(0, len(text))
                    share = share_of(budget, self.counter.count(text))
                    piece = Input(text, kind, None, [part], one.title)
                    job = asked.job(piece, part, 0, share)
                    groups.append(Group(budget, [job]))
                for group, row in zip(groups, self._score(groups, asked), strict=True):
                    yield Weighed.of(row, worth(list(group.scored.values()), self.counter))

        def compress(text: str, own: Budget, weighed: Weighed) -> Compressed:
            engine = replace(self, scorer=Stored(choice.name, weighed.row))
            part = Input(text, kind, None, [Segment(0, len(text))])
            return engine._batch([part], replace(asked, budget=own))[0]

        result = in_chunks(one.text, budget, self.counter, weigh, compress, progress)
        return replace(result, because=choice.because)

    def _batch(self, inputs: Sequence[Input], asked: Asked) -> list[Compressed]:
        """Compress texts that fit into memory together, their scores asked for at once."""
        pieces = [one.text[part.start : part.end] for one in inputs for part in one.parts]
        plans = asked.plans(inputs, self.counter.count_many(pieces))
        together: list[Group] = []
        for plan in plans:
            if asked.question is not None and self._compares(plan.busy):
                self._score(plan.busy, asked)  # texts that share no budget are not compared
            else:
                together += plan.busy
        self._score(together, asked)
        done = {id(one): result for plan in plans for one, result in self._spend(plan)}
        return [done[id(one)] for one in inputs]

    def _compares(self, groups: Sequence[Group]) -> bool:
        texts = (job.text for group in groups for job in group.jobs if job.is_prose)
        return any(choice_of(self.scorer, text).compares for text in texts)

    def _score(self, groups: Sequence[Group], asked: Asked) -> list[list[float]]:
        """Give each group the scored units of its prose, all from one call of the scorer."""
        wanted = [(group, job) for group in groups for job in group.jobs if job.is_prose]
        units = [job.units for _, job in wanted]
        rows = self.scorer.score(units, asked.question)
        for (group, job), one, row in zip(wanted, units, rows, strict=True):
            group.score(job, one, row, asked.wishes, self.counter)
        return rows

    def _spend(self, plan: Plan) -> Iterator[tuple[Input, Compressed]]:
        """Yield each text's result; the parts put together are counted, and no more than allowed.

        White space between parts has tokens, too, so it may take a second attempt.
        """
        less = 0
        results: list[Compressed] = []
        for _ in range(_ATTEMPTS):
            kept, allowed = plan.spend(self.counter, less)
            results = [
                self._result(one, jobs, kept)
                for one, jobs in zip(plan.inputs, plan.jobs, strict=True)
            ]
            over = sum(result.tokens_out for result in results) - allowed
            if over <= 0 or not plan.is_parted:
                break
            less += over
        out, target = sum(result.tokens_out for result in results), plan.budget.target_tokens
        if plan.is_parted and target is not None and out > target:
            said = f"with its segments the text takes {out} tokens, {target} were asked for"
            results = [replace(result, reason=result.reason or said) for result in results]
        yield from zip(plan.inputs, results, strict=True)

    def _result(self, one: Input, jobs: Sequence[Job], kept: dict[int, Kept]) -> Compressed:
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
        choice = choice_of(self.scorer, one.text) if scores else Choice(self.scorer.name)
        return Compressed(
            text,
            one.text,
            tuple(spans),
            before,
            after,
            choice.name,
            reason="; ".join(reasons) or None,
            scores=scores,
            notes=notes,
            because=choice.because,
        )


def _checked(
    texts: Sequence[str],
    budget: Budget,
    formats: Sequence[str | None] | None,
    budgets: Sequence[Budget | None] | None,
    titles: Sequence[str] | None,
) -> Iterator[tuple[str, str | None, Budget | None, str]]:
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
    for name, given in (("formats", formats), ("budgets", budgets), ("titles", titles)):
        if given is not None and (isinstance(given, str) or len(given) != len(texts)):
            raise InvalidRequest(
                f"{name} needs one entry a text, got {given!r:.80} for {len(texts)} texts"
            )
    number = len(texts)
    hints, own = formats or [None] * number, budgets or [None] * number
    return zip(texts, hints, own, titles or [""] * number, strict=True)
