"""The stage that plans an answer and writes its parts at the same time."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from ..backends.base import Backend
from ..planners import PlannedAnswer, fitting_nodes
from ..planners.calibration import num_tokens
from ..planners.deciding import DecidingWords, Opening
from ..planners.gate import MIN_GAIN, Gate, When
from ..planners.known import KnownEngine
from ..planners.outline import OutlineWords
from ..planners.predictor import Forecast
from ..planners.prompts import PLAIN_WORDS, PlainWords, Wording
from ..planners.prospect import Prospect, prospect
from ..planners.small import Small
from ..planners.speed import StepCost
from .cost.predict import Predictor
from .dispatcher import Dispatcher
from .errors import InvalidRequest
from .plan_choice import Choice, Strategy, check_strategy, choose
from .plan_engine import dispatched, is_race_free, known_engine, small_of
from .plan_events import again_events, held_plan, plain_events, slots_events
from .plan_options import check_options, outline_of
from .plan_preview import forecast_of, slots_forecast
from .plan_report import planned_decision, planned_facts, said
from .report import StageReport
from .types import Event, Finished, Handler, Request, Response, TextDelta

__all__ = ["Plan", "Strategy"]


@dataclass(frozen=True, slots=True)
class Plan:
    """Plans the answer first, then writes its parts in parallel, streamed in order.

    ``strategy`` is one of

    - ``auto``: what the prompt asks for decides: a list of items is mapped, a question whose answer
      is surely a list of independent parts is planned as ``skeleton``, an unsure one is left to the
      model (``decide``), anything else is passed on.
    - ``map``: the prompt lists its items; a call an item, no planner.
    - ``template``: the parts are given, no planner: by ``outline`` (titles of sections), or by the
      request's constraint (a template's fields, the independent fields of a JSON schema).
    - ``skeleton``: a list of independent points (Skeleton-of-Thought, arXiv 2307.15337).
    - ``graph``: parts that may need others' text (SGD and Plato, arXiv 2402.12280).
    - ``decide``: one call that plans or answers; its first line decides.
    - ``sot``: Skeleton-of-Thought as published, to be measured beside the others.
    - ``off``: no plan.

    ``max_nodes`` is the most parts of a planned answer (the tail of a longer plan is merged) and
    ``width`` how many parts may be written at a time. An ``outline`` is used by ``auto`` too.

    With ``when="pays"`` a plan is asked for only where the whole of it, from the planner's call on,
    is expected to be 1.15 times as fast as a plain answer, by what plans have come to at this
    engine; its parts are written at the same time only if that is predicted to be 1.15 times as
    fast; else one call writes them all, with the plan before it. The prediction begins with
    ``cost`` (``cost.predictor_of``; None: the proportions of an 8B model on an A100) and is
    corrected by every answer that passes. "always" divides every plan; ``map`` and ``template``
    divide when they are asked for by name. With ``race`` a plain answer is begun beside the planner
    and taken where planning does not pay: nothing is lost then but the tokens of a call that is
    given up. None: for a graph, where those are free, that is on an engine of one's own that has
    room and that earlier answers of this stage (or ``cost``) have shown to write one text more in
    the same time. ``seams`` adds sentences between parts that one more short call writes;
    ``small`` is a second, faster engine for parts that a ``graph`` calls easy.
    A Backend given as ``small`` is the stage's own: it gets a dispatcher, and closing the pipeline
    (or ``aclose``) frees both; a Dispatcher or any other handler is left to who made it.

    Without a plan (the rules say no, a constraint or tools forbid it, the plan cannot be used) the
    request is passed on as it is; the report says why. The answer's ``finish_reason`` is
    ``length`` when a part was cut or could not be written, and its ``max_tokens`` holds for all
    that is read, headings too. The report of a planned answer has one row for all calls behind it.
    """

    strategy: Strategy = "auto"
    max_nodes: int = 8
    width: int = 8
    outline: tuple[str, ...] = ()
    when: When = "pays"
    race: bool | None = None
    seams: bool = False
    cost: Predictor | StepCost | None = field(default=None, compare=False, repr=False)
    small: Backend | Handler | None = field(default=None, compare=False, repr=False)
    known: KnownEngine = field(init=False, compare=False, repr=False)
    _small: Small | None = field(init=False, compare=False, repr=False)
    _own: Dispatcher | None = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_strategy(self.strategy)
        check_options(self)
        object.__setattr__(self, "outline", outline_of(self.outline))
        if self.outline and self.strategy not in ("auto", "template"):
            raise InvalidRequest(f"an outline is for template or auto, not {self.strategy!r}")
        handler = dispatched(self.small)
        is_own = isinstance(handler, Dispatcher) and handler is not self.small
        object.__setattr__(self, "_own", handler if is_own else None)
        object.__setattr__(self, "_small", small_of(handler))
        object.__setattr__(self, "known", known_engine(self.cost))

    async def aclose(self) -> None:
        """Free the second engine, if it is the stage's own. Idempotent."""
        if self._own is not None:
            await self._own.close()

    def choose(self, request: Request) -> Choice:
        """Return what would be done with the request, and why; no call is made."""
        return choose(request, self.strategy, max_nodes=self.max_nodes, outline=self.outline)

    async def __call__(
        self, request: Request, call_next: Handler, /
    ) -> AsyncGenerator[Event, None]:
        """Answer the request; see ``Middleware``."""
        choice = self.choose(request)
        why = choice.why if choice.how == "plain" else self._doubt(choice, request)
        trial = ""
        if why and choice.how != "plain" and self.known.habits[kind_of(choice)].refuse():
            why, trial = "", why
        match choice.how:
            case "outline":
                found = self._planned(choice, request, call_next, trial)
            case _ if why:
                row = StageReport("plan", f"no plan: {why}", details=said(choice))
                found = plain_events(request, self.known.watch(call_next), row)
            case "slots" | "sot" | "plain":
                guess = slots_forecast(choice, self.known, self.width)
                watched = self.known.watch(call_next)
                found = slots_events(choice, request, watched, self.width, guess, trial=trial)
            case "plan":
                found = self._planned(choice, request, call_next, trial)
            case "decide":
                found = self._decided(choice, request, call_next, trial)
        async with aclosing(found) as events:
            async for event in events:
                yield event

    def refuses(self, choice: Choice, guess: Forecast) -> str:
        """Return why one call is better with this forecast, "" where the parts are.

        Parts that were asked for by name (``map``, ``template``, ``sot``) are written as such.
        """
        return "" if is_named(choice) else Gate(self.when).refuses(guess)

    def _doubt(self, choice: Choice, request: Request) -> str:
        """Return why one call is expected to be better, "" where parts may pay; asks nobody."""
        if self.when == "always" or is_named(choice):
            return ""
        if choice.how in ("plan", "decide"):
            found = self.prospect(choice, request)
            return "" if found.gain >= MIN_GAIN else f"{found}, less than {MIN_GAIN:g}"
        guess = slots_forecast(choice, self.known, self.width)
        if choice.graph is not None:
            messages = request.with_documents_inline().messages
            guess = forecast_of(choice.graph.nodes, messages, self.known, self.width)
        return self.refuses(choice, guess) if guess is not None else ""

    def prospect(self, choice: Choice, request: Request) -> Prospect:
        """Return what planning this request is expected to gain; no call is made."""
        inline = request.with_documents_inline()
        prompt = num_tokens("".join(message.text for message in inline.messages))
        return prospect(
            self.known.cost,
            self.known.habits[kind_of(choice)],
            prompt=prompt,
            shared=self.known.shared(prompt),
            max_tokens=request.sampling.max_tokens,
            most=self._max_nodes(choice, request),
            width=self.width,
        )

    async def _planned(
        self, choice: Choice, request: Request, call_next: Handler, trial: str
    ) -> AsyncGenerator[Event, None]:
        """Plan, unless the plan is given, and write the parts."""
        inline = request.with_documents_inline()
        wording: Wording = PlainWords(with_difficulty=True) if self._small else PLAIN_WORDS
        begun: AsyncGenerator[Event, None] | None = None
        if choice.how == "outline":
            wording = OutlineWords(self.outline)
        elif choice.mode == "graph":
            max_nodes = self._max_nodes(choice, request)
            asked = wording.plan(inline.messages, choice.mode, max_nodes)
            begun = held_plan(inline, self.known.watch(call_next), asked, max_nodes)
        is_raced = self.race
        if is_raced is None:  # a list pays anyway; a graph may be a chain
            is_open = choice.how == "plan" and choice.mode == "graph" and self.when == "pays"
            is_open = is_open and not trial
            is_raced = is_open and await is_race_free(self.known, call_next, self.width)
        gate = Gate("always" if is_named(choice) else self.when, trial=trial)
        answer = self._answer(choice, inline, call_next, wording, begun, gate, is_raced=is_raced)
        async with aclosing(_written(answer, choice, request, call_next)) as events:
            async for event in events:
                yield event

    async def _decided(
        self, choice: Choice, request: Request, call_next: Handler, trial: str
    ) -> AsyncGenerator[Event, None]:
        """Make the call that plans or answers, and do the one or the other."""
        inline, wording = request.with_documents_inline(), DecidingWords()
        asked = wording.plan(inline.messages, choice.mode, self._max_nodes(choice, request))
        watched = self.known.watch(call_next)
        async with aclosing(
            Opening(watched(replace(inline, messages=asked)), choice.mode)
        ) as opening:
            begun, gate = opening.plan_events(), Gate(self.when, trial=trial)
            answer = self._answer(choice, inline, call_next, wording, begun, gate)
            is_plan = await opening.is_plan()
            found = (
                _written(answer, choice, request, call_next)
                if is_plan
                else _answered(choice, request, opening)
            )
            async with aclosing(found) as events:
                async for event in events:
                    yield event

    def _max_nodes(self, choice: Choice, request: Request) -> int:
        limit = len(choice.graph.nodes) if choice.graph else self.max_nodes
        return fitting_nodes(request.sampling.max_tokens, limit)

    def _answer(
        self,
        choice: Choice,
        request: Request,
        call_next: Handler,
        wording: Wording,
        begun: AsyncGenerator[Event, None] | None,
        gate: Gate,
        *,
        is_raced: bool = False,
    ) -> PlannedAnswer:
        return PlannedAnswer(
            request,
            call_next,
            mode=choice.mode,
            max_nodes=self._max_nodes(choice, request),
            width=self.width,
            plan=choice.graph,
            begun=begun,
            wording=wording,
            engine=self.known,
            gate=gate,
            small=self._small,
            race=is_raced and choice.how == "plan",
            seams=self.seams,
        )


