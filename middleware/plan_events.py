"""The events of answers that have no plan: plain ones, and those whose parts were known before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from ..planners import plan_pattern
from ..planners.calls import Calls
from ..planners.predictor import Forecast
from ..planners.published import point_pieces, skeleton_messages
from ..planners.slots import Slot, is_room
from ..planners.slotted import SlotsAnswer
from .constrain import UNCHECKED
from .errors import (
    BackendError,
    DeadlineExceeded,
    HeadraceError,
    Truncated,
    UnsupportedConstraint,
)
from .outcome import broken, parsed
from .plan_choice import Choice
from .plan_forms import Rest
from .plan_report import said, slots_decision, slots_facts
from .report import StageReport
from .types import (
    Constraint,
    Event,
    Finished,
    Handler,
    Message,
    Request,
    Response,
    TextDelta,
    Usage,
)

_LINE_TOKENS = 40
_SOT_TOKENS = 512  # of every call, as in the released code


async def plain_events(
    request: Request, call_next: Handler, row: StageReport, spent: Usage | None = None
) -> AsyncGenerator[Event, None]:
    """Pass the request on with our row; add what a useless plan cost to the response."""
    request = replace(request, report=request.report.add(row))
    async with aclosing(call_next(request)) as events:
        async for event in events:
            if isinstance(event, Finished) and spent:
                response = event.response
                event = Finished(replace(response, usage=response.usage + spent))
            yield event


async def again_events(
    request: Request, call_next: Handler, calls: Calls, row: StageReport, spent: Usage
) -> AsyncGenerator[Event, None]:
    """Answer plainly after a plan was given up, in the time left; the plan's bill is ``spent``."""
    await calls.cool_down()
    again = replace(request, deadline=calls.remaining())
    async with aclosing(plain_events(again, call_next, row, spent)) as events:
        async for event in events:
            yield event


async def held_plan(
    request: Request, call_next: Handler, messages: tuple[Message, ...], max_nodes: int
) -> AsyncGenerator[Event, None]:
    """Yield the events of a planner's call that is held to the language of a graph.

    An engine that cannot hold it, or refuses, is asked again without: the parser reads what comes.
    ``Constrain`` passes these events on as they come, so that parts start before the plan ends.
    """
    asked = replace(
        request,
        messages=messages,
        sampling=replace(request.sampling, max_tokens=32 + _LINE_TOKENS * max(max_nodes, 4)),
    )
    held = replace(
        asked,
        constraint=Constraint("regex", plan_pattern("graph", max_nodes=max_nodes)),
        tags={**request.tags, UNCHECKED: "1"},
    )
    is_begun = False
    try:
        async with aclosing(call_next(held)) as events:
            async for event in events:
                is_begun = True
                yield event
        return
    except (UnsupportedConstraint, BackendError) as error:
        if is_begun or (isinstance(error, BackendError) and error.retryable):
            raise
    async with aclosing(call_next(asked)) as events:
        async for event in events:
            yield event


async def slots_events(
    choice: Choice,
    request: Request,
    call_next: Handler,
    width: int,
    found: Forecast | None = None,
    *,
    trial: str = "",
) -> AsyncGenerator[Event, None]:
    """Write the parts that are known before the first call, or after the published skeleton.

    For the report, ``found`` is what was predicted and ``trial`` why one call was thought better.
    """
    inline = replace(request.with_documents_inline(), constraint=None)
    calls = Calls(inline, call_next)
    pieces, why = choice.pieces, ""
    plan: dict[str, Any] = {"trial": trial or None}
    if choice.how == "sot":
        pieces, why = await _published(request, calls)
        plan |= {"plan_tokens": calls.usage.completion_tokens, "plan_seconds": calls.seconds}
        if not why and not is_room(pieces, limit := request.sampling.max_tokens):
            why = f"max_tokens of {limit} is too small for {(len(pieces) + 1) // 2} points"
        width = max(len(pieces), 1)
        most = _SOT_TOKENS * width
        most = min(request.sampling.max_tokens or most, most)
        inline = replace(inline, sampling=replace(inline.sampling, max_tokens=most))
    answer = SlotsAnswer(inline, call_next, pieces, width=width, check=_check, calls=calls)
    if not why:
        async with aclosing(answer.stream()) as texts:
            async for text in texts:
                yield TextDelta(text)
    if unusable := why or answer.unusable:
        facts = said(choice) | slots_facts(answer, found) | plan
        row = StageReport("plan", f"no plan: {unusable}", calls.seconds, details=facts)
        async with aclosing(again_events(request, call_next, calls, row, calls.usage)) as events:
            async for event in events:
                yield event
        return
    text = answer.text
    if answer.failed is not None:
        rest = await _rest(choice, inline, call_next, answer)
        text += rest
        yield TextDelta(rest)
    facts = said(choice) | slots_facts(answer, found) | plan
    said_so = slots_decision(answer) + (", as a trial" if trial else "")
    row = StageReport("plan", said_so, calls.seconds, details=facts)
    response = Response(
        text,
        finish_reason=answer.finish_reason if answer.failed is None else "stop",
        usage=answer.usage,
        report=request.report.add(row),
    )
    if choice.form is not None and request.constraint is not None:
        value = await asyncio.to_thread(parsed, response, request.constraint)
        response = replace(response, parsed=value, enforced=answer.enforced)
    yield Finished(response)


async def _published(request: Request, calls: Calls) -> tuple[list[str | Slot], str]:
    """Return the pieces of a Skeleton-of-Thought answer, or why there are none."""
    outline = ""
    try:
        messages = skeleton_messages(request)
        async with aclosing(calls.stream(messages, _SOT_TOKENS)) as events:
            async for event in events:
                outline += event.text if isinstance(event, TextDelta) else ""
    except DeadlineExceeded:
        raise
    except HeadraceError as error:
        return [], f"the planner failed: {error}"
    pieces = point_pieces(request, outline)
    return pieces, "" if pieces else "the skeleton has no points"


async def _rest(choice: Choice, request: Request, call_next: Handler, answer: SlotsAnswer) -> str:
    """Return what one call writes from the failed part on.

    Raises Truncated with the text that was sent where that fails too, and DeadlineExceeded.
    """
    index = answer.failed or 0
    left = answer.tokens_left
    names = [one.name for one in choice.pieces[index:] if isinstance(one, Slot)]
    error = next((w.error for w in answer.works if w.slot.name == names[0]), None)
    why = f"{names[0]} could not be written: {error.said if error else error}"

    def cut(said: str) -> Truncated:
        return Truncated(f"the answer ends before {names[0]}: {said}", text=answer.text)

    rest: Rest | None = choice.form.rest(index, answer.text) if choice.form else None
    if rest is None or left == 0:
        raise cut(why if rest is None else f"{why}; max_tokens are used up")
    await answer.calls.cool_down()
    asked = replace(
        request,
        messages=rest.messages,
        constraint=rest.constraint,
        sampling=replace(request.sampling, max_tokens=left),
        deadline=answer.calls.remaining(),
    )
    text = ""
    try:
        async with aclosing(answer.calls.count(call_next(asked))) as events:
            async for event in events:
                text += event.text if isinstance(event, TextDelta) else ""
    except DeadlineExceeded:
        raise
    except HeadraceError as failure:
        raise cut(f"{why}; one call for the rest failed: {failure}") from failure
    if problem := await asyncio.to_thread(broken, text, rest.constraint):
        raise cut(f"{why}; one call for the rest is refused: {problem}")
    return rest.join(text)


def _check(slot: Slot, text: str) -> str | None:
    return None if slot.constraint is None else broken(text, slot.constraint)
