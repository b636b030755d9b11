"""Score, select, render: the whole of prompt compression behind one method."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..middleware.errors import InvalidRequest
from .budget import Budget
from .formats import Guarded, guard
from .keep import marks, matches, patterns_of, scored_with
from .render import Span, text_of
from .scorers.base import Scorer
from .select import Scored, select
from .structure import split
from .tokens import TokenCounter


@dataclass(frozen=True, slots=True)
class Compressed:
    """A text with fewer tokens, and where its parts come from.

    ``text`` is exactly ``"".join(original[a:b] for a, b in spans)``. ``tokens_in`` and
    ``tokens_out`` are counted with the compressor's counter. ``seconds`` is this text's share of
    the wall time. ``reason`` says why the text was not compressed as asked, None when it was.
    ``scores`` holds (start, end, score) of each scored unit of the original.
    """

    text: str
    original: str
    spans: tuple[Span, ...]
    tokens_in: int
    tokens_out: int
    compressor: str
    seconds: float = 0.0
    reason: str | None = None
    scores: tuple[tuple[int, int, float], ...] = ()

    @property
    def rate(self) -> float:
        """Tokens out per token in; 1.0 for a text without tokens."""
        return self.tokens_out / self.tokens_in if self.tokens_in else 1.0


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
    ) -> list[Compressed]:
        """Return each text compressed, in order.

        ``question`` prefers what it asks about. What matches a ``keep`` pattern stays as it is,
        even over the budget. ``formats`` holds a name or file name a text ("json", "main.py",
        ".log"; None: look at the text). ``joint`` spends one budget over all texts, so that a dull
        text gives its tokens to a dense one; else each text has the budget for itself.

        JSON loses only white space; CSV, XML, YAML, TOML, code, diffs, TeX, subtitles, and parts
        of JSON, CSV and XML are returned whole, with a ``reason``. A rate of 0 leaves nothing of
        prose.

        Raises InvalidRequest for None as texts or budget, a text that is no string, a ``keep``
        that is no regular expression, and a ``formats`` of another length than ``texts``.
        """
        started = time.perf_counter()
        patterns = patterns_of(keep)
        hints = _checked(texts, budget, formats)
        tokens = self.counter.count_many(texts)
        jobs = [
            _Job(text, count, forced := matches(text, patterns), guard(text, hint, forced))
            for text, count, hint in zip(texts, tokens, hints, strict=True)
        ]
        groups = [jobs] if joint else [[job] for job in jobs]
        busy = [group for group in groups if not _is_enough(budget, group)]
        prose = [job for group in busy for job in group if job.guarded is None]
        units = [split(job.text) for job in prose]
        rows = self.scorer.score(units, question)
        scored = {
            id(job): scored_with(u, row, job.forced)
            for job, u, row in zip(prose, units, rows, strict=True)
        }
        results: list[Compressed] = []
        for group in groups:
            results += self._spend(group, scored, budget)
        seconds = time.perf_counter() - started
        total = sum(tokens) or 1
        return [replace(r, seconds=seconds * r.tokens_in / total) for r in results]

    def _spend(
        self, group: list[_Job], scored: dict[int, Scored], budget: Budget
    ) -> list[Compressed]:
        """Spend one budget on the texts of a group: first what is whole or JSON, then prose.

        Prose pays for what is whole with up to half of its own share, not with all of it: a table
        among the documents must not cost the others their last word.
        """
        if _is_enough(budget, group):
            return [self._result(job, [(0, len(job.text))], job.tokens) for job in group]
        total = sum(job.tokens for job in group)
        limit = budget.limit(total)
        results = {id(job): self._guarded(job, limit) for job in group if job.guarded is not None}
        prose = [job for job in group if job.guarded is None]
        spent = sum(result.tokens_out for result in results.values())
        fair = 0 if limit is None else limit * sum(job.tokens for job in prose) // total
        left = 0 if limit is None else max(limit - spent, fair // 2)
        if prose:
            selection = select([scored[id(job)] for job in prose], budget, left, self.counter)
            out = sum(selection.tokens)
            for job, spans, count in zip(prose, selection.spans, selection.tokens, strict=True):
                reason = None
                if selection.is_over:
                    reason = f"what must be kept takes {out} tokens, {left} were left for it"
                elif job.tokens and not out and (left or budget.rate):
                    reason = f"no word fits into {left} tokens"
                elif spent and not left:
                    reason = f"texts that are kept whole took {spent} of {limit} tokens"
                result = self._result(job, spans, count, reason)
                results[id(job)] = replace(result, scores=marks(scored[id(job)]))
        return [results[id(job)] for job in group]

    def _guarded(self, job: _Job, limit: int | None) -> Compressed:
        guarded = job.guarded
        if guarded is None:
            return self._result(job, [], 0)
        spans = guarded.spans
        count = self.counter.count(text_of(job.text, spans))
        if count >= job.tokens:  # some tokenizers count minified JSON as more
            spans, count = [(0, len(job.text))], job.tokens
        is_short = guarded.is_whole or (limit is not None and count > limit)
        return self._result(job, spans, count, guarded.reason if is_short else None)

    def _result(
        self, job: _Job, spans: list[Span], tokens: int, reason: str | None = None
    ) -> Compressed:
        spans = [(start, end) for start, end in spans if start < end]
        text = text_of(job.text, spans)
        return Compressed(
            text, job.text, tuple(spans), job.tokens, tokens, self.scorer.name, reason=reason
        )


@dataclass(frozen=True, slots=True)
class _Job:
    text: str
    tokens: int
    forced: tuple[Span, ...]
    guarded: Guarded | None


def _is_enough(budget: Budget, group: list[_Job]) -> bool:
    """Whether the budget asks for nothing to go."""
    total = sum(job.tokens for job in group)
    limit = budget.limit(total)
    return budget.threshold == 0 or (limit is not None and limit >= total)


def _checked(
    texts: Sequence[str], budget: Budget, formats: Sequence[str | None] | None
) -> Sequence[str | None]:
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
    if formats is None:
        return [None] * len(texts)
    if isinstance(formats, str) or len(formats) != len(texts):
        raise InvalidRequest(
            f"formats needs one entry a text, got {formats!r:.80} for {len(texts)} texts"
        )
    return formats
