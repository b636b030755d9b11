"""The stage that lets the model write the documents shorter."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

from ..compressors import Budget, Compressor
from ..compressors.abstractive import PROMPT, Abstractive, Summary, Task
from . import parts
from .errors import HeadraceError, InvalidRequest
from .report import StageReport
from .types import Document, Event, Finished, Handler, Request, Response, Sampling


@dataclass(frozen=True)
class Summarise:
    """Replace each document by what it says about the question, in the engine's own words.

    RECOMP's abstractive compressor (Xu et al. 2024): one call a document, all at the same time, so
    that the dispatcher batches them, then the request itself. See ``Abstractive`` for what is
    made of the model's answers; no document gets longer, and all together stay within the budget
    (``rate`` or ``target_tokens``, over the documents' texts). A document that the model finds
    nothing relevant in is left out. A call that fails costs nothing but the summary: its document
    is cut by ``compressor`` instead (``on_error="raise"``: the request fails).

    A summary is not the original's wording and may be wrong. The report says of each
    document which it is, and the response's usage holds the calls. Summaries may take half of
    the request's deadline. ``width`` is the most calls at a time.
    """

    name: ClassVar[str] = "summarise"
    rate: float | None = None
    target_tokens: int | None = None
    compressor: str = "auto"
    tokenizer: str | None = None
    least: int = 48
    prompt: str = PROMPT
    width: int = 64
    on_error: Literal["pass", "raise"] = "pass"

    def __post_init__(self) -> None:
        _ = self.budget  # wrong options are said here, not at the first request
        if type(self.width) is not int or self.width < 1:
            raise InvalidRequest(f"width must be a whole number from 1 on, got {self.width!r}")

    @cached_property
    def budget(self) -> Budget:
        """The budget as one value."""
        return Budget(rate=self.rate, target_tokens=self.target_tokens)

    @cached_property
    def abstractive(self) -> Abstractive:
        """The prompts and checks, and the compressor to fall back to."""
        cutter = Compressor(parts.scorer(self.compressor), parts.counter(self.tokenizer))
        return Abstractive(cutter, self.least, self.prompt)

    async def __call__(
        self, request: Request, call_next: Handler, /
    ) -> AsyncGenerator[Event, None]:
        """Summarise the documents, send the request on, and pass the answer's events through."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        question = request.question or None
        tasks = await asyncio.to_thread(
            self.abstractive.tasks, request.documents, self.budget, question=question
        )
        responses = await self._ask(request, call_next, tasks)
        answers = [None if response is None else response.text for response in responses]
        summaries = await asyncio.to_thread(
            self.abstractive.finish, tasks, answers, question=question
        )
        usage = [response.usage for response in responses if response]
        seconds = loop.time() - started
        changed = replace(
            request,
            documents=_documents(summaries),
            report=request.report.add(_row(summaries, len(responses), seconds)),
            deadline=None if request.deadline is None else max(request.deadline - seconds, 0.001),
        )
        async with aclosing(call_next(changed)) as events:
            async for event in events:
                if isinstance(event, Finished) and usage:
                    total = sum(usage, event.response.usage)
                    event = Finished(replace(event.response, usage=total))
                yield event

    async def _ask(
        self, request: Request, call_next: Handler, tasks: Sequence[Task]
    ) -> list[Response | None]:
        """Return a response for each task with a prompt, None where the call failed."""
        gate = asyncio.Semaphore(self.width)

        async def one(task: Task) -> Response | None:
            sub = Request.of(
                task.prompt or "",
                sampling=Sampling(
                    max_tokens=task.limit + task.limit // 4 + 8,
                    temperature=0.0,
                    seed=request.sampling.seed,
                ),
                deadline=None if request.deadline is None else request.deadline / 2,
                tags=request.tags,
            )
            async with gate:
                try:
                    return await _collected(sub, call_next)
                except HeadraceError:
                    if self.on_error == "raise":
                        raise
                    return None

        calls = [asyncio.ensure_future(one(task)) for task in tasks if task.prompt is not None]
        try:
            return await asyncio.gather(*calls)
        finally:
            for call in calls:  # of which some still run when one raised, or we were cancelled
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)


async def _collected(request: Request, call_next: Handler) -> Response:
    async with aclosing(call_next(request)) as events:
        async for event in events:
            if isinstance(event, Finished):
                return event.response
    raise HeadraceError("a stage ended its stream without Finished; the last event must be one")


def _documents(summaries: Sequence[Summary]) -> tuple[Document, ...]:
    return tuple(s.document for s in summaries if s.document.text.strip())


def _row(summaries: Sequence[Summary], num_calls: int, seconds: float) -> StageReport:
    if not summaries:
        return StageReport(Summarise.name, "no documents to summarise", seconds)
    written = [s for s in summaries if s.is_abstractive]
    gone = len(summaries) - len(_documents(summaries))
    decision = f"summarised {len(written)} of {len(summaries)} documents in the model's own words"
    if gone:
        decision += f", left out {gone}"
    rows: list[dict[str, Any]] = [
        {
            "id": s.original.id,
            "title": s.original.title,
            "is_span_preserving": not s.is_abstractive,
            "is_relevant": s.is_relevant,
            "tokens_in": s.tokens_in,
            "tokens_out": s.tokens_out,
            "reason": s.reason,
        }
        for s in summaries
    ]
    return StageReport(
        Summarise.name,
        decision,
        seconds,
        sum(s.tokens_in for s in summaries),
        sum(s.tokens_out for s in summaries),
        details={"calls": num_calls, "is_span_preserving": not written, "documents": rows},
    )
