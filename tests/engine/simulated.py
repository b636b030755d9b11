"""A deterministic engine: continuous batching, a cost a step, scripted replies, faults.

It obeys the same protocol as the real engines (``headrace.backends.base.Backend``). A "token" is
a word with the white space before it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Literal

from headrace.backends.base import Backend, Capabilities, Job
from headrace.middleware.errors import BackendError, HeadraceError
from headrace.middleware.types import (
    Event,
    Finished,
    FinishReason,
    Handler,
    Request,
    Response,
    TextDelta,
    Usage,
)


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds: a step takes ``step + row * rows + context * tokens in all rows``.

    A row that joins adds ``prefill`` a prompt token that is not in the prefix cache.
    """

    step: float = 0.010
    row: float = 0.0
    context: float = 0.0
    prefill: float = 0.0


@dataclass(frozen=True, slots=True)
class Reply:
    """What the engine does with one request.

    It waits ``delay`` seconds, then writes ``text`` a token a step. After ``after`` tokens (None:
    never) it raises ``error``, or stops moving for ever where there is no error.
    """

    text: str = ""
    delay: float = 0.0
    after: int | None = None
    error: HeadraceError | None = None
    finish_reason: FinishReason = "stop"


@dataclass(slots=True)
class Record:
    """The log of one job; times are the loop's, in seconds, None where it did not come to that."""

    request: Request
    submitted: float
    started: float | None = None
    first_token: float | None = None
    ended: float | None = None
    text: str = ""
    num_tokens: int = 0
    outcome: Literal["open", "finished", "error", "cancelled"] = "open"


@dataclass(slots=True, eq=False)
class _Row:
    index: int
    job: Job
    reply: Reply
    record: Record
    tokens: list[str]
    prompt: list[str]
    out: asyncio.Queue[tuple[_Row, Event | HeadraceError | None]]
    cached: int = 0
    is_over: bool = field(default=False)

    def emit(self, event: Event | HeadraceError | None) -> None:
        self.out.put_nowait((self, event))


