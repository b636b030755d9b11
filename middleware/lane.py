"""One engine, in one event loop: its queue, its breaker, its retries."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace

from ..backends.base import Backend, Capabilities
from .batching import Batcher, Ticket
from .breaker import Breaker, Circuit
from .errors import (
    BackendError,
    DeadlineExceeded,
    HeadraceError,
    InvalidRequest,
    Overloaded,
    UnsupportedConstraint,
)
from .queueing import Order
from .report import StageReport
from .types import Event, Finished, Request, Usage

LONGEST_WAIT = 60.0  # seconds; an engine that asks for more is told on to the caller at once


@dataclass(frozen=True, slots=True)
class Options:
    """What a dispatcher was told about each of its engines."""

    window: float
    max_queue: int
    retries: int
    order: Order
    breaker: Breaker | None
    resend: bool = False

    def __post_init__(self) -> None:
        for name, least in (("window", 0), ("max_queue", 1), ("retries", 0)):
            if getattr(self, name) < least:
                raise InvalidRequest(f"{name} is at least {least}, got {getattr(self, name)}")


class Lane:
    """Sends requests to an engine and tries again what failed before its first event."""

    def __init__(self, backend: Backend, options: Options) -> None:
        self.backend = backend
        self._options = options
        self._circuit = Circuit(options.breaker)
        self._batcher: Batcher | None = None

    async def answer(
        self, request: Request, deadline: float | None, *, is_last: bool
    ) -> AsyncGenerator[Event, None]:
        """Yield the engine's events; the response's report ends with the dispatch row.

        Unless it ``is_last``, another engine can be asked: where this one would have to be waited
        for, that is an error at once.
        """
        is_probe = self._enter()
        try:
            capabilities = await self._ask(request, deadline)
            check(request, capabilities)
            async with aclosing(self._tries(request, capabilities, deadline, is_last)) as events:
                async for event in events:
                    if is_probe or isinstance(event, Finished):
                        self._circuit.succeeded()
                        is_probe = False
                    yield event
        except (InvalidRequest, UnsupportedConstraint, Overloaded):
            raise  # the engine works
        except BackendError as error:
            if error.retryable and self._circuit.failed(_now(), is_probe=is_probe):
                self._give_up()
            is_probe = False
            raise
        finally:
            if is_probe:
                self._circuit.leave()

    async def close(self) -> None:
        """Stop the batches. Idempotent; the engine itself stays."""
        if self._batcher is not None:
            await self._batcher.close()

    def _enter(self) -> bool:
        """Raise when the engine is left alone. Returns whether this request is the probe."""
        if self._circuit.wait(_now()) > 0:
            raise self._open()
        return self._circuit.enter()

    def _open(self) -> BackendError:
        wait = self._circuit.wait(_now())
        return BackendError(
            f"the engine failed {self._circuit.num_failed} requests in a row and is left alone;"
            f" it is tried again in {wait:.1f} s",
            retryable=True,
            retry_after=wait,
        )

    def _give_up(self) -> None:
        if self._batcher is not None:
            self._batcher.fail(self._open())

    async def _ask(self, request: Request, deadline: float | None) -> Capabilities:
        try:
            async with asyncio.timeout_at(deadline):
                capabilities = await self.backend.capabilities()
        except TimeoutError as error:
            if deadline is None:  # the engine's own time-out, not ours
                raise BackendError(
                    f"the engine did not say what it can do: {error}", retryable=True
                ) from error
            raise late(request.deadline) from None
        if self._batcher is None:
            self._batcher = Batcher(
                self.backend,
                capabilities,
                window=self._options.window,
                max_queue=self._options.max_queue,
                order=self._options.order,
            )
        return capabilities

    async def _tries(
        self, request: Request, capabilities: Capabilities, deadline: float | None, is_last: bool
    ) -> AsyncGenerator[Event, None]:
        since: float | None = None
        for attempt in range(self._options.retries + 1):
            assert self._batcher is not None
            self._refuse_long_wait(deadline, is_last)
            ticket = self._batcher.submit(request, since=since)
            since = ticket.queued_at
            events = self._attempt(ticket, request, capabilities, deadline, attempt)
            try:
                first = await anext(events)
            except BackendError as error:
                wait = self._wait(error, attempt)
                is_over = (
                    attempt == self._options.retries
                    or not error.retryable
                    or (error.may_have_run and not self._options.resend)
                )
                if is_over or wait > LONGEST_WAIT or self._circuit.wait(_now()) > 0:
                    raise
                if not asks_to_wait(error):
                    await _pause(wait, deadline)
                elif not is_last:
                    raise
                continue
            try:
                yield first
                async for event in events:
                    yield event
            finally:
                await events.aclose()
            return

    def _wait(self, error: BackendError, attempt: int) -> float:
        """Return how long to wait after a failure; when the engine asks for it, all wait.

        The queue itself has obeyed a Retry-After already. Without one it is exponential back-off
        with full jitter (M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog).
        """
        jittered = random.uniform(0, min(8.0, 0.5 * 2**attempt))
        wait = jittered if error.retry_after is None else error.retry_after
        if asks_to_wait(error) and error.retryable:
            assert self._batcher is not None
            if error.retry_after is None:
                self._batcher.hold(wait)
            if wait > LONGEST_WAIT:
                self._batcher.fail(error)
        return wait

    def _refuse_long_wait(self, deadline: float | None, is_last: bool) -> None:
        assert self._batcher is not None
        wait = self._batcher.held_for
        if wait > LONGEST_WAIT or (wait > 0 and not is_last):
            raise Overloaded(f"the engine asks to wait {wait:.1f} s", retry_after=wait)
        if wait > 0 and deadline is not None and _now() + wait >= deadline:
            raise _past_deadline(wait)

    async def _attempt(
        self,
        ticket: Ticket,
        request: Request,
        capabilities: Capabilities,
        deadline: float | None,
        attempt: int,
    ) -> AsyncGenerator[Event, None]:
        first_at: float | None = None
        try:
            while True:
                event = await _get(ticket, deadline, request)
                if isinstance(event, HeadraceError):
                    raise event
                first_at = first_at or _now()
                if isinstance(event, Finished):
                    usage = event.response.usage
                    row = _row(ticket, capabilities, first_at, attempt, usage)
                    report = request.report.add(row)
                    yield Finished(replace(event.response, report=report))
                    return
                yield event
        finally:
            if not ticket.is_done:
                assert self._batcher is not None
                self._batcher.cancel(ticket)


def asks_to_wait(error: BackendError) -> bool:
    """Whether the engine asks all its callers to wait, not only this one."""
    return error.retry_after is not None or isinstance(error, Overloaded)


def late(seconds: float | None) -> DeadlineExceeded:
    """Return the error of a request whose deadline of so many seconds is over."""
    return DeadlineExceeded(
        f"no answer within the deadline of {seconds:g} s; "
        "raise deadline, lower max_tokens, or send fewer requests at a time"
    )


def check(request: Request, capabilities: Capabilities) -> None:
    """Raise UnsupportedConstraint when the engine can't enforce what the request asks for."""
    constraint = request.constraint
    if constraint is not None and constraint.kind not in capabilities.constraints:
        can = ", ".join(sorted(capabilities.constraints)) or "no constraint"
        raise UnsupportedConstraint(
            f"{capabilities.name} cannot enforce a {constraint.kind} constraint (it can: {can}); "
            "use another constraint or the transformers backend"
        )


