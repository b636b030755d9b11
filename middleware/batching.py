"""Waiting requests become batches: one queue and one concurrency gate per engine and event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from ..backends.base import Backend, Capabilities, Job
from .errors import BackendError, HeadraceError, Overloaded
from .prefixes import LONGEST_LEAD, Warmth, prefixes
from .queueing import Order, Place, Speed, Waiting, estimated_tokens, priority
from .types import Event, Finished, Request

CLOCK = 1e-6  # seconds; timers are no more exact


@dataclass(slots=True, eq=False, kw_only=True)
class Ticket(Place):
    """A job that waits or runs, and the queue in which its events arrive. Times are the loop's."""

    job: Job
    queued_at: float
    events: asyncio.Queue[Event | HeadraceError] = field(
        default_factory=asyncio.Queue[Event | HeadraceError]
    )
    started_at: float | None = None
    batch_size: int = 0
    has_begun: bool = False
    is_done: bool = False

    @property
    def is_over(self) -> bool:
        """Whether the engine has nothing more to do for it."""
        return self.is_done or self.job.cancelled

    def put(self, event: Event | HeadraceError) -> None:
        """Hand over what happened; an error or ``Finished`` is the last thing that does."""
        if not self.is_done:
            self.is_done = isinstance(event, (Finished, HeadraceError))
            self.events.put_nowait(event)


