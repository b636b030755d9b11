"""One question at a time: who asks what is being asked already waits for the same answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Flights(Generic[T]):
    """Answers that are asked for once and kept. Failures are told to all who wait, and not kept."""

    def __init__(self) -> None:
        self._known: dict[Hashable, T] = {}
        self._tasks: dict[Hashable, asyncio.Task[T]] = {}

    async def get(self, key: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        """Return the answer to ``key``; the first who comes has it asked."""
        if key in self._known:
            return self._known[key]
        task = self._tasks.get(key)
        if task is None or task.get_loop() is not asyncio.get_running_loop():
            task = asyncio.ensure_future(self._ask(key, ask))
            task.add_done_callback(_seen)
            self._tasks[key] = task
        # Shielded: the first may leave while others wait.
        return await asyncio.shield(task)

    def forget(self, key: Hashable) -> None:
        """Have it asked again at the next use."""
        self._known.pop(key, None)

    def close(self) -> None:
        """Give up on what is in flight."""
        for task in self._tasks.values():
            if not task.get_loop().is_closed():
                task.cancel()

    async def _ask(self, key: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        try:
            answer = self._known[key] = await ask()
            return answer
        finally:
            if self._tasks.get(key) is asyncio.current_task():
                del self._tasks[key]


def _seen(task: asyncio.Task[T]) -> None:
    """Look at the failure, if there is one: perhaps everybody who waited has left."""
    if not task.cancelled():
        task.exception()
