"""The stage around scripted engines: what it does with what they wrote."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, field_validator

from headrace import (
    BackendError,
    Constrain,
    Document,
    Event,
    Finished,
    InvalidRequest,
    Request,
    Response,
    StageReport,
    TextDelta,
    ToolCallDelta,
    Truncated,
    Usage,
    constraint,
    grammar,
    template,
)
from headrace.middleware.types import Enforcement, FinishReason, Handler, ToolCall


class Wheel(BaseModel):
    percent: Annotated[int, Field(le=100)]


async def answer(
    spec: Any, text: str, reason: FinishReason = "stop", enforced: Enforcement | None = None
) -> Response:
    seen: list[Request] = []

    async def engine(request: Request) -> AsyncGenerator[Event, None]:
        seen.append(request)
        yield TextDelta(text)
        response = Response(text, finish_reason=reason, report=request.report, enforced=enforced)
        yield Finished(response)

    request = Request.of("x", constraint=None if spec is None else constraint(spec))
    events = [event async for event in Constrain(retries=0)(request, engine)]
    assert seen[0].constraint == request.constraint
    assert isinstance(events[-1], Finished)
    return events[-1].response


def row(response: Response) -> StageReport:
    found = response.report.stage("constrain")
    assert found is not None
    return found


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


# What the type's own validators say.


class Item(BaseModel):
    name: str
    price: float

    @field_validator("price")
    @classmethod
    def _positive(cls, price: float) -> float:
        if price <= 0:
            raise ValueError("a price is above zero")
        return price


class Order(BaseModel):
    items: list[Item]
    ship_to: Wheel | Item | None = None


async def test_what_the_type_refuses_is_named_with_its_place() -> None:
    text = '{"items": [{"name": "a", "price": 1}, {"name": "b", "price": -2}]}'
    with pytest.raises(BackendError, match=r"/items/1/price: .*a price is above zero"):
        await answer(Order, text)


async def test_the_first_few_places_are_named_without_the_names_of_union_members() -> None:
    items = ", ".join('{"name": "a", "price": 0}' for _ in range(5))
    text = f'{{"items": [{items}], "ship_to": {{"name": "x", "price": 0}}}}'
    with pytest.raises(BackendError) as caught:
        await answer(Order, text)
    message = str(caught.value)
    assert message.count("above zero") == 3
    assert "; and " in message
    assert "/items/0/price: " in message
    assert "\n" not in message
    with pytest.raises(BackendError, match="/ship_to/price: "):
        await answer(Order, '{"items": [], "ship_to": {"name": "x", "price": 0}}')


async def test_a_templates_field_is_named_before_the_place_in_it() -> None:
    made = template("Order: {order}.", order=Order)
    with pytest.raises(BackendError, match="not the type: /order/items/0/price: "):
        await answer(made, 'Order: {"items": [{"name": "a", "price": -1}]}.')


# Answers that were cut.


@pytest.mark.parametrize(
    ("spec", "text", "kept", "lacks"),
    [
        (Order, '{"items": [{"name": "a', '{"items": [{"name": "a', '"}]}, /items/0/price'),
        (Order, '{"items": [', '{"items": [', "]}"),
        (Order, "{", "{", "}, /items"),
        (Order, '{"items": [1}', '{"items": [1', "]}"),
        (Order, "Sure! Here", "", ""),
        ({"type": "integer"}, "12", "12", ""),
        (["yes", "yes, but"], "yes, b", "yes, b", ""),
        (["yes", "no"], "yet", "ye", ""),
        (re.compile("[a-z]{3}-[0-9]{3}"), "abc-1x", "abc-1", ""),
        (grammar('start: "a" "b"+ "c"'), "abbx", "abb", ""),
        (template("A: {a}\nB: {b:int}\nC: {c}."), "A: x\nB: 1", "A: x\nB: 1", "b, c"),
        (template("A: {a}\nB: {b:int}"), "A: x\nC", "A: x\n", "b"),
    ],
)
async def test_fault_32_a_cut_answer_keeps_what_is_good_and_says_what_it_lacks(
    spec: Any, text: str, kept: str, lacks: str
) -> None:
    with pytest.raises(Truncated, match="max_tokens") as caught:
        await answer(spec, text, "length")
    assert caught.value.text == kept
    assert f"(it lacks {lacks})" in str(caught.value) if lacks else "lacks" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "text", "parsed"),
    [
        (Wheel, '{"percent": 6}', Wheel(percent=6)),
        (["yes", "no"], "no", "no"),
        (template("A: {a}"), "A: cut off in the mid", {"a": "cut off in the mid"}),
    ],
)
async def test_a_whole_value_at_the_limit_is_read_and_said_to_be_ended_early(
    spec: Any, text: str, parsed: Any
) -> None:
    response = await answer(spec, text, "length")
    assert response.parsed == parsed
    assert "brought to an end early by max_tokens" in row(response).decision


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"type": "integer"}, "12"),  # of 123?
        (["New", "New York"], "New"),
        (re.compile("[0-9]+"), "12"),
        (template("A: {a:int}"), "A: 12"),
        (grammar('start: "a"+'), "aa"),
    ],
)
async def test_what_may_be_half_a_value_is_one_only_if_the_engine_closed_it(
    spec: Any, text: str
) -> None:
    with pytest.raises(Truncated):
        await answer(spec, text, "length")
    response = await answer(spec, text, "length", Enforcement("full", (), "llguidance", True))
    assert response.text == text
    assert row(response).details["was_closed"] is True


# What the report says.


@pytest.mark.parametrize(
    ("enforced", "says", "level"),
    [
        (None, "not enforced by the engine", "none"),
        (Enforcement("full", (), "llguidance"), "enforced while decoding by llguidance", "full"),
        (
            Enforcement("partial", ("/not", "/items/contains"), "llguidance"),
            "enforced in part by llguidance, the rest validated (/not, /items/contains)",
            "partial",
        ),
    ],
)
async def test_the_report_says_how_far_the_engine_enforced_it(
    enforced: Enforcement | None, says: str, level: str
) -> None:
    found = row(await answer(Wheel, '{"percent": 6}', enforced=enforced))
    assert says in found.decision
    assert found.details["enforced"] == level
    assert found.details["residual"] == list(enforced.residual if enforced else ())


async def test_a_model_that_calls_a_tool_is_passed_on() -> None:
    async def engine(request: Request) -> AsyncGenerator[Event, None]:
        yield ToolCallDelta(0, "1", "look", "{}")
        calls = (ToolCall("1", "look", "{}"),)
        yield Finished(Response("", finish_reason="tool_calls", tool_calls=calls))

    stage = Constrain(constraint(Wheel))
    events = [event async for event in stage(Request.of("x"), engine)]
    assert isinstance(events[0], ToolCallDelta)
    assert isinstance(events[-1], Finished)
    assert events[-1].response.parsed is None
    assert "called a tool" in row(events[-1].response).decision


# A second try.


def scripted(*texts: str, seen: list[Request], enforced: Enforcement | None = None) -> Handler:
    """Return an engine that answers with these texts in turn, in two pieces each."""

    async def engine(request: Request) -> AsyncGenerator[Event, None]:
        text = texts[min(len(seen), len(texts) - 1)]
        seen.append(request)
        yield TextDelta(text[:3])
        yield TextDelta(text[3:])
        yield Finished(Response(text, usage=Usage(10, 5), report=request.report, enforced=enforced))

    return engine


async def events_of(stage: Constrain, request: Request, engine: Handler) -> list[Event]:
    return [event async for event in stage(request, engine)]


ASK = Request.of(
    "How much?", constraint=constraint(Wheel), documents=(Document("It is 63."),), deadline=60.0
)


async def test_a_broken_answer_is_asked_for_again_with_what_was_wrong() -> None:
    seen: list[Request] = []
    engine = scripted('{"percent": 630}', '{"percent": 63}', seen=seen)
    events = await events_of(Constrain(), ASK, engine)
    assert [e.text for e in events if isinstance(e, TextDelta)] == ['{"p', 'ercent": 63}']
    assert isinstance(events[-1], Finished)
    response = events[-1].response
    assert response.parsed == Wheel(percent=63)
    assert response.usage == Usage(20, 10, num_calls=2)
    assert "answer 2, because: /percent: 630" in row(response).decision
    first, said, complaint = seen[1].messages
    assert "It is 63." in first.text  # the documents stay with the question
    assert (said.role, said.text) == ("assistant", '{"percent": 630}')
    assert "630 is greater than the maximum of 100" in complaint.text
    assert seen[1].question == "How much?"
    assert seen[1].deadline is not None
    assert seen[1].deadline <= 60


async def test_what_the_type_refuses_is_asked_for_again_even_if_enforced() -> None:
    seen: list[Request] = []
    text = '{"items": [{"name": "a", "price": %d}]}'
    engine = scripted(text % -1, text % 1, seen=seen, enforced=Enforcement("full"))
    request = Request.of("x", constraint=constraint(Order))
    events = await events_of(Constrain(), request, engine)
    assert isinstance(events[-1], Finished)
    assert "/items/0/price: " in seen[1].messages[-1].text


@pytest.mark.parametrize(
    ("stage", "enforced", "deadline", "num_tries"),
    [
        (Constrain(), None, None, 2),
        (Constrain(retries=3), None, None, 4),
        (Constrain(retries=0), None, None, 1),
        (Constrain(), Enforcement("full"), None, 1),
        (Constrain(), Enforcement("partial"), None, 2),
        (Constrain(), None, 1e-9, 1),
    ],
)
async def test_tries_end(
    stage: Constrain, enforced: Enforcement | None, deadline: float | None, num_tries: int
) -> None:
    seen: list[Request] = []
    request = Request.of("x", constraint=constraint(Wheel), deadline=deadline)
    with pytest.raises(BackendError, match="constraint"):
        await events_of(stage, request, scripted("no", seen=seen, enforced=enforced))
    assert len(seen) == num_tries


async def test_what_a_content_filter_ended_is_said_and_not_asked_for_again() -> None:
    seen: list[Request] = []

    async def engine(request: Request) -> AsyncGenerator[Event, None]:
        seen.append(request)
        yield Finished(Response('{"perc', finish_reason="content_filter"))

    with pytest.raises(BackendError, match="content filter ended"):
        await events_of(Constrain(), ASK, engine)
    assert len(seen) == 1


async def test_a_cut_answer_is_not_asked_for_again() -> None:
    seen: list[Request] = []

    async def engine(request: Request) -> AsyncGenerator[Event, None]:
        seen.append(request)
        yield Finished(Response('{"perc', finish_reason="length"))

    with pytest.raises(Truncated):
        await events_of(Constrain(), ASK, engine)
    assert len(seen) == 1


async def test_without_retries_the_text_streams_and_with_them_it_is_held() -> None:
    for retries, num_early in ((0, 2), (1, 0)):
        passed: list[Event] = []
        seen: list[Request] = []
        stream = Constrain(retries=retries)(ASK, scripted("nonsense", seen=seen))
        with pytest.raises(BackendError):
            await collect(stream, passed)
        assert len(passed) == num_early


async def collect(stream: AsyncGenerator[Event, None], into: list[Event]) -> None:
    async for event in stream:
        into.append(event)


@pytest.mark.parametrize("retries", [-1, 1.5, True, "1"])
def test_retries_are_a_whole_number(retries: Any) -> None:
    with pytest.raises(InvalidRequest, match="retries"):
        Constrain(retries=retries)
