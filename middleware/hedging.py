"""A second engine is asked when the first one is slow; whoever answers first is heard.

Dean and Barroso, "The Tail at Scale" (CACM 56, 2013), hedged requests: the second is sent only
after the time by which most requests have begun to answer, so that few are sent twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence

from .errors import BackendError, HeadraceError, ModelUnavailable, UnsupportedConstraint
from .types import Event

Answering = AsyncGenerator[Event, None]


async def hedged(
    first: Callable[[], Answering],
    second: Callable[[], Answering],
    seconds: float,
    combined: Callable[[Sequence[HeadraceError]], HeadraceError] | None,
) -> AsyncGenerator[tuple[Event, bool, list[HeadraceError]], None]:
    """Yield the events of whichever began first, whether two were at work, and what failed before.

    ``second`` is asked when ``first`` has given no event after so many ``seconds``. One's failure
    leaves the other. With ``combined``, ``second`` is another engine: it is asked, too, when
    ``first`` has failed before, and ``combined`` makes the error of both theirs when both fail;
    else that is the first one's. The loser is closed before the winner's first event is passed on.
    """
    streams = [first()]
    begun: list[asyncio.Future[Event]] = [asyncio.ensure_future(anext(streams[0]))]
    try:
        done, _ = await asyncio.wait(begun, timeout=seconds)
        is_hedged = not done
        failed = _failures(begun) if done else []
        if is_hedged or (failed and combined is not None):
            streams.append(second())
            begun.append(asyncio.ensure_future(anext(streams[1])))
        winner = await _first_of(begun)
        if winner is None:
            failed = _failures(begun)
            raise failed[0] if combined is None else combined(failed)
        for at, stream in enumerate(streams):
            if at != winner:
                await _close(stream, begun[at])
        yield begun[winner].result(), is_hedged, failed
        async for event in streams[winner]:
            yield event, is_hedged, failed
    finally:
        for stream, task in zip(streams, begun, strict=True):
            await _close(stream, task)


async def _first_of(begun: list[asyncio.Future[Event]]) -> int | None:
    """Return which one has an event, None when all have failed."""
    waiting = set(begun)
    while waiting:
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for at, task in enumerate(begun):
            if task in done and _failure(task) is None:
                return at
    return None


def _failures(begun: Sequence[asyncio.Future[Event]]) -> list[HeadraceError]:
    return [error for task in begun if (error := _failure(task)) is not None]


def _failure(task: asyncio.Future[Event]) -> HeadraceError | None:
    """Return why an engine gave no event; raise what another engine would say, too."""
    error = task.exception()
    if error is None or isinstance(error, (BackendError, ModelUnavailable, UnsupportedConstraint)):
        return error
    raise error  # the request itself is wrong, or late


async def _close(stream: Answering, task: asyncio.Future[Event]) -> None:
    if not task.done():
        task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.exception()  # it was looked at
    await stream.aclose()
