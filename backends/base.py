"""What every engine promises."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..middleware.errors import HeadraceError
from ..middleware.types import ConstraintKind, Event, Request


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an engine can do, as plain data.

    ``max_batch`` requests fit in one ``generate`` call, and ``max_concurrency`` such calls may run
    at a time: (8, 1) is an engine in process that wants full batches, (1, 16) is a server that
    batches by itself. When it ``is_continuous``, ``max_batch`` is how many requests may be in its
    hands altogether, and more may come while others are being answered. ``constraints`` are the
    kinds that it takes; how far it kept to one is in the response's ``enforced``.
    ``tokenizer`` is a name or folder with which its tokens can be counted, None if unknown.
    ``can_prefill``: a request that ends with an assistant message is continued from there.
    ``engine`` is the server's software and version, "" where it does not say.
    ``has_prefix_cache``: what prompts share at their beginning is read once, also by requests that
    run at the same time. ``has_row_caches``: it is read again by each request that runs meanwhile,
    and found by one that comes after (llama-server's slots).
    """

    name: str
    model: str = ""
    max_batch: int = 1
    max_concurrency: int = 1
    is_continuous: bool = False
    constraints: frozenset[ConstraintKind] = frozenset()
    context_length: int | None = None
    tokenizer: str | None = None
    can_prefill: bool = False
    engine: str = ""
    has_prefix_cache: bool = False
    has_row_caches: bool = False


class Job:
    """A request in an engine's hands. ``cancelled`` is set once, when nobody waits any more."""

    __slots__ = ("_is_cancelled", "_watchers", "request")

    def __init__(self, request: Request) -> None:
        self.request = request
        self._is_cancelled = False
        self._watchers: list[Callable[[], object]] = []

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits any more; it never becomes false again."""
        return self._is_cancelled

    @cancelled.setter
    def cancelled(self, value: bool) -> None:
        if value and not self._is_cancelled:
            self._is_cancelled = True
            for watcher in self._watchers:
                watcher()

    def watch(self, watcher: Callable[[], object]) -> None:
        """Call ``watcher`` when the job is cancelled, in the thread that cancels it."""
        if self._is_cancelled:
            watcher()
        else:
            self._watchers.append(watcher)


class Backend(Protocol):
    """An engine. Requests reach it with their documents already written into the messages."""

    async def capabilities(self) -> Capabilities:
        """Return what the engine can do. Cheap after the first call."""
        ...

    def generate(
        self, batch: Sequence[Job]
    ) -> AsyncGenerator[tuple[int, Event | HeadraceError], None]:
        """Answer up to ``max_batch`` jobs together.

        Yields pairs of an index into the batch and what happened to that job: events that end
        with ``Finished``, or one error, which ends that job only. A cancelled job ends silently
        and soon. Closing the iterator stops the engine's work on the whole batch.
        """
        ...

    async def close(self) -> None:
        """Free what the engine holds. Idempotent."""
        ...
