"""One planned answer: the planner's call and the parts, written while the plan still arrives.

Everything happens on events (a line of the plan, the end of a part); nothing polls. All tasks
live in one group: when the reader goes away, or something unexpected happens, all of them are
cancelled and their calls closed.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

from ..middleware.errors import DeadlineExceeded, HeadraceError
from ..middleware.types import (
    Event,
    Finished,
    FinishReason,
    Handler,
    Message,
    Request,
    TextDelta,
    Usage,
)
from .budget import Budget
from .calls import Calls
from .graph import Plan
from .join import Join
from .parser import Mode, PlanParser
from .prompts import PLAIN_WORDS, Wording, is_example
from .scheduler import Schedule
from .writer import Work, Writer

_LINE_TOKENS = {"skeleton": 24, "graph": 40}


class _Unusable(Exception):
    """Nothing was sent yet and this plan will not do; the message says why."""


class PlannedAnswer:
    """Plans and writes the answer to one request; use it once, inside a running event loop.

    The request ends with the user's message and has its documents inline. After ``stream`` ended,
    ``unusable`` says why the plan was given up before anything was sent ("" if it was not), and
    the other attributes say what happened.

    ``plan`` is a plan that is known already: there is no planner's call. ``begun`` are the events
    of a planner's call that the caller has made (with ``wording``'s messages). ``wording`` says
    what the planner and the writers of the parts are asked.
    """

    def __init__(
        self,
        request: Request,
        call_next: Handler,
        *,
        mode: Mode,
        max_nodes: int,
        width: int,
        plan: Plan | None = None,
        begun: AsyncGenerator[Event, None] | None = None,
        wording: Wording = PLAIN_WORDS,
    ) -> None:
        self.unusable = ""
        self.plan = Plan()
        self._given = plan
        self._begun = begun
        self._wording = wording
        self.plan_seconds: float | None = None
        self.plan_tokens = 0
        self.plan_error: HeadraceError | None = None
        self.works: list[Work] = []
        self.calls = Calls(request, call_next)
        self._max_nodes = max_nodes
        self._mode: Mode = mode
        self._messages: tuple[Message, ...] = (
            request.messages if plan else wording.plan(request.messages, mode, max_nodes)
        )
        self._parser = PlanParser(mode, max_nodes=max_nodes)
        self._schedule = Schedule(width)
        self._budget = Budget(request.sampling.max_tokens)
        self._join = Join()
        self._writer = Writer(self.calls, self._join, self._budget, self._send)
        self._pieces: asyncio.Queue[str | None] = asyncio.Queue()
        self._group: asyncio.TaskGroup | None = None
        self._num_taken = 0
        self._num_restarts = 0
        self._is_lost = False
        self._is_given_up = False

    @property
    def text(self) -> str:
        """The text that was sent so far."""
        return self._join.text

    @property
    def usage(self) -> Usage:
        """Tokens and calls so far."""
        return self.calls.usage

    @property
    def num_retries(self) -> int:
        """Second tries of parts."""
        return self._writer.num_retries

    @property
    def missing(self) -> list[int]:
        """Ids of the parts that failed, were not started, or have no text."""
        whole = {w.node.id for w in self.works if w.end is not None and not (w.error or w.is_blank)}
        return [node.id for node in self.plan.nodes if node.id not in whole]

    @property
    def finish_reason(self) -> FinishReason:
        """``length`` also where a part could not be written: the answer is not complete."""
        reasons = {work.finish_reason for work in self.works}
        if "content_filter" in reasons:
            return "content_filter"
        blank = {work.node.id for work in self.works if work.is_blank and not work.error}
        is_short = "length" in reasons or not blank.issuperset(self.missing)
        return "length" if is_short else "stop"

    async def stream(self) -> AsyncGenerator[str, None]:
        """Yield the answer's text in the order of the plan.

        Raises DeadlineExceeded, and whatever the next handler raises on purpose or not beyond
        HeadraceError. Closing it cancels every call and waits until they are closed.
        """
        driver = asyncio.create_task(self._drive())
        try:
            while (piece := await self._pieces.get()) is not None:
                yield piece
            await driver
        finally:
            driver.cancel()
            await asyncio.wait([driver])
            if not driver.cancelled():
                driver.exception()  # raised above, or nobody reads any more

    def _send(self, text: str) -> None:
        if text and not self._is_given_up:
            self._pieces.put_nowait(text)

    async def _drive(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                group.create_task(self._read_plan())
            self._require("no part has any text")
        except _Unusable as error:
            self.unusable = str(error)
        except BaseExceptionGroup as errors:
            first = _first(errors)
            if not isinstance(first, _Unusable):
                raise first from None
            self.unusable = str(first)
        finally:
            self._group = None
            self._pieces.put_nowait(None)

    def _take_given(self, plan: Plan) -> None:
        self.plan, self.plan_seconds = plan, self.calls.seconds
        self._add_lines()
        self._start()

    async def _read_plan(self) -> None:
        if self._given is not None:
            self._take_given(self._given)
            return
        max_tokens = 32 + _LINE_TOKENS[self._mode] * max(self._max_nodes, 4)
        try:
            async with aclosing(self._plan_events(max_tokens)) as events:
                async for event in events:
                    if isinstance(event, Finished):
                        self.plan_tokens = event.response.usage.completion_tokens
                        self._parser.finish(is_cut=event.response.finish_reason == "length")
                    else:
                        self._parser.feed(event.text)
                        self._start()
        except DeadlineExceeded:
            raise
        except HeadraceError as error:
            self._require(f"the planner failed: {error}")
            self.plan_error = error
            self._parser.finish(is_cut=True)
        self.plan_seconds = self.calls.seconds
        self._start()
        if not self.works:
            self._require(f"the plan has {_parts(len(self.plan.nodes))}")

    def _plan_events(self, max_tokens: int) -> AsyncGenerator[TextDelta | Finished, None]:
        if self._begun is not None:
            return self.calls.count(self._begun)
        return self.calls.stream(self._messages, max_tokens)

    def _start(self) -> None:
        """Start what may start: called whenever a line arrived or a part ended."""
        if self._given is None:
            self._take_lines()
        for node in self._schedule.take(self._join.head):
            work = Work(node, self.calls.seconds)
            self.works.append(work)
            if self._group is not None:
                self._group.create_task(self._write(work))

    def _take_lines(self) -> None:
        """Take the new lines of the plan, once there are two: one part alone is no plan."""
        if self._parser.num_restarts > self._num_restarts:
            self._num_restarts = self._parser.num_restarts
            if self.works:  # what was started is not part of the plan
                self._require("the planner's reasoning looked like a plan")
                self._is_lost = True
        if self._is_lost or self._parser.num_nodes < 2:
            return
        self.plan = self._parser.plan
        if is_example(node.title for node in self.plan.nodes):
            self._require("the planner copied the example")
        self._add_lines()

    def _add_lines(self) -> None:
        for node in self.plan.nodes[self._num_taken :]:
            self._join.add(node)
            self._schedule.add(node)
        self._num_taken = len(self.plan.nodes)

    async def _write(self, work: Work) -> None:
        node = work.node
        texts = {id: (self.plan.nodes[id - 1].title, self._join.body(id)) for id in node.needs}
        plan_text = _settled(self._parser.text, is_whole=self.plan_seconds is not None)

        def ask(reason: str) -> tuple[Message, ...]:
            return self._wording.node(self._messages, plan_text, node, texts, reason=reason)

        await self._writer.write(work, ask, self._num_open)
        if work.error is not None:
            self._require(f"part {node.id} failed: {work.error}")
        self._send(self._join.end(node.id))
        self._schedule.end(node.id)
        self._start()

    def _num_open(self) -> int:
        """Return how many parts were not given tokens yet, as many as there may be."""
        num_parts = self._max_nodes if self.plan_seconds is None else len(self.plan.nodes)
        return max(num_parts - sum(1 for work in self.works if work.num_granted), 0)

    def _require(self, why: str) -> None:
        """Give the plan up if nothing was sent yet; otherwise go on with what there is."""
        if not self.text:
            self._is_given_up = True
            raise _Unusable(why)


def _settled(text: str, *, is_whole: bool) -> str:
    """Return the plan's complete lines without the reasoning before them."""
    text = re.split(r"</think(?:ing)?>", text, flags=re.I)[-1]
    return (text if is_whole else text[: text.rfind("\n") + 1]).strip()


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    error = errors.exceptions[0]
    if isinstance(error, BaseExceptionGroup):
        return _first(cast("BaseExceptionGroup[BaseException]", error))
    return error


def _parts(number: int) -> str:
    return f"{number} part" if number == 1 else f"{number} parts"
