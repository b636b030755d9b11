"""On whose behalf a thread works: whether anybody still waits, and its seat among the threads."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


class Abandoned(Exception):
    """Raised in a thread whose caller has gone. Nobody sees it."""


@dataclass(slots=True, eq=False)
class Caller:
    """Who waits for what a thread does.

    ``is_gone``: nobody any more; the thread ends at its next forward pass. ``seats`` bounds how
    many threads run Python code at a time; a thread gives its seat away while it waits for a
    model.
    """

    seats: threading.Semaphore
    is_gone: bool = False

    @contextmanager
    def seated(self) -> Generator[None]:
        """Hold a seat. Raises Abandoned when the caller went while it was waited for."""
        with self.seats:
            self.check()
            yield

    @contextmanager
    def away(self) -> Generator[None]:
        """Give the seat to somebody else, and take one again at the end."""
        self.seats.release()
        try:
            yield
        finally:
            self.seats.acquire()

    def check(self) -> None:
        """Raise Abandoned when nobody waits any more."""
        if self.is_gone:
            raise Abandoned


CALLER: ContextVar[Caller | None] = ContextVar("caller", default=None)
"""The caller of this thread, None in a thread that its caller made himself."""
