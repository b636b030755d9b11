"""Objects while they are written, through a pipeline."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

import pytest
from pydantic import BaseModel, Field

import headrace
from headrace import (
    BackendError,
    Constrain,
    Event,
    Finished,
    Handler,
    InvalidRequest,
    PartialObject,
    Request,
    Response,
    TextDelta,
    Truncated,
    constraint,
    partial_objects,
    template,
)
from headrace.backends import TransformersBackend
from headrace.middleware.types import FinishReason


class Item(BaseModel):
    name: str
    price: int = Field(gt=0)


class Order(BaseModel):
    number: int
    items: list[Item]
    note: str


TEXT = (
    '{"number": 123, "items": [{"name": "cup", "price": 4}, {"name": "pot", "price": 59}], '
    '"note": "quick"}'
)


def engine(text: str, size: int = 1, reason: FinishReason = "stop") -> Handler:
    async def answer(request: Request) -> AsyncGenerator[Event, None]:
        for at in range(0, len(text), size):
            yield TextDelta(text[at : at + size])
        yield Finished(Response(text, finish_reason=reason, report=request.report))

    return answer


async def values(
    spec: Any, text: str, *, grow: bool = False, reason: FinishReason = "stop"
) -> list[PartialObject]:
    made = constraint(spec)
    events = Constrain(retries=0)(Request.of("x", constraint=made), engine(text, reason=reason))
    async with aclosing(partial_objects(events, made, grow=grow)) as objects:
        return [one async for one in objects]


async def test_fields_come_as_they_are_finished_and_the_last_is_the_validated_value() -> None:
    found = await values(Order, TEXT)
    cup, pot = {"name": "cup", "price": 4}, {"name": "pot", "price": 59}
    order = {"number": 123}
    assert [one.value for one in found] == [
        {},
        order,
        {**order, "items": []},
        {**order, "items": [cup]},
        {**order, "items": [cup, pot]},
        {**order, "items": [cup, pot], "note": "quick"},
        Order.model_validate_json(TEXT),
    ]
    assert [one.is_final for one in found] == [False] * 6 + [True]
    assert found[-1].response is not None
    assert found[-1].response.text == TEXT


async def test_with_grow_texts_and_items_are_there_as_far_as_they_go() -> None:
    found = [one.value for one in (await values(Order, TEXT, grow=True))[:-1]]
    notes = [one["note"] for one in found if "note" in one]
    assert notes == ["", "q", "qu", "qui", "quic", "quick"]
    assert {"number": 123, "items": [{"name": "c"}]} in found
    assert not any(one.get("number") in (1, 12) for one in found)


async def test_the_fields_of_a_template_come_one_by_one() -> None:
    made = template("Name: {name}\nAge: {age:int}\nItem: {item}.", item=Item)
    text = 'Name: Ann\nAge: 42\nItem: {"name": "cup", "price": 4}.'
    found = await values(made, text)
    assert [one.value for one in found] == [
        {"name": "Ann"},
        {"name": "Ann", "age": 42},
        {"name": "Ann", "age": 42, "item": {"name": "cup", "price": 4}},
        {"name": "Ann", "age": 42, "item": Item(name="cup", price=4)},
    ]


@pytest.mark.parametrize("spec", [["yes", "no"], re.compile("[a-z]+")])
async def test_a_choice_or_a_pattern_is_certain_at_its_end(spec: Any) -> None:
    assert [one.value for one in await values(spec, "yes")] == ["yes"]
    growing = await values(spec, "yes", grow=True)
    assert [one.value for one in growing] == ["y", "ye", "yes", "yes"]


@pytest.mark.parametrize(
    ("text", "reason", "error"),
    [
        (TEXT.replace("59", "0"), "stop", BackendError),
        (TEXT[:50], "length", Truncated),
        ("Sure! " + TEXT, "stop", BackendError),
    ],
)
async def test_an_answer_that_turns_out_invalid_ends_in_the_error(
    text: str, reason: FinishReason, error: type[Exception]
) -> None:
    seen: list[Any] = []
    made = constraint(Order)
    events = Constrain(retries=0)(Request.of("x", constraint=made), engine(text, reason=reason))
    with pytest.raises(error):
        await collect(partial_objects(events, made), seen)
    assert not any(one.is_final for one in seen)
    assert bool(seen) != text.startswith("Sure")


async def collect(objects: AsyncGenerator[PartialObject, None], into: list[Any]) -> None:
    async for one in objects:
        into.append(one)


async def test_a_reader_that_leaves_early_stops_the_engine() -> None:
    left: list[bool] = []

    async def slow(request: Request) -> AsyncGenerator[Event, None]:
        try:
            yield TextDelta('{"number": 1, "items": [')
            yield TextDelta("never read")
        finally:
            left.append(True)

    made = constraint(Order)
    events = Constrain(retries=0)(Request.of("x", constraint=made), slow)
    async with aclosing(partial_objects(events, made)) as objects:
        async for _ in objects:
            break
    assert left == [True]


@pytest.mark.model
def test_stream_objects_with_a_real_model() -> None:
    class Fact(BaseModel):
        legs: int = Field(ge=0, le=999)
        furry: bool

    with_model = TransformersBackend()
    found = [*headrace.stream_objects("Describe a cat.", Fact, backend=with_model, max_tokens=60)]
    assert isinstance(found[-1].value, Fact)
    assert found[-1].is_final
    keys = [tuple(one.value) for one in found[:-1]]
    assert keys == [(), ("legs",), ("legs", "furry")]
    assert found[-2].value == found[-1].value.model_dump()


def test_stream_objects_needs_a_constraint() -> None:
    with pytest.raises(InvalidRequest, match="needs a constraint"):
        headrace.stream_objects("x", None)


@pytest.mark.parametrize("pieces", [[], ["{"]])
async def test_an_engine_that_ends_without_finished_ends_the_objects(pieces: Sequence[str]) -> None:
    async def broken(request: Request) -> AsyncGenerator[Event, None]:
        for piece in pieces:
            yield TextDelta(piece)

    made = constraint(Order)
    events = Constrain(retries=0)(Request.of("x", constraint=made), broken)
    assert [one.value async for one in partial_objects(events, made)] == [{} for _ in pieces]