async def _get(ticket: Ticket, deadline: float | None, request: Request) -> Event | HeadraceError:
    try:
        async with asyncio.timeout_at(deadline):  # wait_for may lose a cancellation (Python 3.11)
            return await ticket.events.get()
    except TimeoutError:
        raise late(request.deadline) from None


async def _pause(wait: float, deadline: float | None) -> None:
    """Wait before the next attempt; a wait past the deadline is not worth starting."""
    if deadline is not None and _now() + wait >= deadline:
        raise _past_deadline(wait)
    await asyncio.sleep(wait)


def _past_deadline(wait: float) -> DeadlineExceeded:
    return DeadlineExceeded(f"the engine asks to wait {wait:.1f} s, past the request's deadline")


def _now() -> float:
    return asyncio.get_running_loop().time()


def _row(
    ticket: Ticket, capabilities: Capabilities, first_at: float, retries: int, usage: Usage
) -> StageReport:
    now = _now()
    started = ticket.started_at or ticket.queued_at
    said = [f"{capabilities.name}, batch of {ticket.batch_size}"]
    if retries:
        said.append(f"{retries} retries")
    if usage.cached_tokens:
        said.append(f"{usage.cached_tokens} of {usage.prompt_tokens} prompt tokens known")
    if usage.forced_tokens:
        said.append(f"{usage.forced_tokens} of {usage.completion_tokens} tokens without a pass")
    return StageReport(
        "dispatch",
        ", ".join(said),
        now - ticket.queued_at,
        details={
            "engine": capabilities.name,
            "model": capabilities.model,
            "batch_size": ticket.batch_size,
            "queue_seconds": started - ticket.queued_at,
            "first_event_seconds": first_at - ticket.queued_at,
            "retries": retries,
            "cached_tokens": usage.cached_tokens,
            "forced_tokens": usage.forced_tokens,
        },
    )
