"""What was cut can be asked for, and nobody but the model hears of it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from headrace import (
    Compress,
    Event,
    Finished,
    InvalidRequest,
    Message,
    Request,
    Response,
    Sampling,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from headrace.middleware.retrieve import TOOL, Retrieve, marked, original
from headrace.middleware.types import ToolCall

PARTS = (Path(__file__).resolve().parents[2] / "LICENSE").read_text().split("\n\n")
LONG = " ".join(PARTS[4:9])
RECORD = {"id": 7, "note": PARTS[5], "tags": ["a", "b"]}
CHAT: list[dict[str, Any]] = [
    {"role": "user", "content": "Read part one, then the record, please."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": one, "type": "function", "function": {"name": "read", "arguments": "{}"}}
            for one in ("a", "b")
        ],
    },
    {"role": "tool", "tool_call_id": "a", "content": LONG},
    {"role": "tool", "tool_call_id": "b", "content": json.dumps(RECORD)},
    {"role": "user", "content": "What does it say of patents?"},
]
LOOK = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
STAGE = Retrieve(Compress(1, rates={"tool": 0.3}, compressor="lexical"))


def asks(call_id: str) -> ToolCall:
    return ToolCall(f"r-{call_id}", "retrieve", json.dumps({"call_id": call_id}))


class Engine:
    """Answers as told, and notes what it was sent: the choreography, no model."""

    def __init__(self, *answers: Response) -> None:
        self.answers = list(answers)
        self.sent: list[Request] = []

    async def __call__(self, request: Request) -> AsyncGenerator[Event, None]:
        self.sent.append(request)
        answer = self.answers.pop(0)
        if answer.text:
            yield TextDelta(answer.text)
        for at, call in enumerate(answer.tool_calls):
            yield ToolCallDelta(at, call.id, call.name, call.arguments)
        yield Finished(answer)


def answer(text: str = "", *calls: ToolCall) -> Response:
    reason: Any = "tool_calls" if calls else "stop"
    return Response(text, finish_reason=reason, usage=Usage(100, 5), tool_calls=calls)


async def run(
    engine: Engine, stage: Retrieve = STAGE, *tools: dict[str, Any]
) -> tuple[list[Event], Response]:
    request = Request.of(CHAT, sampling=Sampling(extra={"tools": list(tools)} if tools else {}))
    events = [event async for event in stage(request, engine)]
    last = events.pop()
    assert isinstance(last, Finished)
    return events, last.response


async def test_the_model_gets_the_whole_result_and_the_caller_only_the_answer() -> None:
    engine = Engine(answer("Wait. ", asks("a")), answer("Section 3 does."))
    events, response = await run(engine)
    assert events == [TextDelta("Wait. "), TextDelta("Section 3 does.")]
    assert (response.text, response.tool_calls, response.finish_reason) == (
        "Wait. Section 3 does.",
        (),
        "stop",
    )
    assert response.usage == Usage(200, 10, num_calls=2)
    first, second = engine.sent
    assert second.messages[: len(first.messages)] == first.messages
    assert [m.role for m in second.messages[5:]] == ["assistant", "tool"]
    assert second.messages[-1].text == LONG
    assert second.messages[-1].fields == {"tool_call_id": "r-a"}
    assert first.sampling.extra["tools"] == [TOOL]


async def test_shortened_results_name_their_id_and_json_stays_json() -> None:
    engine = Engine(answer("Yes."))
    await run(engine)
    _, _, text, record, _ = engine.sent[0].messages
    assert text.text.endswith('[shortened; retrieve(call_id="a") returns all of it]')
    assert len(text.text) < 0.6 * len(LONG)
    value = json.loads(record.text)
    assert value.pop("shortened") == "b"
    assert {**value, "note": ""} == {**RECORD, "note": ""}


async def test_calls_of_the_callers_own_tools_go_to_the_caller() -> None:
    look = ToolCall("l", "look", "{}")
    engine = Engine(answer("", asks("b")), answer("", asks("a"), look))
    events, response = await run(engine, STAGE, LOOK)
    assert events == [ToolCallDelta(0, "l", "look", "{}")]
    assert response.tool_calls == (look,)
    assert response.finish_reason == "tool_calls"
    assert engine.sent[0].sampling.extra["tools"] == [LOOK, TOOL]


async def test_asking_ends() -> None:
    engine = Engine(*(answer("", asks("a")) for _ in range(9)))
    _, response = await run(engine, Retrieve(STAGE.compress, max_rounds=2))
    assert len(engine.sent) == 3
    assert (response.tool_calls, response.finish_reason) == ((), "stop")
    row = response.report.stage("retrieve")
    assert row is not None
    assert row.details == {"asked": 2}


@pytest.mark.parametrize("arguments", ["not json", "[1]", '{"call_id": 3}', '{"call_id": "zz"}'])
async def test_a_wrong_id_is_answered_with_those_that_exist(arguments: str) -> None:
    engine = Engine(answer("", ToolCall("r", "retrieve", arguments)), answer("Well."))
    await run(engine)
    assert engine.sent[1].messages[-1].text.endswith("There are: a, b")


async def test_a_tool_of_that_name_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="retrieve"):
        await run(Engine(), STAGE, dict(TOOL))
    with pytest.raises(InvalidRequest, match="max_rounds"):
        Retrieve(STAGE.compress, max_rounds=0)


def test_a_marker_that_costs_more_than_was_saved_is_not_written() -> None:
    old = Message.from_dict({"role": "tool", "tool_call_id": "a", "content": "one two three four"})
    new = Message.from_dict({"role": "tool", "tool_call_id": "a", "content": "one two three"})
    assert marked(old, new, lambda text: len(text.split())) == old
    assert marked(old, old, len) == old


@pytest.mark.parametrize("value", ["9" * 5000, "1e400", "-0", '1, "n": 2'])
def test_an_object_with_any_numbers_stays_one_object_with_its_marker(value: str) -> None:
    old = Message.from_dict({**CHAT[2], "content": f'{{"n": {value}, "x": "{"a b " * 50}"}}'})
    new = Message.from_dict({**CHAT[2], "content": f'{{"n": {value}, "x": "a"}}'})
    assert marked(old, new, len).text == f'{{"n": {value}, "x": "a", "shortened": "a"}}'


def test_json_that_is_too_deep_to_be_read_gets_no_marker() -> None:
    deep = '{"a":' * 100_000 + "1" + "}" * 100_000
    old = Message.from_dict({**CHAT[2], "content": deep + " " * 99})
    new = Message.from_dict({**CHAT[2], "content": deep})
    assert marked(old, new, len) == new


def test_json_lines_and_lists_get_no_marker() -> None:
    row = json.dumps(RECORD)
    for text in (f"{row}\n{row}", f"[{row}]"):
        old = Message.from_dict({"role": "tool", "tool_call_id": "a", "content": text + " " * 99})
        new = Message.from_dict({"role": "tool", "tool_call_id": "a", "content": text})
        assert marked(old, new, len) == new


def test_an_id_that_was_used_twice_gives_both_results() -> None:
    chat = [
        Message.from_dict({"role": "tool", "tool_call_id": "a", "content": text})
        for text in ("one", "two")
    ]
    assert original(chat, "a") == "one\n\ntwo"
