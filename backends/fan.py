"""A request for each job of a batch, all at the same time, told as one stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from ..middleware.errors import HeadraceError
from ..middleware.types import Event, Request
from .base import Job

Outcome = tuple[int, Event | HeadraceError]


async def each(
    batch: Sequence[Job],
    answer: Callable[[Request], AsyncGenerator[Event, None]],
    explain: Callable[[Exception, Request], HeadraceError],
) -> AsyncGenerator[Outcome, None]:
    """Yield what happens to every job, as ``Backend.generate`` promises.

    ``answer`` gives one request's events and ``explain`` what an exception of it means that is
    none of ours. A job that is cancelled, even before it has begun, ends silently and at once.
    """
    outcomes: asyncio.Queue[Outcome | None] = asyncio.Queue()

    async def tell(index: int, request: Request) -> None:
        try:
            async with aclosing(answer(request)) as events:
                async for event in events:
                    outcomes.put_nowait((index, event))
        except HeadraceError as error:
            outcomes.put_nowait((index, error))
        except Exception as error:
            outcomes.put_nowait((index, explain(error, request)))

    def end(_: object) -> None:
        outcomes.put_nowait(None)

    tasks = [asyncio.create_task(tell(index, job.request)) for index, job in enumerate(batch)]
    for job, task in zip(batch, tasks, strict=True):
        task.add_done_callback(end)  # also of a task that was cancelled before it ran
        job.watch(task.cancel)
    num_open = len(tasks)
    try:
        while num_open:
            outcome = await outcomes.get()
            if outcome is None:
                num_open -= 1
            elif not batch[outcome[0]].cancelled:
                yield outcome
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
