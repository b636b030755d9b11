"""What happens when a field is ignored, refused, or fails without a word."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from engine.dialects import DEAF, ENGINES, FAILS_OPEN, PROSE, SENTINELS, Imitation, says
from engine.wire import DONE, Server, chunk, fails, sends
from starlette.responses import Response

from headrace.backends import Job
from headrace.middleware.errors import BackendError, InvalidRequest, Overloaded, Truncated
from headrace.middleware.types import Constraint, Enforcement, Request, Sampling

OBJECT: dict[str, Any] = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}
NUMBER = Constraint("json_schema", json.dumps(OBJECT))
CHOICE = Constraint("choice", ("yes", "no"))
CODE = Constraint("regex", "[A-C]-[0-9]{2}")
JSON_MODE = {"type": "json_object"}


def with_property(**extra: Any) -> Constraint:
    properties = {**OBJECT["properties"], "x": extra}
    return Constraint("json_schema", json.dumps({**OBJECT, "properties": properties}))


@pytest.mark.parametrize(
    ("constraint", "said", "text"),
    [
        (NUMBER, 'Sure!\n```json\n{"n": 5,}\n```\nAnything else?', '{"n": 5}'),
        (CHOICE, "I would say **no**.", "no"),
        (CODE, "The code is:\n\n`B-42`\n", "B-42"),
    ],
    ids=["json_schema", "choice", "regex"],
)
async def test_fault_38_a_field_that_is_ignored_is_not_trusted(
    constraint: Constraint, said: str, text: str, hold: Any, server: Server
) -> None:
    DEAF.on(server, prose=said)
    response = await hold(None, constraint)
    assert response.text == text
    assert response.enforced.level == "none"
    assert response.enforced.by.endswith("words")
    words = server.bodies[-1]["messages"][0]["content"]
    assert words.startswith("Go\n\nAnswer with ")
    assert all(part in words for part in constraint.spec if isinstance(constraint.spec, tuple))
    num_before = len(server.bodies)
    await hold(None, constraint)
    assert len(server.bodies) == num_before + 1  # the sentinel was asked once


async def test_json_mode_comes_before_words_alone(hold: Any, server: Server) -> None:
    DEAF.on(server, prose='{"n": 1}')
    response = await hold(None, NUMBER)
    assert server.bodies[-1]["response_format"] == JSON_MODE
    assert response.enforced == Enforcement("none", by="json_object and words")
    listed = Constraint("json_schema", '{"type": "array", "items": {"type": "integer"}}')
    server.script = says("[1, 2]")
    response = await hold(None, listed)  # JSON mode can only say an object
    assert "response_format" not in server.bodies[-1]
    assert (response.text, response.enforced.by) == ("[1, 2]", "words")


@pytest.mark.parametrize(
    ("engine", "schema", "said_in_words"),
    [
        ("vllm", {"type": "object", "propertyNames": {"maxLength": 3}}, 'propertyNames: {"max'),
        ("sglang", {"type": "array", "items": {}, "uniqueItems": True}, "uniqueItems: true"),
        ("llama.cpp", {"type": "string", "pattern": "b!"}, 'pattern: "b!"'),
        ("ollama", {"type": "object", "patternProperties": {"^a": {}}}, "patternProperties: {"),
    ],
    ids=["vllm", "sglang", "llama.cpp", "ollama"],
)
async def test_a_refused_schema_is_rewritten_and_the_refusal_remembered(
    engine: str, schema: dict[str, Any], said_in_words: str, hold: Any, server: Server
) -> None:
    constraint = with_property(**schema)
    for _ in range(2):
        response = await hold(engine, constraint, '{"n": 1}')
    assert len(server.bodies) == 4  # sentinel, refused, rewritten, and rewritten at once
    sent = json.dumps(server.bodies[-1])
    assert json.dumps(said_in_words)[1:-1] in json.dumps(json.loads(sent), ensure_ascii=False)
    assert response.text == '{"n": 1}'
    assert response.enforced.level == "partial"
    assert response.enforced.by.endswith(", rewritten")
    [left] = [one for one in response.enforced.residual if "/properties/x/" in one]
    assert left.rsplit("/", 1)[-1] in schema


async def test_fault_36_another_schema_model_or_kind_shares_no_refusal(
    hold: Any, server: Server, make: Any, ask: Any
) -> None:
    refused = with_property(type="array", items={}, uniqueItems=True)
    await hold("sglang", refused, '{"n": 1}', "A-11")
    response = await hold(None, NUMBER)
    assert response.enforced == Enforcement("full", (), "sglang response_format.json_schema")
    assert len(server.bodies) == 4  # no second sentinel: the same field, model and kind
    await hold(None, CODE)  # another kind has a field and a sentinel of its own
    assert "regex" in server.bodies[4]
    same = Constraint("json_schema", refused.spec, parse=json.loads)
    await hold(None, same)
    assert len(server.bodies) == 7  # the parser is no part of the key


async def test_openai_gets_its_own_dialect_and_nulls_are_taken_out_again(
    hold: Any, server: Server
) -> None:
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 2},
            "age": {"type": "integer"},
            "note": {"type": ["string", "null"]},
        },
        "required": ["name"],
    }
    raw = '{"name": "Ann", "age": null, "note": null}'
    response = await hold("openai", Constraint("json_schema", json.dumps(schema)), raw)
    assert len(server.bodies) == 3  # sentinel, as it is, rewritten
    sent = server.bodies[-1]["response_format"]["json_schema"]["schema"]
    assert sent == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "(minLength: 2)"},
            "age": {"type": ["integer", "null"]},
            "note": {"type": ["string", "null"]},
        },
        "required": ["name", "age", "note"],
        "additionalProperties": False,
    }
    assert json.loads(response.text) == {"name": "Ann", "note": None}
    by = "openai response_format.json_schema, rewritten"
    assert response.enforced == Enforcement("partial", ("/properties/name/minLength",), by)


async def test_what_strict_mode_cannot_say_goes_to_json_mode(hold: Any, server: Server) -> None:
    free = {"type": "object", "additionalProperties": {"type": "integer"}}
    response = await hold("openai", Constraint("json_schema", json.dumps(free)), '{"a": 1}')
    assert server.bodies[-1]["response_format"] == JSON_MODE
    assert response.enforced.by == "json_object and words"


async def test_fault_19051_a_server_that_fails_open_is_found_out(hold: Any, server: Server) -> None:
    constraint = with_property(type="string", pattern="^hello!$")
    FAILS_OPEN.on(server, '{"n": 1}')
    response = await hold(None, constraint)
    assert response.text == PROSE  # it was streamed as it came
    by = "llama.cpp response_format.json_schema, which did not hold"
    assert response.enforced == Enforcement("none", (), by)
    response = await hold(None, constraint)  # the retry goes one rung down
    assert response.text == '{"n": 1}'
    assert response.enforced.by == "llama.cpp response_format.json_schema, rewritten"


async def test_a_server_that_changes_its_mind_is_asked_again(hold: Any, server: Server) -> None:
    assert (await hold("vllm", NUMBER, '{"n": 1}')).enforced.level == "full"
    DEAF.on(server)
    assert (await hold(None, NUMBER)).enforced.level == "none"
    other = Constraint("json_schema", json.dumps({**OBJECT, "title": "another"}))
    num_before = len(server.bodies)
    response = await hold(None, other)
    sentinels = [b for b in server.bodies[num_before:] if "Say hello" in str(b["messages"])]
    assert len(sentinels) == 3  # every field that some vLLM has for JSON
    assert response.enforced.by == "json_object and words"


@pytest.mark.parametrize("engine", ["vllm", "openai"])
async def test_a_refusal_of_the_model_is_no_answer(engine: str, hold: Any, server: Server) -> None:
    await hold(engine, NUMBER, '{"n": 1}')
    server.script = sends(chunk({"refusal": "I can't help with {that}."}), chunk({}, "stop"), DONE)
    for constraint in (NUMBER, with_property(type="integer")):
        response = await hold(None, constraint)
        assert response.finish_reason == "content_filter"
        assert response.text == "I can't help with {that}."
        assert response.enforced.level == "none"
        assert response.enforced.by.endswith(", refused by the model")


@pytest.mark.parametrize("engine", ["vllm", "openai"])
async def test_a_cut_answer_is_never_repaired(engine: str, hold: Any, server: Server) -> None:
    optional = Constraint("json_schema", json.dumps({**OBJECT, "required": []}))
    await hold(engine, optional, '{"n": 1}')
    server.script = says('{"n": 12', "length")
    response = await hold(None, optional)
    assert (response.finish_reason, response.text) == ("length", '{"n": 12')
    DEAF.on(server, prose="x")
    response = await hold(None, CHOICE)  # words
    server.script = says("ye", "length")
    assert (await hold(None, CHOICE)).text == "ye"


async def test_a_tool_call_passes(hold: Any, server: Server) -> None:
    await hold("openai", CHOICE, '{"answer": "yes"}')
    call = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}
    server.script = sends(chunk({"tool_calls": [call]}), chunk({}, "tool_calls"), DONE)
    response = await hold(None, CHOICE)
    assert response.tool_calls[0].name == "f"
    assert response.text == ""


async def test_fault_28_white_space_without_end_is_cut(
    server: Server, make: Any, ask: Any, hold: Any
) -> None:
    await hold("vllm", NUMBER, '{"n": 1}')
    server.script = says('{\n\n  "n": 1  ' + " " * 2000 + "}", pieces=7)
    backend = make(server.url, constraints="vllm", probe=False)
    [answer] = await ask(backend, [Request.of("Go", constraint=NUMBER)])
    assert isinstance(answer.error, Truncated)
    assert answer.error.text == '{\n\n  "n": 1'
    assert "".join(answer.deltas) == answer.error.text
    server.script = says(json.dumps({"n": 1}, indent=90), pieces=7)
    [answer] = await ask(backend, [Request.of("Go", constraint=NUMBER)])
    assert json.loads(answer.finished.text) == {"n": 1}


async def test_native_answers_stream_and_read_ones_come_at_the_end(
    server: Server, make: Any, ask: Any
) -> None:
    for engine, texts, num_deltas in (
        ("vllm", ['{"n": 5}'], 3),
        ("openai", ['{"n": 5}'], 3),
        ("openai", ['{"n": 5, "m": null}'], 1),
    ):
        ENGINES[engine].on(server, *texts)
        schema = {**OBJECT, "properties": {"n": {"type": "integer"}}}
        if num_deltas == 1:
            schema["properties"]["m"] = {"type": "integer"}
        constraint = Constraint("json_schema", json.dumps(schema))
        [answer] = await ask(make(server.url), [Request.of("Go", constraint=constraint)])
        assert len(answer.deltas) == num_deltas
        assert json.loads(answer.finished.text) == {"n": 5}


async def test_a_bad_request_is_not_taken_for_a_bad_constraint(
    server: Server, make: Any, ask: Any, hold: Any
) -> None:
    await hold("vllm", NUMBER, '{"n": 1}')
    server.script = fails(400, "This model's maximum context length is 2048 tokens")
    backend = make(server.url, constraints="vllm", probe=False)
    num_before = len(server.bodies)
    [answer] = await ask(backend, [Request.of("Go", constraint=NUMBER)])
    assert isinstance(answer.error, InvalidRequest)
    assert len(server.bodies) == num_before + 1


async def test_where_everything_is_refused_the_last_error_is_told(
    server: Server, make: Any, ask: Any
) -> None:
    server.script = fails(400, "Invalid schema for response_format 'answer'")
    [answer] = await ask(make(server.url), [Request.of("Go", constraint=NUMBER)])
    assert isinstance(answer.error, InvalidRequest)
    assert "response_format" not in server.bodies[-1]


async def test_a_stream_that_is_cut_is_an_error_under_a_constraint_too(
    server: Server, make: Any, ask: Any, hold: Any
) -> None:
    await hold("vllm", NUMBER, '{"n": 1}')
    server.script = sends(chunk({"content": '{"n"'}))
    backend = make(server.url, constraints="vllm", probe=False)
    for constraint in (NUMBER, Constraint("grammar", 'start: "a"')):
        [answer] = await ask(backend, [Request.of("Go", constraint=constraint)])
        assert isinstance(answer.error, BackendError)
        assert answer.error.retryable


async def test_an_own_field_in_extra_gives_way_to_the_constraint(hold: Any, server: Server) -> None:
    extra = {"structured_outputs": {"choice": ["a"]}, "top_k": 3}
    response = await hold("vllm", NUMBER, '{"n": 1}', sampling=Sampling(extra=extra))
    assert response.text == '{"n": 1}'
    assert server.bodies[-1]["structured_outputs"] == {"json": OBJECT}
    assert server.bodies[-1]["top_k"] == 3


async def test_a_limited_server_is_not_taken_for_a_deaf_one(
    server: Server, make: Any, ask: Any
) -> None:
    engine = ENGINES["vllm"]
    engine.on(server, '{"n": 1}')
    real, server.script = server.script, fails(429, headers={"Retry-After": "3"})
    backend = make(server.url)
    [answer] = await ask(backend, [Request.of("Go", constraint=NUMBER)])
    assert isinstance(answer.error, Overloaded)
    assert answer.error.retry_after == 3
    server.script = real
    [answer] = await ask(backend, [Request.of("Go", constraint=NUMBER)])
    assert answer.finished.enforced.level == "full"


async def test_a_limited_page_is_not_taken_for_a_missing_one(
    server: Server, make: Any, ask: Any
) -> None:
    replace(ENGINES["vllm"], pages={}).on(server, '{"n": 1}')
    server.page_status = 429
    backend = make(server.url)
    [answer] = await ask(backend, [Request.of("Go", constraint=NUMBER)])
    assert isinstance(answer.error, Overloaded)
    assert server.bodies == []


async def test_a_model_that_thinks_first_is_used_but_not_called_sure(
    hold: Any, server: Server
) -> None:
    engine = ENGINES["vllm"]

    async def script(body: dict[str, Any]) -> Response:
        if body["messages"][0]["content"] == "Say hello.":
            return await sends(chunk({"reasoning_content": "Hm"}), chunk({}, "length"), DONE)(body)
        return await engine.script(['{"n": 1}', *SENTINELS], PROSE)(body)

    engine.on(server)
    server.script = script
    response = await hold(None, NUMBER)
    assert response.text == '{"n": 1}'
    by = "vllm structured_outputs.json (unverified)"
    assert response.enforced == Enforcement("partial", ("/",), by)


async def test_an_ignored_wrapper_still_finds_what_the_model_said(
    hold: Any, server: Server
) -> None:
    await hold("openai", CHOICE, '{"answer": "yes"}')
    server.script = says("My answer is: no.")
    response = await hold(None, CHOICE)
    assert response.text == "no"


async def test_the_first_of_many_asks_and_may_leave(server: Server, make: Any, ask: Any) -> None:
    engine = Imitation(ENGINES["vllm"].read, "vllm", ENGINES["vllm"].pages)
    engine.on(server, '{"n": 1}')
    real = server.script
    may_answer = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def slow(body: dict[str, Any]) -> Response:
        for _ in range(500):
            if may_answer.is_set():
                break
            await asyncio.sleep(0.01)
        assert real is not None
        return await real(body)

    server.script = slow
    backend = make(server.url)
    first = asyncio.ensure_future(
        anext(backend.generate([Job(Request.of("Go", constraint=NUMBER))]))
    )
    rest = asyncio.ensure_future(ask(backend, [Request.of("Go", constraint=NUMBER)] * 3))
    for _ in range(500):
        if server.bodies:
            break
        await asyncio.sleep(0.01)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    loop.call_soon(may_answer.set)
    answers = await rest
    assert [answer.finished.enforced.level for answer in answers] == ["full"] * 3
    assert len(server.bodies) == 1 + 3
