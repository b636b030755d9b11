"""One planned answer: the planner's call and the parts, written while the plan still arrives.

Everything happens on events (a line of the plan, the end of a part); nothing polls. All tasks
live in one group: when the reader goes away, or something unexpected happens, all of them are
cancelled and their calls closed.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from typing import cast

from ..middleware.errors import DeadlineExceeded, HeadraceError
from ..middleware.types import (
    Event,
    Finished,
    FinishReason,
    Handler,
    Request,
    TextDelta,
    Usage,
)
from .calibration import num_tokens
from .counting import believed_tokens
from .gate import Gate
from .graph import Plan, longest_share
from .known import KnownEngine
from .parser import Mode, PlanParser
from .prompts import PLAIN_WORDS, Wording, is_example
from .rival import Rival
from .sections import Sections
from .small import Small
from .work import Work

_LINE_TOKENS = {"skeleton": 24, "graph": 40}
_LOST = 96  # pieces in one line, before there are two points: this is prose and no list


class _Unusable(Exception):
    """Nothing was sent yet and this plan will not do; the message says why."""


class PlannedAnswer:
    """Plans and writes the answer to one request; use it once, inside a running event loop.

    The request ends with the user's message and has its documents inline. After ``stream`` ended,
    ``unusable`` says why the plan was given up before anything was sent ("" if it was not), and
    the other attributes say what happened.

    ``plan`` is a plan that is known already: there is no planner's call. ``begun`` are the events
    of a planner's call that the caller has made (with ``wording``'s messages). ``wording`` says
    what the planner and the writers of the parts are asked. ``engine`` is what is known of the
    engine, ``gate`` decides between parts and one call, ``small`` writes easy parts, ``race``
    begins the plain answer beside the planner and ``seams`` adds sentences between the parts.
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
        engine: KnownEngine | None = None,
        gate: Gate | None = None,
        small: Small | None = None,
        race: bool = False,
        seams: bool = False,
    ) -> None:
        self.unusable = ""
        self.plan_seconds: float | None = None
        self.plan_tokens = 0
        self.plan_prompt_tokens = 0
        self.plan_error: HeadraceError | None = None
        self.seconds = 0.0
        self._given, self._begun = plan, begun
        self._mode: Mode = mode
        self._max_nodes = max_nodes
        self._parser = PlanParser(mode, max_nodes=max_nodes)
        self._messages = (
            request.messages if plan else wording.plan(request.messages, mode, max_nodes)
        )
        self.sections = Sections(
            request,
            call_next,
            kind=mode,
            messages=self._messages,
            wording=wording,
            engine=engine or KnownEngine(),
            gate=gate or Gate(),
            width=width,
            small=small,
            seams=seams,
            send=self._send_part,
            spawn=self._spawn,
            require=self._require,
        )
        self.calls = self.sections.calls
        self.judgement = self.sections.judgement
        self.request = request
        self._rival: Rival | None = Rival() if race and plan is None else None
        self.sections.is_raced = self._rival is not None
        self._pieces: asyncio.Queue[str | None] = asyncio.Queue()
        self._group: asyncio.TaskGroup | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._rival_task: asyncio.Task[None] | None = None
        self._num_restarts = 0
        self._is_lost = False
        self._is_given_up = False

    @property
    def plan(self) -> Plan:
        """The plan as far as it is known."""
        return self.sections.plan

    @property
    def works(self) -> list[Work]:
        """What became of the parts, in the order in which they were started."""
        return self.sections.works

    @property
    def num_retries(self) -> int:
        """Extra calls for parts."""
        return self.sections.num_retries

    @property
    def is_plain(self) -> bool:
        """Whether the answer is that of the plain call that ran beside the planner."""
        return self._rival is not None and self._rival.is_chosen

    @property
    def text(self) -> str:
        """The text that was sent so far."""
        return self._rival.text if self._rival and self.is_plain else self.sections.text

    @property
    def usage(self) -> Usage:
        """Tokens and calls so far."""
        return self.sections.usage

    @property
    def finish_reason(self) -> FinishReason:
        """``length`` also where a part could not be written: the answer is not complete."""
        if self._rival is not None and self._rival.response is not None and self.is_plain:
            return self._rival.response.finish_reason
        return self.sections.finish_reason

    @property
    def missing(self) -> list[int]:
        """Ids of the parts that failed, were not started, or have no text."""
        return [] if self.is_plain else self.sections.missing

    def learn(self, kind: str) -> None:
        """Keep what this plan came to, once the stream has ended, for the next request's prospect.

        Nothing is learnt where there was no planner's call or it failed, or a plain answer was
        faster: nobody knows then what the parts would have been.
        """
        if self._given is not None or self.plan_error is not None or self.is_plain:
            return
        plan_tokens = self.plan_tokens or num_tokens(self._parser.text)
        parts = 0 if self.unusable else len(self.plan.nodes)
        if plan_tokens:
            tokens = {work.node.id: work.num_tokens for work in self.works}
            is_divided = self.judgement.verdict == "parallel"
            self.sections.engine.habits[kind].observe(
                plan_tokens,
                sum(tokens.values()),
                parts,
                longest=longest_share(self.plan.nodes, tokens) if is_divided else 1.0,
                is_trial=bool(self.judgement.gate.trial),
            )

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

    def _send_part(self, text: str) -> None:
        if not self.is_plain:
            self._send(text)

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None] | None:
        if self._group is None or self.is_plain:  # else it would wait for what was cancelled
            work.close()
            return None
        task = self._group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _drive(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                if self._rival is not None:
                    self._rival_task = self._spawn(self._race(self._rival))
                self._spawn(self._read_plan())
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
            self.sections.close()
            self.seconds = self.calls.seconds
            self._pieces.put_nowait(None)

    async def _read_plan(self) -> None:
        if self._given is not None:
            self.plan_seconds = self.calls.seconds
            self.sections.take(self._given)
            self._check_room()
            self._go_on()
            return
        max_tokens = 32 + _LINE_TOKENS[self._mode] * max(self._max_nodes, 4)
        length = 0  # pieces of the line that is being written
        try:
            async with aclosing(self._plan_events(max_tokens)) as events:
                async for event in events:
                    if isinstance(event, Finished):
                        self._count_plan(event.response.usage, max_tokens)
                        self._parser.finish(is_cut=event.response.finish_reason == "length")
                    else:
                        self.plan_tokens += 1
                        self._parser.feed(event.text)
                        self._go_on()
                        is_new = "\n" in event.text or self._parser.is_thinking
                        length = 0 if is_new else length + 1
                        if length > _LOST and self._is_prose:
                            break  # the call is closed
        except DeadlineExceeded:
            raise
        except HeadraceError as error:
            self._require(f"the planner failed: {error}")
            self.plan_error = error
            self._parser.finish(is_cut=True)
        if (number := self._parser.num_nodes) < 2:
            self._require(f"the plan has {number} part{'s' if number != 1 else ''}")
        self.plan_seconds = self.calls.seconds
        self._go_on()

    def _count_plan(self, usage: Usage, max_tokens: int) -> None:
        """Note the tokens of the planner's call, as far as what is said of them can be."""
        cost, seconds = self.sections.engine.cost, self.calls.seconds
        said = usage.completion_tokens
        self.plan_tokens = believed_tokens(
            said or self.plan_tokens,
            self._parser.text,
            max_tokens=max_tokens,
            most_written=2 * seconds / cost.seconds(1, 0) if said else 0,
        )
        prompt = num_tokens("".join(message.text for message in self._messages))
        self.plan_prompt_tokens = max(usage.prompt_tokens, 0)
        self.sections.prompt_tokens = (self.plan_prompt_tokens or prompt) + self.plan_tokens

    @property
    def _is_prose(self) -> bool:
        """Whether a long line can be no part of the plan."""
        return self._mode == "skeleton" and self._parser.num_nodes < 2

    def _plan_events(self, max_tokens: int) -> AsyncGenerator[TextDelta | Finished, None]:
        if self._begun is not None:
            return self.calls.count(self._begun)
        return self.calls.stream(self._messages, max_tokens)

    def _go_on(self) -> None:
        """Take the new lines of the plan and start what may start."""
        if self.is_plain:
            return
        if self._given is None:
            self._take_lines()
        if self.is_plain:
            return
        self.sections.plan_text = _settled(self._parser.text, is_whole=self._is_whole)
        self.sections.is_whole = self._is_whole
        self.sections.most_parts = self._max_nodes
        verdict = self.sections.judge()
        if self._rival is not None and verdict == "parallel":
            self._drop_rival()
        elif self._rival is not None and verdict == "one call":
            self._choose_rival(self._rival, self.judgement.why)
            return
        self.sections.start()

    @property
    def _is_whole(self) -> bool:
        return self.plan_seconds is not None

    def _take_lines(self) -> None:
        """Take the new lines of the plan.

        One part alone is no plan. In a graph, the first one is begun all the same, so that it is
        further when the second line comes, but nothing of it is sent before.
        """
        if self._parser.num_restarts > self._num_restarts:
            self._num_restarts = self._parser.num_restarts
            if self.sections.works:  # what was started is not part of the plan
                self._require("the planner's reasoning looked like a plan")
                self._is_lost = True
        is_single = self._parser.num_nodes < 2
        if self._is_lost or (is_single and self._mode == "skeleton"):
            return
        plan = self._parser.plan
        if is_example(node.title for node in plan.nodes):
            self._require("the planner copied the example")
        self.sections.take(plan)
        self.sections.is_single = is_single
        self._check_room()

    def _check_room(self) -> None:
        """Give up a plan whose parts the caller's limit has no room for."""
        if self.sections.is_tight:
            limit, number = self.request.sampling.max_tokens, len(self.plan.nodes)
            self._require(f"max_tokens of {limit} is too small for {number} parts")

    async def _race(self, rival: Rival) -> None:
        """Write the plain answer; it wins where it is whole before anything was decided."""
        most = self.request.sampling.max_tokens
        try:
            await rival.run(self.calls, self.request.messages, most, self._send)
        except DeadlineExceeded:
            raise
        except HeadraceError:
            if rival.is_chosen:
                raise
            self._rival, self.sections.is_raced = None, False
            self._go_on()
            return
        if self._rival is rival and not rival.is_chosen:
            self._choose_rival(rival, "the plain answer was there before the plan")

    def _choose_rival(self, rival: Rival, why: str) -> None:
        self.judgement.settle("plain", why)
        for task in self._tasks:
            if task is not self._rival_task:
                task.cancel()
        self._send(rival.choose())

    def _drop_rival(self) -> None:
        self._rival, self.sections.is_raced = None, False
        if self._rival_task is not None:
            self._rival_task.cancel()

    def _require(self, why: str) -> None:
        """Give the plan up if nothing was sent yet; otherwise go on with what there is."""
        if self.text or self.is_plain:
            return
        if self._rival is not None and self._group is not None:
            self._choose_rival(self._rival, why)
            return
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
