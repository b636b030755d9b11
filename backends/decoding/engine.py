"""One thread that answers whatever is submitted, everything together, as long as there is work."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from ...middleware.errors import BackendError, HeadraceError
from ...middleware.types import Event, Finished, Response, TextDelta
from ..base import Job
from .loop import Loop, News
from .row import Row

_UNEVEN = 2.0  # prompts that differ more are read apart: the shorter would be padding for the most


@dataclass(slots=True, eq=False)
class Entry:
    """A job in the engine's hands.

    ``tell`` is called from the engine's thread with what happens to it, and with None when it is
    over, exactly once and last. ``is_dropped``: nobody listens any more.
    """

    job: Job
    tell: Callable[[Event | HeadraceError | None], None]
    is_dropped: bool = False
    is_over: bool = False

    @property
    def is_wanted(self) -> bool:
        """Whether anybody still waits for the answer."""
        return not (self.is_dropped or self.job.cancelled)

    def end(self, error: HeadraceError | None = None) -> None:
        """Say that it is over, and why when something went wrong. Only the first time counts."""
        if self.is_over:
            return
        self.is_over = True
        if error is not None and self.is_wanted:
            self.tell(error)
        self.tell(None)


class Engine:
    """Continuous batching: entries join the running rows between any two forward passes.

    ``open_loop`` makes the loop (and loads the model), ``make_row`` turns an entry into a row;
    both run in ``executor``'s thread, which must be its only one. At most ``max_rows`` rows are
    written at a time, the others wait in their order. ``explain`` turns what the model raised
    into the error that everybody in the batch gets.
    """

    def __init__(
        self,
        executor: Executor,
        open_loop: Callable[[], Loop],
        make_row: Callable[[Entry, int], Row],
        explain: Callable[[BaseException], HeadraceError],
        max_rows: int,
    ) -> None:
        self._executor = executor
        self._open_loop = open_loop
        self._make_row = make_row
        self._explain = explain
        self._max_rows = max_rows
        self._lock = threading.Lock()
        self._waiting: deque[Entry] = deque()
        self._entries: dict[int, Entry] = {}  # of the running rows, by the row's key
        self._joining: list[Entry] = []  # taken from the queue, not yet rows
        self._is_running = False
        self._next_key = 0

    def submit(self, entries: Sequence[Entry]) -> None:
        """Queue jobs; their entries are told what happens."""
        with self._lock:
            self._waiting.extend(entries)
            if self._is_running:
                return
            self._is_running = True
        try:
            self._executor.submit(self._run)
        except RuntimeError:  # it was closed meanwhile
            self._fail(BackendError("the backend was closed while the request waited"))

    # Everything below runs in the executor's only thread.

    def _run(self) -> None:
        try:
            loop = self._open_loop()
            while (fresh := self._take(loop)) is not None:
                self._advance(loop, fresh)
        except BaseException as error:  # a panic in a library's native code is no Exception
            self._fail(error if isinstance(error, HeadraceError) else self._explain(error))
            if not isinstance(error, Exception):
                raise

    def _fail(self, error: HeadraceError) -> None:
        """End everything that runs, joins or waits with this error; the next job starts anew."""
        with self._lock:
            failed = [*self._entries.values(), *self._joining, *self._waiting]
            self._entries.clear()
            self._joining = []
            self._waiting.clear()
            self._is_running = False
        for entry in failed:
            entry.end(error)

    def _take(self, loop: Loop) -> list[Entry] | None:
        """Return the entries that may join now; None, and the run is over, when all is done."""
        with self._lock:
            room = self._max_rows - len(loop.rows) if loop.is_open else 0
            fresh = [self._waiting.popleft() for _ in range(min(room, len(self._waiting)))]
            if not fresh and not loop.rows:
                self._is_running = False
                return None
            self._joining = fresh
            return fresh

    def _advance(self, loop: Loop, fresh: Sequence[Entry]) -> None:
        """Let the fresh entries in, let go who is not wanted, and do one step."""
        import torch

        with torch.inference_mode():
            rows = [row for entry in fresh for row in self._rows(entry)]
            self._joining = []
            for group in _grouped(rows) if loop.is_plain else [rows] if rows else []:
                for news in loop.admit(group):
                    self._tell(news)
            loop.drop(lambda row: self._entries[row.key].is_wanted)
            kept = {row.key for row in loop.rows}
            for key in [key for key in self._entries if key not in kept]:
                self._entries.pop(key).end()
            if loop.rows:
                for news in loop.step():
                    self._tell(news)

    def _rows(self, entry: Entry) -> list[Row]:
        """Return the entry's row, none when there is nothing to do for it."""
        if not entry.is_wanted:
            entry.end()
            return []
        try:
            row = self._make_row(entry, self._next_key)
        except Exception as error:
            entry.end(error if isinstance(error, HeadraceError) else self._explain(error))
            return []
        self._next_key += 1
        self._entries[row.key] = entry
        return [row]

    def _tell(self, news: News) -> None:
        row, what = news
        entry = self._entries[row.key]
        if isinstance(what, HeadraceError):
            del self._entries[row.key]
            entry.end(what)
            return
        if row.finish_reason:
            del self._entries[row.key]
        told(entry, row, what)


def told(entry: Entry, row: Row, delta: str) -> None:
    """Tell an entry what its row has written, and that it is done when it is."""
    if delta:
        entry.tell(TextDelta(delta))
    if row.finish_reason:
        response = Response(
            row.text, finish_reason=row.finish_reason, usage=row.usage, enforced=row.enforced
        )
        entry.tell(Finished(response))
        entry.end()


def _grouped(rows: Sequence[Row]) -> list[list[Row]]:
    """Return rows whose prompts are of like length together, so that little is padding."""
    groups: list[list[Row]] = []
    for row in sorted(rows, key=lambda row: len(row.prompt)):
        if groups and len(row.prompt) <= _UNEVEN * len(groups[-1][0].prompt):
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups
