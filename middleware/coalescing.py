"""Identical requests at the same time: one goes to the engine, all get its answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Hashable
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from .errors import HeadraceError
from .lane import late
from .report import Report
from .types import Event, Finished, Request, Response

Inbox = asyncio.Queue[Event | BaseException]


@dataclass(slots=True, eq=False)
class _Flight:
    """An answer under way: what came so far, and who listens."""

    past: list[Event] = field(default_factory=list[Event])
    listeners: list[Inbox] = field(default_factory=list[Inbox])
    task: asyncio.Task[None] | None = None

    def put(self, event: Event | BaseException) -> None:
        if not isinstance(event, BaseException):
            self.past.append(event)
        for inbox in self.listeners:
            inbox.put_nowait(event)

    def finish(self, response: Response) -> None:
        for at, inbox in enumerate(self.listeners):
            inbox.put_nowait(Finished(_share(response, at, len(self.listeners))))


class Flights:
    """The answers under way in one event loop, by what is the same about their requests.

    A request that comes while the same one is being answered gets all events from the first one
    on. The engine's work belongs to all of them: it is stopped when the last one gives up, so it
    doesn't matter who came first. A failure is told to all. Each has its own deadline and its own
    report; all but one have ``usage.num_calls`` 0.
    """

    def __init__(self) -> None:
        self._open: dict[Hashable, _Flight] = {}

    async def join(
        self,
        key: Hashable,
        request: Request,
        deadline: float | None,
        start: Callable[[Request], AsyncGenerator[Event, None]],
    ) -> AsyncGenerator[Event, None]:
        """Yield the answer of the flight with this key, which ``start`` begins if there is none."""
        flight = self._open.get(key)
        if flight is None:
            flight = self._open[key] = _Flight()
            alone = replace(request, deadline=None, report=Report())
            flight.task = asyncio.get_running_loop().create_task(
                self._fly(key, flight, start(alone))
            )
        inbox = Inbox()
        for event in flight.past:
            inbox.put_nowait(event)
        flight.listeners.append(inbox)
        try:
            while True:
                came = await _get(inbox, deadline, request)
                if isinstance(came, BaseException):
                    raise came
                if isinstance(came, Finished):
                    report = request.report.add(*came.response.report.stages)
                    yield Finished(replace(came.response, report=report))
                    return
                yield came
        finally:
            flight.listeners.remove(inbox)
            if not flight.listeners:
                self._end(key, flight)
                if flight.task is not None:
                    flight.task.cancel()

    async def close(self) -> None:
        """Stop every answer under way. Idempotent."""
        tasks = [flight.task for flight in self._open.values() if flight.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _fly(
        self, key: Hashable, flight: _Flight, events: AsyncGenerator[Event, None]
    ) -> None:
        try:
            async with aclosing(events):
                async for event in events:
                    if isinstance(event, Finished):
                        self._end(key, flight)
                        flight.finish(event.response)
                        return
                    flight.put(event)
        except asyncio.CancelledError:
            self._end(key, flight)
            flight.put(HeadraceError("the answer that this request waited for was stopped"))
            raise
        except Exception as error:
            self._end(key, flight)
            flight.put(error)

    def _end(self, key: Hashable, flight: _Flight) -> None:
        """Let nobody join any more."""
        if self._open.get(key) is flight:
            del self._open[key]


async def _get(inbox: Inbox, deadline: float | None, request: Request) -> Event | BaseException:
    if deadline is None:
        return await inbox.get()
    try:
        left = deadline - asyncio.get_running_loop().time()
        return await asyncio.wait_for(inbox.get(), left)
    except TimeoutError:
        raise late(request.deadline) from None


def _share(response: Response, at: int, num: int) -> Response:
    """Return the response for one of ``num`` listeners."""
    if num == 1:
        return response
    said = f", shared with {num - 1} identical requests" if at == 0 else ", shared"
    rows = tuple(
        replace(
            row,
            decision=row.decision + said,
            details={**row.details, "coalesced": num, "is_first": at == 0},
        )
        for row in response.report.stages
    )
    usage = response.usage if at == 0 else replace(response.usage, num_calls=0)
    return replace(response, usage=usage, report=Report(rows))
