"""Forward passes of several threads in common batches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from .callers import CALLER, Abandoned, Caller

Row = TypeVar("Row")
Result = TypeVar("Result")

WINDOW = 0.002  # seconds
_WASTE = 1.25  # a common batch may have so many times the padded tokens of its parts
_SLACK = 64  # padded tokens more, which cost less than another pass


@dataclass(slots=True, eq=False)
class _Part(Generic[Row, Result]):
    """The rows of one call. ``turn`` is set when they are done, or when its thread is to run."""

    rows: Sequence[Row]
    width: int
    caller: Caller | None
    turn: threading.Event = field(default_factory=threading.Event)
    results: Sequence[Result] | None = None
    error: Exception | None = None

    @property
    def size(self) -> int:
        """Tokens with padding."""
        return self.width * len(self.rows)

    @property
    def is_done(self) -> bool:
        return self.results is not None or self.error is not None

    def is_live(self) -> bool:
        """Whether its rows are still wanted; one that is not ends here."""
        if self.caller is not None and self.caller.is_gone:
            self.error = Abandoned()
        return not self.is_done


class Gatherer(Generic[Row, Result]):
    """Runs a model for many threads, one pass at a time, and those that wait together.

    ``run`` returns a result a row and is never called by two threads at once. A call whose model
    is free runs at once, in its own thread; those that come meanwhile wait, and the oldest of them
    runs next, for itself and for others whose rows are about as wide, up to ``most_rows`` rows and
    ``most_tokens`` padded tokens. Nothing is split: a call has the batches of a call without
    company. Each pass begins with the oldest, so that nobody starves.

    ``attend`` announces rows. Only while others are announced that have not come does a pass wait
    for them, ``window`` seconds at most.

    When a common pass fails, each call is run alone, and only one that fails alone has the error.
    Rows of callers that have gone (``callers.Caller``) are left out. Without ``shares``
    calls take turns and are never put together: for arithmetic in which a row's result depends
    on its company.
    """

    def __init__(
        self,
        run: Callable[[list[Row]], Sequence[Result]],
        *,
        width: Callable[[Row], int],
        most_rows: int | None = None,
        most_tokens: int | None = None,
        window: float = WINDOW,
        shares: bool = True,
    ) -> None:
        self._run = run
        self._width = width
        self._most_rows = most_rows
        self._most_tokens = most_tokens
        self._window = window
        self.shares = shares
        """Whether calls are put together."""
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._waiting: list[_Part[Row, Result]] = []
        self._num_announced = 0
        self._is_busy = False
        self.num_passes = 0
        """Calls of ``run`` so far."""

    @property
    def num_waiting(self) -> int:
        """Calls that wait for the model."""
        with self._lock:
            return len(self._waiting)

    @contextmanager
    def attend(self) -> Generator[None]:
        """Announce calls from this thread, until the end of the block."""
        with self._lock:
            self._num_announced += 1
        try:
            yield
        finally:
            with self._lock:
                self._num_announced -= 1
                self._changed.notify_all()

    def __call__(self, rows: Sequence[Row]) -> Sequence[Result]:
        """Return a result for each row; raises what ``run`` raises for these rows."""
        if not rows:
            return []
        caller = CALLER.get()
        part = _Part[Row, Result](rows, max(map(self._width, rows)), caller)
        if caller is not None:
            caller.check()
        with caller.away() if caller is not None else nullcontext():
            if not self._is_first(part):
                self._wait(part)
            if not part.is_done:
                self._lead(part)
        if part.error is not None:
            raise part.error
        assert part.results is not None
        return part.results

    def _is_first(self, part: _Part[Row, Result]) -> bool:
        """Take the model if it is free, else queue."""
        with self._lock:
            if not self._is_busy:
                self._is_busy = True
                return True
            self._waiting.append(part)
            self._changed.notify_all()
            return False

    def _wait(self, part: _Part[Row, Result]) -> None:
        try:
            part.turn.wait()
        except BaseException:  # an interrupt: nobody must wait for this thread
            with self._lock:
                is_next = part.turn.is_set() and not part.is_done
                part.error = Abandoned()
                self._waiting = [other for other in self._waiting if other is not part]
            if is_next:
                self._hand_over()
            raise

    def _lead(self, first: _Part[Row, Result]) -> None:
        """Run a pass for this part and its company, then let the next one lead."""
        batch = [first]
        try:
            batch += self._company(first)
            self._pass(batch)
        finally:
            with self._lock:  # an interrupt of this thread is nobody else's: they wait on
                self._waiting[:0] = [part for part in batch[1:] if not part.is_done]
            for part in batch[1:]:
                if part.is_done:
                    part.turn.set()
            self._hand_over()

    def _hand_over(self) -> None:
        with self._lock:
            while self._waiting:
                part = self._waiting.pop(0)
                is_live = part.is_live()
                part.turn.set()
                if is_live:
                    return
            self._is_busy = False

    def _company(self, first: _Part[Row, Result]) -> list[_Part[Row, Result]]:
        """Return the waiting parts that go with the first one, likest in width first."""
        if not self.shares or not self._fits(first.width, len(first.rows) + 1):
            return []
        with self._changed:
            self._changed.wait_for(self._is_complete, self._window)
            width, rows, size = first.width, len(first.rows), first.size
            taken: list[_Part[Row, Result]] = []
            for part in sorted(self._waiting, key=lambda part: abs(part.width - first.width)):
                wide, many = max(width, part.width), rows + len(part.rows)
                if not self._fits(wide, many) or wide * many > _WASTE * (size + part.size) + _SLACK:
                    continue
                width, rows, size = wide, many, size + part.size
                taken.append(part)
            self._waiting = [part for part in self._waiting if part not in taken]
            return taken

    def _is_complete(self) -> bool:
        """Whether everybody announced is here."""
        return len(self._waiting) + 1 >= self._num_announced

    def _fits(self, width: int, rows: int) -> bool:
        return (self._most_rows is None or rows <= self._most_rows) and (
            self._most_tokens is None or width * rows <= self._most_tokens
        )

    def _pass(self, batch: Sequence[_Part[Row, Result]]) -> None:
        live = [part for part in batch if part.is_live()]
        if not live:
            return
        self.num_passes += 1
        try:
            results = self._run([row for part in live for row in part.rows])
        except Exception as error:
            if len(live) == 1:
                live[0].error = error
                return
            for part in live:
                self._pass([part])
            return
        at = 0
        for part in live:
            part.results = results[at : at + len(part.rows)]
            at += len(part.rows)
