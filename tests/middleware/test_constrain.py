"""The stage around scripted engines: what it does with what they wrote."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from headrace import (
    BackendError,
    Constrain,
    Event,
    Finished,
    Request,
    Response,
    TextDelta,
    Truncated,
    constraint,
)
from headrace.middleware.types import FinishReason


class Wheel(BaseModel):
    percent: Annotated[int, Field(le=100)]


async def answer(spec: Any, text: str, reason: FinishReason = "stop") -> Response:
    seen: list[Request] = []

    async def engine(request: Request) -> AsyncGenerator[Event, None]:
        seen.append(request)
        yield TextDelta(text)
        yield Finished(Response(text, finish_reason=reason, report=request.report))

    request = Request.of("x", constraint=None if spec is None else constraint(spec))
    events = [event async for event in Constrain()(request, engine)]
    assert seen[0].constraint == request.constraint
    assert isinstance(events[-1], Finished)
    return events[-1].response


async def test_json_comes_back_as_the_type() -> None:
    assert (await answer(Wheel, '{"percent": 63}')).parsed == Wheel(percent=63)


async def test_a_schema_gives_plain_values() -> None:
    assert (await answer({"type": "array"}, "[1, 2]")).parsed == [1, 2]


async def test_choice_and_pattern_give_the_text() -> None:
    assert (await answer(["yes", "no"], "no")).parsed == "no"
    assert (await answer(re.compile(r"\d+"), "63")).parsed == "63"


async def test_without_a_constraint_nothing_happens() -> None:
    response = await answer(None, "anything")
    assert response.parsed is None
    assert response.report.stages == ()


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (Wheel, "Sure! Here is the JSON"),
        (Wheel, '{"percent": 630}'),
        (Wheel, '{"percent": "many"}'),
        (["yes", "no"], "maybe"),
        (re.compile(r"\d+"), "63 percent"),
    ],
)
async def test_an_engine_that_ignores_the_constraint_is_found_out(spec: Any, text: str) -> None:
    with pytest.raises(BackendError, match="constraint"):
        await answer(spec, text)


async def test_cut_output_is_said_to_be_cut_and_kept() -> None:
    with pytest.raises(Truncated, match="max_tokens") as caught:
        await answer(Wheel, '{"perc', "length")
    assert caught.value.text == '{"perc'


async def test_a_constraint_of_the_stage_is_for_requests_without_one() -> None:
    async def engine(request: Request) -> AsyncGenerator[Event, None]:
        assert request.constraint is not None
        yield Finished(Response(str(request.constraint.spec[0])))

    stage = Constrain(constraint(["mine"]))
    for request, expected in [
        (Request.of("x"), "mine"),
        (Request.of("x", constraint=constraint(["own"])), "own"),
    ]:
        (event,) = [event async for event in stage(request, engine)]
        assert isinstance(event, Finished)
        assert event.response.parsed == expected