def kind_of(choice: Choice) -> str:
    """Return under which name an engine's plans are learnt."""
    return choice.mode if choice.how == "plan" else choice.how


def is_named(choice: Choice) -> bool:
    """Whether the parts are given and were asked for by name: they are written as such."""
    return choice.how in ("slots", "sot", "outline") and choice.strategy != "auto"


async def _written(
    answer: PlannedAnswer, choice: Choice, request: Request, call_next: Handler
) -> AsyncGenerator[Event, None]:
    """Stream a planned answer, or a plain one where its plan is of no use."""
    async with aclosing(answer.stream()) as pieces:
        async for piece in pieces:
            yield TextDelta(piece)
    answer.learn(kind_of(choice))
    decision = f"no plan: {answer.unusable}" if answer.unusable else planned_decision(answer)
    details = said(choice) | planned_facts(answer)
    row = StageReport("plan", decision, answer.calls.seconds, details=details)
    if answer.unusable:
        async with aclosing(
            again_events(request, call_next, answer.calls, row, answer.usage)
        ) as events:
            async for event in events:
                yield event
        return
    yield Finished(
        Response(
            answer.text,
            finish_reason=answer.finish_reason,
            usage=answer.usage,
            report=request.report.add(row),
        )
    )


async def _answered(
    choice: Choice, request: Request, opening: Opening
) -> AsyncGenerator[Event, None]:
    """Pass on the answer that the model gave instead of a plan, with our row where it belongs."""
    row = StageReport("plan", "no plan: the model answered at once", details=said(choice))
    async with aclosing(opening.events()) as events:
        async for event in events:
            if isinstance(event, Finished):
                rows = event.response.report.stages
                at = len(request.report.stages)
                report = replace(event.response.report, stages=(*rows[:at], row, *rows[at:]))
                event = Finished(replace(event.response, report=report))
            yield event
