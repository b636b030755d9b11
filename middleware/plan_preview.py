"""What ``Plan`` would do with a request and what that would take, without writing the answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ..planners import Node, fitting_nodes, parse_plan
from ..planners.calibration import num_tokens
from ..planners.deciding import DecidingWords, Opening
from ..planners.known import KnownEngine
from ..planners.predictor import Forecast, Situation, forecast
from ..planners.prompts import PLAIN_WORDS
from ..planners.published import point_pieces, skeleton_messages
from ..planners.scheduler import Schedule
from ..planners.slots import Slot, slot_nodes
from .plan_choice import Choice
from .plan_events import held_plan
from .types import Event, Finished, Handler, Message, Request, TextDelta, Usage

if TYPE_CHECKING:
    from .plan import Plan

_PLAN_TOKENS = 400


@dataclass(frozen=True)
class Preview:
    """What would be done: ``verdict`` in a few words, ``nodes`` and what is predicted for them.

    ``plan_seconds`` and ``usage`` are those of the planner's call, which is made where there is
    one; ``plan_text`` is what it wrote. The forecast begins where that call ends.
    """

    choice: Choice
    verdict: str
    nodes: tuple[Node, ...] = ()
    forecast: Forecast | None = None
    plan_text: str = ""
    plan_seconds: float = 0.0
    usage: Usage = field(default_factory=lambda: Usage(num_calls=0))


async def preview(stage: Plan, request: Request, call_next: Handler) -> Preview:
    """Return what the stage would do; at most the planner's call is made."""
    choice = stage.choose(request)
    if choice.how == "plain":
        return Preview(choice, f"one call: {choice.why}")
    if choice.how == "slots":
        found = slots_forecast(choice, stage.known, stage.width)
        return _judged(stage, Preview(choice, "", slot_nodes(choice.pieces), found))
    inline = request.with_documents_inline()
    if choice.graph is not None:
        guess = forecast_of(choice.graph.nodes, inline.messages, stage.known, stage.width)
        return _judged(stage, Preview(choice, "", choice.graph.nodes, guess))
    max_nodes = fitting_nodes(request.sampling.max_tokens, stage.max_nodes)
    wording = DecidingWords() if choice.how == "decide" else PLAIN_WORDS
    messages = wording.plan(inline.messages, choice.mode, max_nodes)
    if choice.how == "sot":
        messages = skeleton_messages(inline)
    asked = replace(
        inline,
        messages=messages,
        sampling=replace(inline.sampling, max_tokens=_PLAN_TOKENS),
    )
    watched = stage.known.watch(call_next)
    is_held = choice.how == "plan" and choice.mode == "graph"
    events = held_plan(inline, watched, messages, max_nodes) if is_held else watched(asked)
    text, usage, seconds, is_plan = await _ask(events, choice)
    seen = Preview(choice, "", (), None, text, seconds, usage)
    if not is_plan:
        return replace(seen, verdict="one call: the model answers at once")
    if choice.how == "sot":
        nodes = slot_nodes(point_pieces(inline, text))
    else:
        nodes = parse_plan(text, choice.mode, max_nodes=max_nodes).nodes
    if len(nodes) < 2:
        return replace(seen, verdict=f"one call: the plan has {len(nodes)} usable parts")
    width = len(nodes) if choice.how == "sot" else stage.width
    guess = forecast_of(nodes, messages, stage.known, width)
    return _judged(stage, replace(seen, nodes=nodes, forecast=guess))


async def _ask(
    events: AsyncGenerator[Event, None], choice: Choice
) -> tuple[str, Usage, float, bool]:
    loop = asyncio.get_running_loop()
    start, text, usage, is_plan = loop.time(), "", Usage(), True
    opening = Opening(events, choice.mode)
    if choice.how == "decide":
        is_plan = await opening.is_plan()
    found = opening.plan_events() if is_plan else opening.events()
    async with aclosing(found) as stream:
        async for event in stream:
            if isinstance(event, TextDelta):
                text += event.text
            elif isinstance(event, Finished):
                usage = event.response.usage
            if not is_plan and len(text) > 400:
                break  # enough to be shown
    return text, usage, loop.time() - start, is_plan


def slots_forecast(choice: Choice, known: KnownEngine, width: int) -> Forecast | None:
    """Return what is predicted for slots, None where they are not known yet."""
    slots = [piece for piece in choice.pieces if isinstance(piece, Slot)]
    if not slots:
        return None
    return forecast_of(slot_nodes(slots), slots[0].messages, known, width)


def forecast_of(
    nodes: Iterable[Node], messages: tuple[Message, ...], known: KnownEngine, width: int
) -> Forecast:
    """Return what is predicted for parts of which none has begun."""
    schedule = Schedule(width)
    for node in nodes:
        schedule.add(node)
    prompt = num_tokens("".join(message.text for message in messages))
    now = Situation(
        known.cost,
        prompt,
        known.cached(prompt),
        known.shared(prompt),
        rows=known.num_rows,
        context=known.context,
    )
    return forecast(schedule, now, width=width)


def _judged(stage: Plan, seen: Preview) -> Preview:
    found = seen.forecast
    assert found is not None
    why = stage.refuses(seen.choice, found)
    if why:
        return replace(seen, verdict=f"one call: {why}")
    return replace(seen, verdict=f"{len(seen.nodes)} parts at the same time")
