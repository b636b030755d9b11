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
        """Stop the loop and its thread. Idempotent."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)

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
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


async def _next(events: AsyncGenerator[T, None]) -> T | None:
    return await anext(events, None)


async def _close(events: AsyncGenerator[object, None]) -> None:
    await events.aclose()
