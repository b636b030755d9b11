"""Async code for callers that are not: one event loop in a daemon thread.

Works inside a running loop too (a notebook), where ``asyncio.run`` refuses.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Coroutine, Iterator
from typing import TypeVar

from .errors import HeadraceError

T = TypeVar("T")
_PATIENCE = 10.0  # seconds for what is cancelled and does not end


class Loop:
    """An event loop of its own in a thread, started when first used."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, coroutine: Coroutine[object, object, T]) -> T:
        """Run the coroutine in the loop's thread and wait for it.

        An interrupt (Ctrl-C) in the waiting thread cancels the coroutine before it is raised.
        """
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise HeadraceError("a blocking call inside a stage would wait for itself; await it")
        future = asyncio.run_coroutine_threadsafe(coroutine, self._started())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def iterate(self, events: AsyncGenerator[T, None]) -> Iterator[T]:
        """Iterate over an async generator; leaving the loop early closes it."""
        try:
            while (event := self.run(_next(events))) is not None:
                yield event
        finally:
            self.run(_close(events))

    def close(self) -> None:
        """Stop the loop and its thread; what still runs there is cancelled. Idempotent."""
        with self._lock:
            loop, self._loop = self._loop, None
            thread = self._thread
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            if thread is not threading.current_thread():
                thread.join(_PATIENCE)

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_serve, args=(self._loop,), name="headrace", daemon=True
                )
                self._thread.start()
            return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        try:
            loop.run_until_complete(_cancel_all(loop))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()


async def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel what is still running and wait for it, so that nothing of it is left half done."""
    tasks = asyncio.all_tasks(loop) - {asyncio.current_task(loop)}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)  # an exception that nobody has read is said by asyncio itself


async def _next(events: AsyncGenerator[T, None]) -> T | None:
    return await anext(events, None)


async def _close(events: AsyncGenerator[object, None]) -> None:
    await events.aclose()
