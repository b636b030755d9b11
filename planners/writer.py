"""Writes one part of the answer: at most one more try, at most one continuation."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from ..middleware.errors import BackendError, DeadlineExceeded, HeadraceError
from ..middleware.types import Finished, FinishReason, Message, Response
from .budget import MIN_TOKENS, Budget, wanted_tokens
from .calls import Calls
from .graph import Node
from .join import Join
from .overlap import Overlap
from .prompts import continue_messages

Ask = Callable[[str], tuple[Message, ...]]


@dataclass(slots=True)
class Work:
    """What became of one part; times are seconds since the request began."""

    node: Node
    start: float
    end: float | None = None
    num_retries: int = 0
    num_granted: int = 0
    num_tokens: int = 0
    is_continued: bool = False
    finish_reason: FinishReason = "stop"
    error: HeadraceError | None = None
    is_blank: bool = False


@dataclass(slots=True)
class Writer:
    """Writes parts into ``join`` and hands on what becomes readable through ``send``."""

    calls: Calls
    join: Join
    budget: Budget
    send: Callable[[str], None]
    num_retries: int = 0
    _overlaps: dict[int, Overlap] = field(default_factory=dict[int, Overlap])

    async def write(self, work: Work, ask: Ask, num_open: Callable[[], int]) -> None:
        """Write a part; ``ask`` makes its messages from the reason for another try ("" at first).

        ``num_open`` counts the parts that were not given tokens yet. An engine's failure is kept
        in ``work.error``; DeadlineExceeded is raised.
        """
        work.num_granted = left = self.budget.grant(wanted_tokens(work.node.length), num_open())
        if not left:
            work.finish_reason = "length"
        messages = ask("")
        while left:
            try:
                response = await self._call(work, messages, left)
            except DeadlineExceeded:
                raise
            except HeadraceError as error:
                if not self._may_retry(work, error):
                    work.error = error
                    break
                is_kept = not self.join.reset(work.node.id)
                messages = self._go_on(work, ask) if is_kept else ask("")
                left = max(work.num_granted - work.num_tokens, MIN_TOKENS) if is_kept else left
                continue
            work.finish_reason = response.finish_reason
            if self.join.is_blank(work.node.id) and not work.num_retries:
                self._count(work)
                reason = "Write full sentences, not only the title."
                is_kept = not self.join.reset(work.node.id)
                messages = self._go_on(work, ask) if is_kept else ask(reason)
                left = max(work.num_granted - work.num_tokens, MIN_TOKENS)
            elif response.finish_reason == "length" and not work.is_continued:
                wanted = max(work.num_granted // 2, MIN_TOKENS)
                left = self.budget.grant(wanted, num_open() + 1)
                work.is_continued = True
                work.num_granted += left
                messages = self._go_on(work, ask)
            else:
                break
        self.budget.refund(work.num_granted - work.num_tokens)
        work.is_blank = self.join.is_blank(work.node.id)
        work.end = self.calls.seconds

    async def _call(self, work: Work, messages: tuple[Message, ...], max_tokens: int) -> Response:
        id = work.node.id
        overlap = self._overlaps.pop(id, None)
        num_pieces = 0
        async with aclosing(self.calls.stream(messages, max_tokens)) as events:
            try:
                async for event in events:
                    if isinstance(event, Finished):
                        num_pieces = event.response.usage.completion_tokens or num_pieces
                        return event.response
                    num_pieces += 1
                    text = overlap.feed(event.text) if overlap is not None else event.text
                    self.send(self.join.feed(id, text))
            finally:
                work.num_tokens += num_pieces
                if overlap is not None:
                    self.send(self.join.feed(id, overlap.flush()))
        raise BackendError("the engine's stream ended before the answer did", retryable=True)

    def _may_retry(self, work: Work, error: HeadraceError) -> bool:
        if work.num_retries or not isinstance(error, BackendError) or not error.retryable:
            return False
        self._count(work)
        return True

    def _count(self, work: Work) -> None:
        work.num_retries += 1
        self.num_retries += 1

    def _go_on(self, work: Work, ask: Ask) -> tuple[Message, ...]:
        """Return the messages that continue what is written; the next call cuts the overlap."""
        text = self.join.written(work.node.id)
        self._overlaps[work.node.id] = Overlap(text)
        return continue_messages(ask(""), text)
