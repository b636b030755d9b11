"""The innermost handler: from one request to the engine's batches and back."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from ..backends.base import Backend
from .breaker import Breaker
from .cache import Cache
from .coalescing import Flights
from .errors import (
    BackendError,
    HeadraceError,
    InvalidRequest,
    ModelUnavailable,
    UnsupportedConstraint,
)
from .hedging import hedged
from .identity import identity
from .lane import Lane, Options
from .queueing import Order, priority
from .report import StageReport
from .types import Event, Finished, Request, Response, Text, TextDelta

SURROGATE = re.compile(r"[\ud800-\udfff]")
PATIENT = Breaker()


class Dispatcher:
    """Feeds engines full batches.

    ``backend`` is an engine, or several in the order in which they are asked: the next one gets
    a request when the one before failed, can't do what it asks for, or is overloaded, and no event
    of the answer was passed on yet.

    ``window`` is how many seconds a request waits for company when the engine is free,
    ``max_queue`` how many may wait for an engine before Overloaded is raised, and ``order`` who of
    them goes first (``tags["priority"]`` is "interactive", the default, or "bulk"). ``retries`` is
    how often a request is sent again after a retryable failure: after the engine's Retry-After,
    for which nobody is sent, else after exponential back-off with full jitter, and only before
    the first event: text that was already streamed is never repeated. With ``resend``, that goes
    for what the engine may have taken too (a time-out, 502, 504), and may be billed twice.
    ``breaker`` says when to leave a failing engine alone, None for never.

    ``hedge`` is after how many seconds without any event the next engine is asked as well (the
    same one, if there is no other): the first to begin is heard, the other is closed. None: never.

    With ``coalesce``, requests that are the same and deterministic (temperature 0 or a seed, no
    tools) share one answer while it is under way; ``cache`` also keeps it for later.

    Safe to use from several event loops; each has its own queues. docs/dispatch.md shows how all
    this works together.
    """

    def __init__(
        self,
        backend: Backend | Sequence[Backend],
        *,
        window: float = 0.002,
        max_queue: int = 1024,
        retries: int = 2,
        order: Order | None = None,
        resend: bool = False,
        hedge: float | None = None,
        breaker: Breaker | None = PATIENT,
        coalesce: bool = True,
        cache: Cache | None = None,
    ) -> None:
        self.backends = tuple(backend) if isinstance(backend, Sequence) else (backend,)
        if not self.backends:
            raise InvalidRequest("a dispatcher needs at least one engine, got none")
        self.backend = self.backends[0]
        if hedge is not None and not _is_positive(hedge):
            raise InvalidRequest(f"hedge is a number of seconds above 0, got {hedge!r:.40}")
        self._options = Options(window, max_queue, retries, order or Order(), breaker, resend)
        self._hedge = hedge
        self._coalesce = coalesce
        self._cache = cache
        self._lanes: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[Lane, ...]] = (
            WeakKeyDictionary()
        )
        self._flights: WeakKeyDictionary[asyncio.AbstractEventLoop, Flights] = WeakKeyDictionary()

    async def __call__(self, request: Request) -> AsyncGenerator[Event, None]:
        """Yield the engine's events; the response's report ends with the dispatch row."""
        started = asyncio.get_running_loop().time()
        deadline = None if request.deadline is None else started + request.deadline
        said = priority(request)
        request = _sendable(request.with_documents_inline())
        same = identity(request) if self._coalesce or self._cache is not None else None
        if same is None:
            events = self._answer(request, deadline)
        elif self._cache is None:
            events = self._together((same, said), request, deadline)
        else:
            events = self._cached(same, request, deadline, self._cache)
        async with aclosing(events) as stream:
            async for event in stream:
                yield event

    async def close(self) -> None:
        """Stop this loop's batches and free the engines. Idempotent."""
        loop = asyncio.get_running_loop()
        for lane in self._lanes.pop(loop, ()):
            await lane.close()
        if (flights := self._flights.pop(loop, None)) is not None:
            await flights.close()
        if self._cache is not None:
            await self._cache.close()
        for backend in self.backends:
            await backend.close()

    async def _cached(
        self, same: str, request: Request, deadline: float | None, cache: Cache
    ) -> AsyncGenerator[Event, None]:
        """Answer from the cache, or put the answer into it."""
        loop = asyncio.get_running_loop()
        started, said, found = loop.time(), "", None
        engine = await self._engine(deadline)
        key = f"{same} {engine}"
        if engine:
            try:
                found = await cache.get(key)
            except HeadraceError as error:
                said = str(error)
        if found is not None:
            response, age = found
            row = StageReport(
                "cache",
                f"answer of {age:.0f} s ago, no engine asked",
                loop.time() - started,
                details={"hit": True, "age_seconds": age, "engine": engine},
            )
            if response.text:
                yield TextDelta(response.text)
            yield Finished(replace(response, report=request.report.add(row)))
            return
        seconds = loop.time() - started
        async with aclosing(self._together((same, priority(request)), request, deadline)) as events:
            async for event in events:
                if isinstance(event, Finished):
                    event = await _kept(event.response, key, engine, seconds, said, cache)
                yield event

    async def _engine(self, deadline: float | None) -> str:
        """Return what an answer of the first engine is stored under, "" when that is not known."""
        try:
            async with asyncio.timeout_at(deadline):
                found = await self.backend.capabilities()
        except (HeadraceError, TimeoutError):
            return ""
        return _name(found.name, found.model, found.engine)

    def _together(
        self, key: tuple[str, str], request: Request, deadline: float | None
    ) -> AsyncGenerator[Event, None]:
        """Share the answer of the same request, if one is under way."""
        if not self._coalesce:
            return self._answer(request, deadline)
        loop = asyncio.get_running_loop()
        flights = self._flights.setdefault(loop, Flights())
        return flights.join(key, request, deadline, lambda alone: self._answer(alone, None))

    def _answer(self, request: Request, deadline: float | None) -> AsyncGenerator[Event, None]:
        """Ask one engine after the other, and with a hedge two at a time."""
        loop = asyncio.get_running_loop()
        if loop not in self._lanes:
            self._lanes[loop] = tuple(Lane(one, self._options) for one in self.backends)
        lanes = self._lanes[loop]
        if self._hedge is None:
            return self._in_order(lanes, request, deadline)
        return self._hedged(lanes, request, deadline, self._hedge)

    async def _hedged(
        self, lanes: Sequence[Lane], request: Request, deadline: float | None, seconds: float
    ) -> AsyncGenerator[Event, None]:
        """Ask the first engine, and after so many seconds, or when it fails, the others."""
        events = hedged(
            lambda: self._in_order(lanes[:1], request, deadline, is_last=len(lanes) == 1),
            lambda: self._in_order(lanes[1:] or lanes, request, deadline),
            seconds,
            _none_answered if len(lanes) > 1 else None,
        )
        async with aclosing(events) as stream:
            async for event, is_hedged, failed in stream:
                event = _with_failures(event, failed)
                yield _told(event, "two were asked", {"hedged": True}) if is_hedged else event

    async def _in_order(
        self,
        lanes: Sequence[Lane],
        request: Request,
        deadline: float | None,
        *,
        is_last: bool = True,
    ) -> AsyncGenerator[Event, None]:
        """Ask one engine after the other, until one begins to answer; ``is_last``: no more come."""
        failures: list[HeadraceError] = []
        for number, lane in enumerate(lanes, 1):
            events = lane.answer(request, deadline, is_last=is_last and number == len(lanes))
            try:
                first = await anext(events)
            except (BackendError, ModelUnavailable, UnsupportedConstraint) as error:
                failures.append(error)
                continue
            try:
                yield _with_failures(first, failures)
                async for event in events:
                    yield _with_failures(event, failures)
            finally:
                await events.aclose()
            return
        raise _none_answered(failures)


