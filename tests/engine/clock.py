"""An event loop whose time is virtual: sleeping costs nothing and a deadlock is an error.

Whenever nothing can run, the clock jumps to the next timer. What it does not know: threads. A
test that waits for ``asyncio.to_thread`` or for a real socket needs a real loop.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine, Mapping
from math import inf
from typing import Any, TypeVar

T = TypeVar("T")


class Stuck(RuntimeError):
    """Every task waits for something that cannot happen any more (or the time limit passed)."""


class _Jump(selectors.BaseSelector):
    """A selector that moves the clock where a real one would wait."""

    def __init__(self, limit: float) -> None:
        self._real = selectors.DefaultSelector()
        self._limit = limit
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if ready := self._real.select(0):
            return ready
        if timeout is None:
            raise Stuck(f"at {self.now:.3f} s nothing can run and no timer is set:{_waiting()}")
        self.now += timeout
        if self.now > self._limit:
            limit, self._limit = self._limit, inf  # said once: the tasks are still to be cancelled
            raise Stuck(f"still running after {limit:g} virtual seconds:{_waiting()}")
        return []

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map() or {}

    def close(self) -> None:
        self._real.close()


def _waiting() -> str:
    tasks = asyncio.all_tasks(asyncio.get_running_loop())
    return "".join(f"\n  {task.get_name()}: {task.get_coro()!r}" for task in tasks)


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop that starts at time 0; ``time()`` is the virtual time in seconds."""

    def __init__(self, limit: float = 600.0) -> None:
        self._jump = _Jump(limit)
        super().__init__(self._jump)

    def time(self) -> float:
        return self._jump.now


def run_virtual(main: Coroutine[Any, Any, T], *, limit: float = 600.0) -> T:
    """Run a coroutine on a fresh virtual loop and return its result.

    Raises Stuck instead of hanging: at once when nothing can run any more, and after ``limit``
    virtual seconds for a program that polls for ever.
    """
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(limit)) as runner:
        return runner.run(main)