class Batcher:
    """Gathers jobs for ``window`` seconds or until a batch is full, then runs it.

    At most ``max_concurrency`` batches of at most ``max_batch`` jobs run at a time; an engine that
    is continuous gets new jobs as soon as others are done (Capabilities). At most ``max_queue``
    jobs wait, one more is refused with Overloaded. ``order`` says who goes first.
    """

    def __init__(
        self,
        backend: Backend,
        capabilities: Capabilities,
        *,
        window: float,
        max_queue: int,
        order: Order,
    ) -> None:
        self._backend = backend
        self._capabilities = capabilities
        self._window = window
        self._max_queue = max_queue
        self._order = order
        self._warmth = _warmth(order, capabilities)
        spread = self._warmth is None and capabilities.has_row_caches
        self._waiting = Waiting[Ticket](order, self._warmth, spread=spread)
        self._speed = Speed()
        self._running: dict[asyncio.Task[None], Sequence[Ticket]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._held_until = 0.0

    def submit(self, request: Request, *, since: float | None = None) -> Ticket:
        """Queue a request.

        ``since`` is when one that is sent again was queued first: it keeps its place, and is never
        refused. Raises Overloaded when the queue is full, with the time in which what waits
        will have started at the queue's present speed.
        """
        loop = asyncio.get_running_loop()
        now = loop.time()
        if since is None and len(self._waiting) >= self._max_queue:
            raise Overloaded(
                f"{len(self._waiting)} requests wait already; send fewer at a time",
                hint=f", or raise max_queue={self._max_queue}",
                retry_after=max(self._speed.seconds(len(self._waiting), now), self.held_for),
            )
        queued_at = now if since is None else since
        least = self._order.shared_prefix
        ticket = Ticket(
            job=Job(request),
            queued_at=queued_at,
            due=queued_at + (self._order.ageing if priority(request) == "bulk" else 0.0),
            num_tokens=estimated_tokens(request),
            prefixes=() if least is None else prefixes(request, least),
        )
        self._waiting.add(ticket)
        self._schedule()
        return ticket

    def cancel(self, ticket: Ticket) -> None:
        """Nobody waits for this job any more: take it out, or tell the engine."""
        ticket.job.cancelled = True
        if not self._waiting.remove(ticket):
            self._begun(ticket, is_read=False)
        for task, batch in self._running.items():
            if ticket in batch and all(other.is_over for other in batch):
                task.cancel()
        self._schedule()

    def hold(self, seconds: float) -> None:
        """Start nothing for so long: the engine asked for it."""
        now = asyncio.get_running_loop().time()
        self._held_until = max(self._held_until, now + seconds)

    @property
    def held_for(self) -> float:
        """How many seconds nothing will start, 0 when the engine asked for nothing."""
        left = self._held_until - asyncio.get_running_loop().time()
        return left if left > CLOCK else 0.0

    def fail(self, error: HeadraceError) -> None:
        """Tell everybody who waits that there is no hope."""
        for ticket in self._waiting.clear():
            ticket.put(error)

    async def close(self) -> None:
        """Stop every running batch and fail what waits. Idempotent."""
        self.fail(BackendError("the dispatcher was closed while the request waited"))
        if self._timer is not None:
            self._timer.cancel()
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    @property
    def _room(self) -> int:
        """How many jobs may start now, where the engine has not asked to wait."""
        most = self._capabilities.max_batch
        if self._capabilities.is_continuous:
            return most - self._num_open
        return most if len(self._running) < self._capabilities.max_concurrency else 0

    @property
    def _num_open(self) -> int:
        return sum(not ticket.is_over for batch in self._running.values() for ticket in batch)

    def _schedule(self) -> None:
        """Start what can start now; set the timer for what may still gain company."""
        held = self.held_for  # once: read again, it may be over, and nobody would look again
        while not held and 0 < self._room <= len(self._waiting):
            if not self._start():
                return
        if self._waiting and (held or self._room > 0):
            self._later(held or self._window)

    def _flush(self) -> None:
        self._timer = None
        held = self.held_for
        while not held and self._room > 0 and self._waiting:
            if not self._start():
                return
        if held and self._waiting:
            self._later(held)

    def _later(self, seconds: float) -> None:
        """Look again in so many seconds, or before."""
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            if self._timer.when() <= loop.time() + seconds:
                return
            self._timer.cancel()
        self._timer = loop.call_later(seconds, self._flush)

    def _start(self) -> bool:
        """Start a batch; False when all that wait are held back for a while."""
        now = asyncio.get_running_loop().time()
        running = [t.prefixes for each in self._running.values() for t in each if not t.is_over]
        batch = self._waiting.take(self._room, now, running)
        if not batch:
            self._later(LONGEST_LEAD)
            return False
        together = len(batch) + (self._num_open if self._capabilities.is_continuous else 0)
        for ticket in batch:
            ticket.started_at, ticket.batch_size = now, together
            self._speed.note(now)
        task = asyncio.get_running_loop().create_task(self._run(batch))
        self._running[task] = batch
        task.add_done_callback(self._ended)
        return True

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._running[task]
        self._schedule()

    def _obey(self, event: Event | HeadraceError) -> None:
        """Start nothing before the time that an error asks for, from this very moment."""
        if isinstance(event, BackendError) and event.retryable and event.retry_after is not None:
            self.hold(event.retry_after)

    def _begun(self, ticket: Ticket, *, is_read: bool) -> None:
        """Say that the engine has read a prompt, or never will: others may follow."""
        if not ticket.has_begun:
            ticket.has_begun = True
            if self._warmth is not None and self._warmth.stop(ticket.prefixes, is_read=is_read):
                self._schedule()

    async def _run(self, batch: Sequence[Ticket]) -> None:
        failure: HeadraceError = BackendError(
            f"{self._capabilities.name} ended its answer without finishing it"
        )
        try:
            async with aclosing(self._backend.generate([t.job for t in batch])) as events:
                async for index, event in events:
                    ticket = batch[index]
                    self._obey(event)
                    self._begun(ticket, is_read=not isinstance(event, HeadraceError))
                    ticket.put(event)
                    if ticket.is_done:
                        self._schedule()
        except HeadraceError as error:
            self._obey(error)
            failure = error
        except Exception as error:
            failure = BackendError(
                f"{self._capabilities.name} failed: {type(error).__name__}: {error}"
            )
            failure.__cause__ = error
        finally:
            for ticket in batch:
                self._begun(ticket, is_read=False)
                ticket.put(failure)


def _warmth(order: Order, capabilities: Capabilities) -> Warmth | None:
    """Return what tells whom to hold back, None where that can save nothing."""
    leads = capabilities.has_prefix_cache if order.leader is None else order.leader
    overlaps = capabilities.is_continuous or capabilities.max_concurrency > 1
    if order.shared_prefix is None or not leads or not overlaps:
        return None
    return Warmth(order.shared_prefix)
