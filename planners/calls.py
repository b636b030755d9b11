"""The engine calls behind one answer: one deadline, one cool-down, one bill."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from ..middleware.errors import BackendError, DeadlineExceeded
from ..middleware.types import (
    Constraint,
    Event,
    Finished,
    Handler,
    Message,
    Request,
    TextDelta,
    Usage,
)


class Calls:
    """Sends messages as calls of one request; make it inside a running event loop.

    When the engine tells one call to come back later, all calls of the request wait
    (``Retry-After`` is about the engine, not about the call). ``num_open`` are the calls under
    way.
    """

    def __init__(self, request: Request, call_next: Handler) -> None:
        self._request = request
        self._call_next = call_next
        self._start = asyncio.get_running_loop().time()
        self._not_before = self._start
        self.usage = Usage(num_calls=0)
        self.num_open = 0

    @property
    def seconds(self) -> float:
        """Seconds since the request began."""
        return asyncio.get_running_loop().time() - self._start

    def remaining(self) -> float | None:
        """Return the seconds left, None without a deadline. Raises DeadlineExceeded at 0."""
        if self._request.deadline is None:
            return None
        left = self._request.deadline - self.seconds
        if left <= 0:
            raise DeadlineExceeded(
                f"the deadline of {self._request.deadline:g} s passed while the answer was planned"
            )
        return left

    async def cool_down(self) -> None:
        """Wait until the engine wants calls again."""
        while (left := self._not_before - asyncio.get_running_loop().time()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(left)  # it may have been moved meanwhile

    def hold(self, error: BackendError) -> None:
        """Take notice of an engine's ``retry_after``."""
        if error.retry_after:
            until = asyncio.get_running_loop().time() + error.retry_after
            self._not_before = max(self._not_before, until)

    async def stream(
        self,
        messages: tuple[Message, ...],
        max_tokens: int | None,
        *,
        constraint: Constraint | None = None,
    ) -> AsyncGenerator[TextDelta | Finished, None]:
        """Yield the text of one call and then ``Finished``.

        Raises BackendError where the stream ends without it, and whatever the handler raises.
        """
        await self.cool_down()
        request = replace(
            self._request,
            messages=messages,
            constraint=constraint or self._request.constraint,
            sampling=replace(self._request.sampling, max_tokens=max_tokens),
            deadline=self.remaining(),
        )
        async with aclosing(self.count(self._call_next(request))) as events:
            async for event in events:
                yield event

    async def count(
        self, events: AsyncGenerator[Event, None]
    ) -> AsyncGenerator[TextDelta | Finished, None]:
        """Yield the text of a call that was made elsewhere, then ``Finished``, as ``stream``."""
        is_empty = True
        spent = Usage()
        self.num_open += 1
        try:
            async with aclosing(events):
                async for event in events:
                    if isinstance(event, TextDelta):
                        is_empty = False
                        yield event
                    elif isinstance(event, Finished):
                        spent = event.response.usage
                        if is_empty and event.response.text:
                            yield TextDelta(event.response.text)
                        yield event
                        return
            raise BackendError("the engine's stream ended before the answer did", retryable=True)
        except BackendError as error:
            self.hold(error)
            raise
        finally:
            self.num_open -= 1
            self.usage += spent
