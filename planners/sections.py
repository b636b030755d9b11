"""The parts of one answer: which to start now, who writes them, and what is done about failures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace

from ..middleware.types import FinishReason, Handler, Message, Request, Usage
from .budget import MIN_TOKENS, Budget
from .calibration import most_tokens, num_tokens
from .calls import Calls
from .gate import Gate
from .graph import Node, Plan
from .join import Join
from .judgement import Judgement, Verdict
from .known import KnownEngine
from .lead import Lead
from .outlook import Outlook
from .predictor import Situation, forecast
from .prompts import Wording, rest_messages
from .scheduler import Schedule
from .seams import connect
from .small import Small
from .work import Work
from .writer import Writer


class Sections:
    """Starts parts on events and writes them into one text.

    ``require`` is told what went wrong, for the case that nothing was sent yet.
    """

    def __init__(
        self,
        request: Request,
        call_next: Handler,
        *,
        kind: str,
        messages: tuple[Message, ...],
        wording: Wording,
        engine: KnownEngine,
        gate: Gate,
        width: int,
        small: Small | None,
        seams: bool,
        send: Callable[[str], None],
        spawn: Callable[[Coroutine[None, None, None]], asyncio.Task[None] | None],
        require: Callable[[str], None],
    ) -> None:
        self.plan = Plan()
        self.works: list[Work] = []
        self.plan_text = ""
        self.prompt_tokens = 0
        self.is_whole = False
        self.is_raced = False  # a plain answer runs beside: nothing is sent
        self.is_single = False  # there may be no plan: nothing is sent, nothing decided
        self.most_parts = 0
        self.num_seams = 0
        self.engine = engine
        self.calls = Calls(request, engine.watch(call_next))
        self.judgement = Judgement(gate)
        self._request, self._messages, self._wording = request, messages, wording
        self.kind = kind
        self._send, self._spawn, self._require = send, spawn, require
        self._schedule = Schedule(width)
        self._join = Join()
        self._budget = Budget(request.sampling.max_tokens)
        self._writer = Writer(
            self.calls,
            self._join,
            self._budget,
            send,
            engine.lengths,
            kind,
            self._end_lead,
            lambda: len(self.plan.nodes),
        )
        self._small = small
        self._small_calls = small.calls(request) if small is not None else None
        self._wants_seams = seams
        self._seam_task: asyncio.Task[None] | None = None
        self._turns: dict[int, asyncio.Future[None]] = {}
        self._num_taken = 0
        self._num_judged = -1
        self._is_spread = False  # parts pay, though nothing is decided while a plain answer runs
        self._lead = Lead(self.start)
        self._outlook = Outlook(engine, self.calls, request, kind, width)

    @property
    def text(self) -> str:
        """The text that was sent so far."""
        return self._join.text

    @property
    def usage(self) -> Usage:
        """Tokens and calls so far, of both engines."""
        own = self.calls.usage
        return own + self._small_calls.usage if self._small_calls is not None else own

    @property
    def num_retries(self) -> int:
        """Extra calls for parts."""
        return self._writer.num_retries

    @property
    def missing(self) -> list[int]:
        """Ids of the parts that failed, were not started, or have no text."""
        whole: set[int] = set()
        for work in self.works:
            has_text = not (work.error or work.is_blank or work.flaw.startswith("repeats"))
            if work.end is not None and has_text:
                whole.update((work.node.id, *work.covers))
        return [node.id for node in self.plan.nodes if node.id not in whole]

    @property
    def finish_reason(self) -> FinishReason:
        """``length`` also where a part could not be written: the answer is not complete."""
        reasons = {work.finish_reason for work in self.works}
        if "content_filter" in reasons:
            return "content_filter"
        left_out = {work.node.id for work in self.works if work.flaw and not work.error}
        is_short = "length" in reasons or not left_out.issuperset(self.missing)
        return "length" if is_short else "stop"

    def take(self, plan: Plan) -> None:
        """Take a plan that has grown."""
        self.plan = plan
        for node in plan.nodes[self._num_taken :]:
            self._join.add(node)
            self._schedule.add(node)
        self._num_taken = len(plan.nodes)

    @property
    def is_tight(self) -> bool:
        """Whether the request's ``max_tokens`` has no room for all headings and some text each."""
        limit = self._request.sampling.max_tokens
        if limit is None:
            return False
        frames = (self._join.num_frame_tokens(node.id) for node in self.plan.nodes)
        return sum(frames) + MIN_TOKENS * len(self.plan.nodes) > limit

    def start(self) -> None:
        """Start what may start: called whenever a line arrived or a part ended."""
        self._join.is_held = self.is_single or self.is_raced
        self._send(self._join.release())
        if self._schedule.num_waiting and not self.works:
            self._begin_lead()
        self._schedule.width = self._width()
        for node in self._schedule.take(self._join.head):
            self._launch(node)
        if (turn := self._turns.pop(self._join.head, None)) is not None:
            turn.set_result(None)
        self._connect()

    def close(self) -> None:
        """Stop the timer; the tasks are their group's."""
        self._lead.close()

    def judge(self) -> Verdict:
        """Predict, where the plan has grown or ended and nothing is decided, and decide."""
        if not self.is_single:
            self._judge()
        return self.judgement.verdict

    def _judge(self) -> None:
        state = len(self.plan.nodes) + 1000 * self.is_whole
        if state == self._num_judged or not self.plan.nodes or self._schedule.head > state % 1000:
            return
        is_late = self.judgement.verdict != "open" and not self.is_whole
        if is_late or self.judgement.verdict in ("one call", "plain"):
            return
        self._num_judged = state
        now, width = self._situation(), self._outlook.width
        found = forecast(self._schedule, now, width=width)
        if self.is_raced:  # parts begin as without the plain answer, which is kept for longer
            self._is_spread = self._is_spread or not self.judgement.gate.refuses(found)
            found = forecast(self._schedule, now, width=width, ahead=self._outlook.ahead)
        before = self.judgement.verdict
        after = self.judgement.look(
            found, self.calls.seconds, is_whole=self.is_whole, is_raced=self.is_raced
        )
        if before == "open" and after == "one call" and not self.is_raced:
            self._gather()

    def _situation(self) -> Situation:
        planned = num_tokens("".join(m.text for m in self._messages) + self.plan_text)
        running = {w.node.id: self._join.written(w.node.id) for w in self._running()}
        return self._outlook.situation(self.prompt_tokens or planned, len(self.plan.nodes), running)

    def _running(self) -> list[Work]:
        return [work for work in self.works if work.end is None]

    def _width(self) -> int:
        """Return how many parts may run now."""
        if self.judgement.verdict == "open" and not self._is_spread:
            return 1
        return 1 if self._lead.is_on else self._outlook.width

    def _gather(self) -> None:
        """Let one call write all that was not started; what is written already comes before it."""
        rest = self._schedule.waiting
        if len(rest) < 2:
            return
        first = rest[0]
        for node in rest:
            self._schedule.end(node.id)
        length = sum(node.length for node in rest)
        node = replace(first, length=length, needs=tuple(range(1, first.id)), agrees=())
        self._schedule.add(node)
        self._join.gather(node)

    def _launch(self, node: Node) -> None:
        others = tuple(other.id for other in self.plan.nodes if other.id > node.id)
        covers = others if self._join.is_whole(node.id) else ()
        work = Work(node, self.calls.seconds, self.calls, covers=covers)
        now = self._situation() if self._small is not None else None
        if self._small is not None and self._small_calls is not None and now is not None:
            work.is_small = self._small.takes(
                node,
                now.cost,
                length=now.length(node),
                prompt=now.prompt,
                cached=now.cached,
                rows=self._schedule.num_running,
            )
            work.calls = self._small_calls if work.is_small else self.calls
        self.works.append(work)
        self._spawn(self._write(work))

    async def _write(self, work: Work) -> None:
        node = work.node
        texts = self._texts(node.needs)
        plan_text = self.plan_text

        def ask(reason: str) -> tuple[Message, ...]:
            if work.covers:
                nodes = [self.plan.nodes[id - 1] for id in (node.id, *work.covers)]
                return rest_messages(self._messages, plan_text, nodes, texts, reason=reason)
            return self._wording.node(self._messages, plan_text, node, texts, reason=reason)

        await self._writer.write(work, ask, self._num_open)
        if work.error is not None:
            self._require(f"part {node.id} failed: {work.error}")
        if work.can_be_rescued and not work.covers and self._writer.can_retry:
            await self._rescue(work)
        is_last = bool(work.covers) or (self.is_whole and node.id == len(self.plan.nodes))
        is_cut = work.finish_reason == "length" or work.error is not None
        self._send(self._join.end(node.id, is_cut=is_cut and not is_last))
        work.end = self.calls.seconds
        self._schedule.end(node.id)
        self.start()

    async def _rescue(self, work: Work) -> None:
        """Write a part once more when it is its turn, knowing everything before it."""
        node = work.node
        if work.error is None:  # else what came before the engine failed is worth keeping
            self._writer.forget(work)
        if self._join.head != node.id:
            self._schedule.stall(node.id)
            self._turns[node.id] = asyncio.get_running_loop().create_future()
            turn = self._turns[node.id]
            self.start()
            await turn
            self._schedule.resume(node.id)
        if not self._writer.can_retry:
            return
        self._writer.count(work)
        work.is_rescued = True
        texts = self._texts(tuple(range(1, node.id)))

        def ask(reason: str) -> tuple[Message, ...]:
            return self._wording.node(self._messages, self.plan_text, node, texts, reason=reason)

        await self._writer.write(work, ask, self._num_open, retries=0)

    def _texts(self, ids: tuple[int, ...]) -> dict[int, tuple[str, str]]:
        return {id: (self.plan.nodes[id - 1].title, self._join.body(id)) for id in ids}

    def _num_open(self) -> int:
        """Return how many parts were not given tokens yet, as many as there may be."""
        num_parts = len(self.plan.nodes) if self.is_whole else self.most_parts
        given = sum(1 + len(work.covers) for work in self.works if work.is_given)
        return max(num_parts - given, 0)

    def _begin_lead(self) -> None:
        """Let the first call run ahead where nobody has read the common beginning yet."""
        is_warm = self.prompt_tokens > 0 or not self.is_whole
        has_none = self.engine.has_prefix_cache is False
        given = num_tokens("".join(message.text for message in self._messages))
        self._lead.begin(shared_tokens=given, is_warm=is_warm or has_none)

    def _end_lead(self) -> None:
        self._lead.end()

    def _connect(self) -> None:
        """Ask for sentences between parts while the last one is being written."""
        if not self._wants_seams or not self.is_whole or self._schedule.num_waiting:
            return
        if self._seam_task is not None:
            if not self._running():
                self._seam_task.cancel()
            return
        late = [id for id in self._join.ended() if id > self._join.head]
        if len(self._running()) == 1 and late:
            self._seam_task = self._spawn(self._write_seams(late))

    async def _write_seams(self, ids: list[int]) -> None:
        texts = self._texts(tuple(range(1, len(self.plan.nodes) + 1)))
        sentences = await connect(self.calls, self._request.messages, texts, ids)
        self.num_seams = sum(self._put_seam(id, text) for id, text in sentences.items())

    def _put_seam(self, id: int, sentence: str) -> bool:
        """Put a sentence before a part if it is not too late, and the limit has room for it."""
        tokens = most_tokens(sentence) + 1
        if not self._budget.take(tokens):
            return False
        is_put = self._join.connect(id, sentence)
        if not is_put:
            self._budget.refund(tokens)
        return is_put
