"""What the planner knows of the engine behind it, learnt from the calls that pass."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from ..middleware.types import Event, Finished, Handler, Request, Response, TextDelta
from .calibration import Calibration, num_tokens
from .speed import Speed, StepCost

_SEGMENT = 16  # pieces of a stream whose time is one observation
_MIN_SEGMENT = 4


@dataclass(slots=True)
class _Call:
    """A call under way: its prompt (tokens, estimated), its pieces, when they came."""

    prompt: int
    started: float
    first: float | None = None
    num_pieces: int = 0


class KnownEngine:
    """An engine's speed, load and lengths; keep one an engine, for as long as it lives.

    ``cost`` is what is known before the first answer (``headrace.middleware.steps.step_cost``
    makes it from a device and a model); None is the prior of ``StepCost``. ``has_prefix_cache`` is
    None where that is not known; tokens that an answer's usage calls cached settle it.
    """

    def __init__(
        self, cost: StepCost | None = None, *, has_prefix_cache: bool | None = None
    ) -> None:
        self.speed = Speed(cost)
        self.lengths = Calibration()
        self.has_prefix_cache = has_prefix_cache
        self.num_open = 0
        self.num_rows = 0
        self.context = 0
        self.is_known = cost is not None

    @property
    def cost(self) -> StepCost:
        """The costs of its steps as they are known now."""
        return self.speed.cost

    def watch(self, call_next: Handler) -> Handler:
        """Return a handler that does the same and learns from it.

        ``num_open`` are the calls under way, ``num_rows`` those of them that are being written and
        ``context`` their tokens, as far as they come through here.
        """

        async def handle(request: Request) -> AsyncGenerator[Event, None]:
            loop = asyncio.get_running_loop()
            call = _Call(sum(num_tokens(m.text) for m in request.messages), loop.time())
            seen: list[tuple[float, int, float, float]] = []
            since = loop.time(), 0, 0.0, 0.0
            self.num_open += 1
            try:
                async with aclosing(call_next(request)) as events:
                    async for event in events:
                        now = loop.time()
                        if isinstance(event, TextDelta):
                            self._piece(call, now)
                            if call.num_pieces == 1:
                                since = now, 1, self.num_rows, self.context
                            elif call.num_pieces - since[1] >= _SEGMENT:
                                seen.append(self._segment(since, call, now))
                                since = now, call.num_pieces, self.num_rows, self.context
                        elif isinstance(event, Finished):
                            if call.num_pieces - since[1] >= _MIN_SEGMENT:
                                seen.append(self._segment(since, call, now))
                            self._learn(call, seen, event.response, now)
                        yield event
            finally:
                self.num_open -= 1
                if call.num_pieces:
                    self.num_rows -= 1
                    self.context -= call.prompt + call.num_pieces

        return handle

    def _piece(self, call: _Call, now: float) -> None:
        if call.first is None:
            call.first = now
            self.num_rows += 1
            self.context += call.prompt
        call.num_pieces += 1
        self.context += 1

    def _segment(
        self, since: tuple[float, int, float, float], call: _Call, now: float
    ) -> tuple[float, int, float, float]:
        """Return seconds, pieces, mean rows and mean context of the stream's last pieces."""
        start, number, rows, context = since
        return (
            now - start,
            call.num_pieces - number,
            (rows + self.num_rows) / 2,
            (context + self.context) / 2,
        )

    def _learn(
        self,
        call: _Call,
        seen: list[tuple[float, int, float, float]],
        response: Response,
        now: float,
    ) -> None:
        """Observe one call's steps; a piece of its stream may be more than a token, or less."""
        usage = response.usage
        if usage.cached_tokens:
            self.has_prefix_cache = True
        row = response.report.stage("dispatch")
        waited = row.details.get("queue_seconds") if row is not None else None
        new = max((usage.prompt_tokens or call.prompt) - usage.cached_tokens, 0)
        if call.first is not None:
            wait = waited if isinstance(waited, float) else 0.0
            self.speed.observe_first(new, call.first - call.started - wait)
        if call.num_pieces < 2:
            return
        tokens = usage.completion_tokens - usage.forced_tokens
        each = tokens / call.num_pieces if tokens > 0 else 1.0
        each = min(max(each, 0.5), 8.0)  # more: reasoning that was not streamed
        for seconds, pieces, rows, context in seen:
            self.speed.observe_step(rows, context, seconds / (pieces * each))
            self.is_known = True
