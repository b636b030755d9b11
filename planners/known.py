"""What the planner knows of the engine behind it, learnt from the calls that pass."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from ..middleware.types import Event, Finished, Handler, Message, Request, Response, TextDelta
from .calibration import Calibration, num_tokens
from .prospect import Habits
from .speed import Speed, StepCost

_SEGMENT = 8  # pieces of a stream whose time is one observation
_MIN_SEGMENT = 4
_CROWD = 16  # calls; from here on somebody's prompt is read in every segment
_LEAST_COMMON = 0.3  # of a prompt; less says little of the cache
_NEW = 0.2  # weight of a new observation of what the cache shares


def common(messages: Sequence[Message], others: Sequence[Message]) -> float:
    """Return which share of a prompt's characters are messages that another begins with, too."""
    sizes = [len(message.text) for message in messages]
    number = 0
    while number < min(len(messages), len(others)) and messages[number] == others[number]:
        number += 1
    return sum(sizes[:number]) / max(sum(sizes), 1)


@dataclass(slots=True, eq=False)
class _Call:
    """A call under way; ``prompt`` and ``together`` are estimated tokens.

    ``together`` are the prompts of all calls that waited for their first token while this one did,
    ``common`` is the share of the prompt that a call under way at the beginning had, too.
    """

    messages: tuple[Message, ...]
    common: float
    prompt: int
    started: float
    together: int
    first: float | None = None
    num_pieces: int = 0
    seen: list[tuple[float, int, float, float]] = field(
        default_factory=list[tuple[float, int, float, float]]
    )
    mark: tuple[float, int, float, float, int] = (0.0, 0, 0.0, 0.0, 0)


class KnownEngine:
    """An engine's speed, load, lengths and plans; keep one an engine, for as long as it lives.

    ``cost`` is what is known before the first answer (``headrace.middleware.plan_engine`` makes it
    from a device and a model); None is the prior of ``StepCost``. ``has_prefix_cache`` is None
    where that is not known; tokens that an answer's usage calls cached settle it. For one event
    loop at a time.
    """

    def __init__(
        self, cost: StepCost | None = None, *, has_prefix_cache: bool | None = None
    ) -> None:
        self.speed = Speed(cost)
        self.lengths = Calibration()
        self.habits: defaultdict[str, Habits] = defaultdict(Habits)
        self.has_prefix_cache = has_prefix_cache
        self.num_open = 0
        self.num_rows = 0
        self.context = 0
        self.is_known = cost is not None
        self._open: list[_Call] = []
        self._shared: float | None = None
        self._prompts = 0  # tokens of all prompts so far
        self._pending = 0  # and of those whose first token has not come
        self._num_firsts = 0
        self._areas = 0.0, 0.0  # of rows and of context over the time
        self._now = 0.0

    @property
    def cost(self) -> StepCost:
        """The costs of its steps as they are known now."""
        return self.speed.cost

    def cached(self, prompt: int) -> int:
        """Return how many of ``prompt`` tokens, read once, a call alone does not read again."""
        return prompt if self.has_prefix_cache else 0

    def shared(self, prompt: int) -> int:
        """Return how many of them a call does not read again that runs beside others with them.

        An engine with a cache a row (llama.cpp's slots) reads them again for each. Learnt from what
        such calls report; before the first of them, what ``cached`` returns.
        """
        return self.cached(prompt) if self._shared is None else round(prompt * self._shared)

    def watch(self, call_next: Handler) -> Handler:
        """Return a handler that does the same and learns from it.

        ``num_open`` are the calls under way, ``num_rows`` those of them that are being written and
        ``context`` their tokens, as far as they come through here.
        """

        async def handle(request: Request) -> AsyncGenerator[Event, None]:
            loop = asyncio.get_running_loop()
            prompt = max(sum(num_tokens(m.text) for m in request.messages), 1)
            call = _Call(
                request.messages,
                max((common(request.messages, o.messages) for o in self._open), default=0.0),
                prompt,
                loop.time(),
                self._pending - self._prompts,
            )
            self._open.append(call)
            self._prompts += prompt
            self._pending += prompt
            self.num_open += 1
            try:
                async with aclosing(call_next(request)) as events:
                    async for event in events:
                        if isinstance(event, TextDelta):
                            self._piece(call, loop.time())
                        elif isinstance(event, Finished):
                            self._end_segment(call, loop.time(), _MIN_SEGMENT)
                            self._learn(call, event.response)
                        yield event
            finally:
                self._advance(loop.time())
                self.num_open -= 1
                self._open.remove(call)
                if call.num_pieces:
                    self.num_rows -= 1
                    self.context -= call.prompt + call.num_pieces
                else:
                    self._pending -= call.prompt

        return handle

    def _advance(self, now: float) -> None:
        """Add up rows and context over the time; called before either changes."""
        passed = max(now - self._now, 0.0)
        rows, context = self._areas
        self._areas = rows + passed * self.num_rows, context + passed * self.context
        self._now = now

    def _piece(self, call: _Call, now: float) -> None:
        self._advance(now)
        call.num_pieces += 1
        self.context += 1
        if call.first is None:
            call.first = now
            call.together += self._prompts
            self._pending -= call.prompt
            self._num_firsts += 1
            self.num_rows += 1
            self.context += call.prompt
            self._mark(call, now)
        else:
            self._end_segment(call, now, _SEGMENT)

    def _mark(self, call: _Call, now: float) -> None:
        call.mark = now, call.num_pieces, *self._areas, self._num_firsts

    def _end_segment(self, call: _Call, now: float, least: int) -> None:
        """Keep a segment's seconds, pieces, mean rows and mean context."""
        if call.num_pieces - call.mark[1] < least:
            return
        self._advance(now)
        start, number, rows, context, num_firsts = call.mark
        seconds = now - start
        is_clean = num_firsts == self._num_firsts or self.num_open > _CROWD
        if seconds > 0 and is_clean:  # else somebody's prompt was read in between
            mean = (self._areas[0] - rows) / seconds, (self._areas[1] - context) / seconds
            call.seen.append((seconds, call.num_pieces - number, *mean))
        self._mark(call, now)

    def _learn(self, call: _Call, response: Response) -> None:
        """Observe one call's steps; a piece of its stream may be more than a token, or less."""
        usage = response.usage
        if usage.cached_tokens:
            self.has_prefix_cache = True
        if call.common > _LEAST_COMMON and usage.prompt_tokens:
            share = min(usage.cached_tokens / (call.common * usage.prompt_tokens), 1.0)
            before = share if self._shared is None else self._shared
            self._shared = before + _NEW * (share - before)
        row = response.report.stage("dispatch")
        waited = row.details.get("queue_seconds") if row is not None else None
        new = max((usage.prompt_tokens or call.prompt) - usage.cached_tokens, 0)
        if call.first is not None:
            wait = waited if isinstance(waited, float) else 0.0
            together = max(call.together / call.prompt, 1.0)
            self.speed.observe_first(round(new * together), call.first - call.started - wait)
        if call.num_pieces < 2:
            return
        tokens = usage.completion_tokens - usage.forced_tokens
        each = tokens / call.num_pieces if tokens > 0 else 1.0
        each = min(max(each, 0.5), 8.0)  # more: reasoning that was not streamed
        for seconds, pieces, rows, context in call.seen:
            self.speed.observe_step(rows, context, seconds / (pieces * each))
            self.is_known = True