def _is_positive(number: Any) -> bool:
    return type(number) in (int, float) and 0 < number < float("inf")


def _with_failures(event: Event, failures: Sequence[HeadraceError]) -> Event:
    """Write into the report which engines were asked before."""
    if not failures:
        return event
    said = [str(error) for error in failures]
    return _told(event, f"after {len(failures)} that failed", {"failed": said})


def _told(event: Event, said: str, details: Mapping[str, Any]) -> Event:
    """Add something to the last row of the report, which is the dispatcher's."""
    if not isinstance(event, Finished):
        return event
    *rows, last = event.response.report.stages
    row = replace(last, decision=f"{last.decision}, {said}", details={**last.details, **details})
    report = replace(event.response.report, stages=(*rows, row))
    return Finished(replace(event.response, report=report))


def _none_answered(failures: Sequence[HeadraceError]) -> HeadraceError:
    if len(failures) == 1:
        return failures[0]
    said = "; ".join(str(error) for error in failures)
    failed = [error for error in failures if isinstance(error, BackendError)]
    hints = [error.retry_after for error in failed if error.retry_after is not None]
    error = BackendError(
        f"none of {len(failures)} engines answered: {said}",
        retryable=any(error.retryable for error in failed),
        retry_after=min(hints, default=None),
    )
    error.__cause__ = failures[-1]
    return error


async def _kept(
    response: Response, key: str, engine: str, seconds: float, said: str, cache: Cache
) -> Finished:
    """Store the answer, if its engine is the one of the key, and say so in the report."""
    last = response.report.stages[-1].details
    is_kept = False
    if engine and not said and not last.get("failed"):
        try:
            is_kept = await cache.put(key, response)
        except HeadraceError as error:
            said = str(error)
    row = StageReport(
        "cache",
        said or ("not there yet, stored" if is_kept else "not there, not to be stored"),
        seconds,
        details={"hit": False, "stored": is_kept, "engine": engine},
    )
    return Finished(replace(response, report=response.report.add(row)))


def _name(*parts: str) -> str:
    return " ".join(part for part in parts if part)


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
