"""Threads for what stages compute: enough for their models' passes to meet."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import lru_cache
from typing import TypeVar

from ..compressors.callers import CALLER, Caller

Result = TypeVar("Result")

NUM_THREADS = 64


async def in_thread(function: Callable[..., Result], /, *args: object) -> Result:
    """Return ``function(*args)``, run in a thread.

    As ``asyncio.to_thread``, with two differences: threads that wait for a model take no part in
    how many may run at a time, so that 64 calls can meet in one forward pass without the event
    loop having to share Python with 64 threads; and one whose task is cancelled ends at its next
    pass.
    """
    pool, seats = _threads(os.getpid())
    caller = Caller(seats)
    context = copy_context()

    def work() -> Result:
        CALLER.set(caller)
        with caller.seated():
            return function(*args)

    try:
        return await asyncio.get_running_loop().run_in_executor(pool, context.run, work)
    except asyncio.CancelledError:
        caller.is_gone = True
        raise


@lru_cache(maxsize=1)
def _threads(_process: int) -> tuple[ThreadPoolExecutor, threading.Semaphore]:
    """Return this process's threads and seats; a forked process gets its own."""
    seats = threading.Semaphore(min(32, (os.cpu_count() or 1) + 4))  # as asyncio's own executor
    return ThreadPoolExecutor(NUM_THREADS, thread_name_prefix="headrace-stage"), seats
