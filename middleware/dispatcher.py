"""The innermost handler: from one request to the engine's batches and back."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncGenerator
from dataclasses import replace
from weakref import WeakKeyDictionary

from ..backends.base import Backend, Capabilities, Job
from .batching import Batcher, Ticket
from .errors import BackendError, DeadlineExceeded, HeadraceError, UnsupportedConstraint
from .report import StageReport
from .types import Event, Finished, Request, Text

SURROGATE = re.compile(r"[\ud800-\udfff]")
LONGEST_WAIT = 60.0  # seconds; an engine that asks for more is told on to the caller at once


class Dispatcher:
    """Feeds an engine full batches.

    ``window`` is how many seconds a request waits for company when the engine is free,
    ``max_queue`` how many may wait before Overloaded is raised, ``retries`` how often a request
    is sent again after a retryable failure. A retry honours the engine's Retry-After, else backs
    off exponentially with full jitter, and happens only before the first event: text that
    was already streamed is never repeated.

    Safe to use from several event loops; each has its own queue.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        window: float = 0.002,
        max_queue: int = 1024,
        retries: int = 2,
    ) -> None:
        self.backend = backend
        self._window = window
        self._max_queue = max_queue
        self._retries = retries
        self._batchers: WeakKeyDictionary[asyncio.AbstractEventLoop, Batcher] = WeakKeyDictionary()

    async def __call__(self, request: Request) -> AsyncGenerator[Event, None]:
        """Yield the engine's events; the response's report ends with the dispatch row."""
        started = asyncio.get_running_loop().time()
        deadline = None if request.deadline is None else started + request.deadline
        try:
            async with asyncio.timeout_at(deadline):
                capabilities = await self.backend.capabilities()
        except TimeoutError as error:
            if deadline is None:  # the engine's own time-out, not ours
                raise BackendError(f"the engine did not say what it can do: {error}") from error
            raise _late(request) from None
        _check(request, capabilities)
        request = _sendable(request.with_documents_inline())
        for attempt in range(self._retries + 1):
            try:
                events = self._attempt(request, capabilities, deadline, attempt)
                first = await anext(events)
            except BackendError as error:
                is_last = attempt == self._retries or (error.retry_after or 0) > LONGEST_WAIT
                if is_last or not error.retryable:
                    raise
                await _pause(attempt, error.retry_after, deadline)
                continue
            try:
                yield first
                async for event in events:
                    yield event
            finally:
                await events.aclose()
            return

    async def _attempt(
        self,
        request: Request,
        capabilities: Capabilities,
        deadline: float | None,
        attempt: int,
    ) -> AsyncGenerator[Event, None]:
        batcher = self._batcher(capabilities)
        ticket = batcher.submit(Job(request))
        first_at: float | None = None
        try:
            while True:
                event = await _get(ticket, deadline, request)
                if isinstance(event, HeadraceError):
                    raise event
                first_at = first_at or asyncio.get_running_loop().time()
                if isinstance(event, Finished):
                    row = _row(ticket, capabilities, first_at, attempt)
                    report = request.report.add(row)
                    yield Finished(replace(event.response, report=report))
                    return
                yield event
        finally:
            if not ticket.is_done:
                batcher.cancel(ticket)

    async def close(self) -> None:
        """Stop this loop's batches and free the engine. Idempotent."""
        batcher = self._batchers.pop(asyncio.get_running_loop(), None)
        if batcher is not None:
            await batcher.close()
        await self.backend.close()

    def _batcher(self, capabilities: Capabilities) -> Batcher:
        loop = asyncio.get_running_loop()
        if loop not in self._batchers:
            self._batchers[loop] = Batcher(
                self.backend, capabilities, window=self._window, max_queue=self._max_queue
            )
        return self._batchers[loop]


def _check(request: Request, capabilities: Capabilities) -> None:
    constraint = request.constraint
    if constraint is not None and constraint.kind not in capabilities.constraints:
        can = ", ".join(sorted(capabilities.constraints)) or "no constraint"
        raise UnsupportedConstraint(
            f"{capabilities.name} cannot enforce a {constraint.kind} constraint (it can: {can}); "
            "use another constraint or the transformers backend"
        )


async def _get(ticket: Ticket, deadline: float | None, request: Request) -> Event | HeadraceError:
    if deadline is None:
        return await ticket.events.get()
    remaining = deadline - asyncio.get_running_loop().time()
    try:
        return await asyncio.wait_for(ticket.events.get(), remaining)
    except TimeoutError:
        raise _late(request) from None


def _late(request: Request) -> DeadlineExceeded:
    return DeadlineExceeded(
        f"no answer within the deadline of {request.deadline:g} s; "
        "raise deadline, lower max_tokens, or send fewer requests at a time"
    )


def _sendable(request: Request) -> Request:
    """Replace lone surrogates, which no engine can be sent, as U+FFFD."""
    if not any(SURROGATE.search(message.text) for message in request.messages):
        return request
    messages = tuple(
        replace(
            message,
            parts=tuple(
                replace(part, text=SURROGATE.sub("\ufffd", part.text))
                if isinstance(part, Text)
                else part
                for part in message.parts
            ),
        )
        for message in request.messages
    )
    return replace(request, messages=messages)


async def _pause(attempt: int, retry_after: float | None, deadline: float | None) -> None:
    """Wait before the next attempt; a wait past the deadline is not worth starting."""
    wait = random.uniform(0, min(8.0, 0.5 * 2**attempt)) if retry_after is None else retry_after
    if deadline is not None and asyncio.get_running_loop().time() + wait >= deadline:
        raise DeadlineExceeded(f"the engine asks to wait {wait:.1f} s, past the request's deadline")
    await asyncio.sleep(wait)


def _row(ticket: Ticket, capabilities: Capabilities, first_at: float, retries: int) -> StageReport:
    now = asyncio.get_running_loop().time()
    started = ticket.started_at or ticket.queued_at
    return StageReport(
        "dispatch",
        f"{capabilities.name}, batch of {ticket.batch_size}"
        + (f", {retries} retries" if retries else ""),
        now - ticket.queued_at,
        details={
            "engine": capabilities.name,
            "model": capabilities.model,
            "batch_size": ticket.batch_size,
            "queue_seconds": started - ticket.queued_at,
            "first_event_seconds": first_at - ticket.queued_at,
            "retries": retries,
        },
    )
