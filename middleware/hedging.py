"""A second engine is asked when the first one is slow; whoever answers first is heard.

Dean and Barroso, "The Tail at Scale" (CACM 56, 2013), hedged requests: the second is sent only
after the time by which most requests have begun to answer, so that few are sent twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

from .errors import BackendError, ModelUnavailable, UnsupportedConstraint
from .types import Event

Answering = AsyncGenerator[Event, None]


async def hedged(
    first: Callable[[], Answering], second: Callable[[], Answering], seconds: float
) -> AsyncGenerator[tuple[Event, int], None]:
    """Yield the events of whichever began first, each with how many were asked (1 or 2).

    ``second`` is asked when ``first`` has given no event after so many ``seconds``, and not when it
    has failed by then: that is for fallbacks. Where both were asked, one's failure leaves the
    other; when both fail, the first one's error is raised. The loser is closed before the winner's
    first event is passed on.
    """
    streams = [first()]
    begun = [asyncio.ensure_future(anext(streams[0]))]
    try:
        done, _ = await asyncio.wait(begun, timeout=seconds)
        if not done:
            streams.append(second())
            begun.append(asyncio.ensure_future(anext(streams[1])))
        winner = await _first_of(begun)
        for at, stream in enumerate(streams):
            if at != winner:
                await _close(stream, begun[at])
        yield begun[winner].result(), len(streams)
        async for event in streams[winner]:
            yield event, len(streams)
    finally:
        for stream, task in zip(streams, begun, strict=True):
            await _close(stream, task)


async def _first_of(begun: list[asyncio.Future[Event]]) -> int:
    """Return which one has an event; raise the first one's error when all have failed."""
    waiting = set(begun)
    while waiting:
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for at, task in enumerate(begun):
            if task in done and not task.cancelled() and not _has_failed(task):
                return at
    return 0


def _has_failed(task: asyncio.Future[Event]) -> bool:
    error = task.exception()
    if error is not None and not isinstance(
        error, (BackendError, ModelUnavailable, UnsupportedConstraint)
    ):
        raise error  # the request itself is wrong, or late
    return error is not None


async def _close(stream: Answering, task: asyncio.Future[Event]) -> None:
    if not task.done():
        task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.exception()  # it was looked at
    await stream.aclose()