class SimulatedEngine:
    """An engine with ``slots`` rows, shared by all ``generate`` calls in flight.

    ``reply`` maps a request to what happens to it; it is called once a job, when the job
    arrives. ``log`` has a record a job in order of arrival; ``peak_rows`` and ``peak_calls`` are
    the most rows that ran and the most ``generate`` calls that were open at the same time. With
    ``prefix_cache``, what a prompt shares with one that was read in an earlier step is not read
    again; ``cache_prompts`` is how many prompts it holds, those read last (None: all).
    ``row_caches`` is only said, not done.
    """

    def __init__(
        self,
        reply: Callable[[Request], Reply | str],
        *,
        cost: Cost | None = None,
        slots: int = 64,
        max_batch: int = 1,
        max_concurrency: int = 64,
        prefix_cache: bool = False,
        cache_prompts: int | None = None,
        row_caches: bool = False,
    ) -> None:
        self.log: list[Record] = []
        self.peak_rows = 0
        self.peak_calls = 0
        self.is_closed = False
        self._reply = reply
        self._cost = cost or Cost()
        self._slots = slots
        self._capabilities = Capabilities(
            "simulated",
            max_batch=max_batch,
            max_concurrency=max_concurrency,
            has_prefix_cache=prefix_cache,
            has_row_caches=row_caches,
        )
        self._cache: list[list[str]] | None = [] if prefix_cache else None
        self._cache_prompts = cache_prompts
        self._num_calls = 0
        self._waiting: list[_Row] = []
        self._running: list[_Row] = []
        self._stepper: asyncio.Task[None] | None = None

    async def capabilities(self) -> Capabilities:
        return self._capabilities

    async def close(self) -> None:
        self.is_closed = True

    async def generate(
        self, batch: Sequence[Job]
    ) -> AsyncGenerator[tuple[int, Event | HeadraceError], None]:
        if self.is_closed:
            raise BackendError("the engine is closed")
        if not 0 < len(batch) <= self._capabilities.max_batch:
            raise BackendError(f"max_batch is {self._capabilities.max_batch}, got {len(batch)}")
        out: asyncio.Queue[tuple[_Row, Event | HeadraceError | None]] = asyncio.Queue()
        rows = [self._row(index, job, out) for index, job in enumerate(batch)]
        self._num_calls += 1
        self.peak_calls = max(self.peak_calls, self._num_calls)
        try:
            for row in rows:
                self._wake(row)
            num_open = len(rows)
            while num_open:
                row, event = await out.get()
                num_open -= event is None or not isinstance(event, TextDelta)
                if event is not None:
                    yield row.index, event
        finally:
            self._num_calls -= 1
            for row in rows:
                if not row.is_over:
                    self._end(row, "cancelled", None)

    def _row(
        self,
        index: int,
        job: Job,
        out: asyncio.Queue[tuple[_Row, Event | HeadraceError | None]],
    ) -> _Row:
        said = self._reply(job.request)
        reply = Reply(said) if isinstance(said, str) else said
        record = Record(job.request, asyncio.get_running_loop().time())
        self.log.append(record)
        prompt = _tokens("\n".join(f"{m.role}: {m.text}" for m in job.request.messages))
        return _Row(index, job, reply, record, _tokens(_until_stop(reply, job)), prompt, out)

    def _wake(self, row: _Row) -> None:
        if row.reply.delay:
            loop = asyncio.get_running_loop()
            loop.call_later(row.reply.delay, self._arrive, row)
        else:
            self._arrive(row)

    def _arrive(self, row: _Row) -> None:
        if row.is_over:
            return
        self._waiting.append(row)
        if self._stepper is None:
            self._stepper = asyncio.get_running_loop().create_task(self._steps())

    async def _steps(self) -> None:
        try:
            while self._waiting or self._running:
                cost = self._admit() + self._cost.step
                moving = [row for row in self._running if not _is_stopped(row)]
                cost += self._cost.row * len(moving)
                held = sum(len(row.prompt) + row.record.num_tokens for row in moving)
                await asyncio.sleep(cost + self._cost.context * held)
                for row in list(self._running):
                    self._advance(row)
        finally:
            self._stepper = None

    def _admit(self) -> float:
        """Move waiting rows into free slots and return what their prefill costs."""
        now = asyncio.get_running_loop().time()
        num_new = 0
        read: list[list[str]] = []
        while self._waiting and len(self._running) < self._slots:
            row = self._waiting.pop(0)
            row.record.started = now
            if self._cache is not None:
                row.cached = max((_shared(row.prompt, seen) for seen in self._cache), default=0)
                read.append(row.prompt)
            num_new += len(row.prompt) - row.cached
            self._running.append(row)
        if self._cache is not None:
            self._remember(self._cache, read)
        self.peak_rows = max(self.peak_rows, len(self._running))
        return self._cost.prefill * num_new

    def _remember(self, cache: list[list[str]], read: Sequence[list[str]]) -> None:
        """Keep the prompts read last; those that share more than half take the room of one."""
        for prompt in read:
            if self._cache_prompts is not None:
                cache[:] = [one for one in cache if _shared(one, prompt) * 2 <= len(prompt)]
                del cache[: max(len(cache) + 1 - self._cache_prompts, 0)]
            cache.append(prompt)

    def _advance(self, row: _Row) -> None:
        record, reply = row.record, row.reply
        if row.job.cancelled:
            self._end(row, "cancelled", None)
        elif reply.after is not None and record.num_tokens >= reply.after:
            if reply.error is not None:
                self._end(row, "error", reply.error)
        elif record.num_tokens < min(len(row.tokens), _limit(row)):
            token = row.tokens[record.num_tokens]
            record.num_tokens += 1
            record.text += token
            if record.first_token is None:
                record.first_token = asyncio.get_running_loop().time()
            row.emit(TextDelta(token))
            if reply.after is None and record.num_tokens in (len(row.tokens), _limit(row)):
                self._finish(row)
        else:
            self._finish(row)

    def _finish(self, row: _Row) -> None:
        record = row.record
        reason = "length" if record.num_tokens < len(row.tokens) else row.reply.finish_reason
        usage = Usage(len(row.prompt), record.num_tokens, row.cached)
        report = row.job.request.report
        response = Response(record.text, None, reason, usage, report)
        self._end(row, "finished", Finished(response))

    def _end(
        self,
        row: _Row,
        outcome: Literal["finished", "error", "cancelled"],
        event: Event | HeadraceError | None,
    ) -> None:
        row.is_over = True
        row.record.outcome = outcome
        row.record.ended = asyncio.get_running_loop().time()
        for rows in (self._waiting, self._running):
            if row in rows:
                rows.remove(row)
        row.emit(event)


def handler(engine: Backend) -> Handler:
    """Return a handler that sends each request to the engine alone, without a dispatcher."""

    async def handle(request: Request) -> AsyncGenerator[Event, None]:
        async with aclosing(engine.generate([Job(request)])) as events:
            async for _, event in events:
                if isinstance(event, HeadraceError):
                    raise event
                yield event

    return handle


def _tokens(text: str) -> list[str]:
    return re.findall(r"\s*\S+|\s+$", text)


def _limit(row: _Row) -> int:
    return row.job.request.sampling.max_tokens or len(row.tokens)


def _until_stop(reply: Reply, job: Job) -> str:
    found = (reply.text.find(stop) for stop in job.request.sampling.stop)
    return reply.text[: min((at for at in found if at >= 0), default=None)]


def _is_stopped(row: _Row) -> bool:
    after = row.reply.after
    return after is not None and row.reply.error is None and row.record.num_tokens >= after


def _shared(left: Sequence[str], right: Sequence[str]) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(left), len(right)))
