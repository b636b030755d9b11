"""Waiting requests become batches: one queue and one concurrency gate per engine and event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from ..backends.base import Backend, Capabilities, Job
from .errors import BackendError, HeadraceError, Overloaded
from .types import Event, Finished


@dataclass(slots=True, eq=False)
class Ticket:
    """A job that waits or runs, and the queue in which its events arrive. Times are the loop's."""

    job: Job
    events: asyncio.Queue[Event | HeadraceError] = field(
        default_factory=asyncio.Queue[Event | HeadraceError]
    )
    queued_at: float = field(default_factory=lambda: asyncio.get_running_loop().time())
    started_at: float | None = None
    batch_size: int = 0
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
    jobs wait, one more is refused with Overloaded. First come, first served.
    """

    def __init__(
        self, backend: Backend, capabilities: Capabilities, *, window: float, max_queue: int
    ) -> None:
        self._backend = backend
        self._capabilities = capabilities
        self._window = window
        self._max_queue = max_queue
        self._waiting: deque[Ticket] = deque()
        self._running: dict[asyncio.Task[None], Sequence[Ticket]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def submit(self, job: Job) -> Ticket:
        """Queue a job. Raises Overloaded when the queue is full."""
        if len(self._waiting) >= self._max_queue:
            raise Overloaded(
                f"{len(self._waiting)} requests wait already (max_queue={self._max_queue}); "
                "send fewer at a time or raise max_queue",
                retry_after=1.0,
            )
        ticket = Ticket(job)
        self._waiting.append(ticket)
        self._schedule()
        return ticket

    def cancel(self, ticket: Ticket) -> None:
        """Nobody waits for this job any more: take it out, or tell the engine."""
        ticket.job.cancelled = True
        if ticket in self._waiting:
            self._waiting.remove(ticket)
        for task, batch in self._running.items():
            if ticket in batch and all(other.is_over for other in batch):
                task.cancel()
        self._schedule()

    async def close(self) -> None:
        """Stop every running batch and fail what waits. Idempotent."""
        closed = BackendError("the dispatcher was closed while the request waited")
        while self._waiting:
            self._waiting.popleft().put(closed)
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    @property
    def _room(self) -> int:
        """How many jobs may start now."""
        most = self._capabilities.max_batch
        if self._capabilities.is_continuous:
            return most - self._num_open
        return most if len(self._running) < self._capabilities.max_concurrency else 0

    @property
    def _num_open(self) -> int:
        return sum(not ticket.is_over for batch in self._running.values() for ticket in batch)

    def _schedule(self) -> None:
        """Start what can start now; set the timer for what may still gain company."""
        while 0 < self._room <= len(self._waiting):
            self._start()
        if self._room > 0 and self._waiting and self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._window, self._flush)

    def _flush(self) -> None:
        self._timer = None
        while self._room > 0 and self._waiting:
            self._start()

    def _start(self) -> None:
        size = min(self._room, len(self._waiting))
        batch = [self._waiting.popleft() for _ in range(size)]
        together = size + (self._num_open if self._capabilities.is_continuous else 0)
        now = asyncio.get_running_loop().time()
        for ticket in batch:
            ticket.started_at, ticket.batch_size = now, together
        task = asyncio.get_running_loop().create_task(self._run(batch))
        self._running[task] = batch
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._running[task]
        self._schedule()

    async def _run(self, batch: Sequence[Ticket]) -> None:
        failure: HeadraceError = BackendError(
            f"{self._capabilities.name} ended its answer without finishing it"
        )
        try:
            async with aclosing(self._backend.generate([t.job for t in batch])) as events:
                async for index, event in events:
                    batch[index].put(event)
                    if batch[index].is_done:
                        self._schedule()
        except HeadraceError as error:
            failure = error
        except Exception as error:
            failure = BackendError(
                f"{self._capabilities.name} failed: {type(error).__name__}: {error}"
            )
            failure.__cause__ = error
        finally:
            for ticket in batch:
                ticket.put(failure)
