"""Each engine gets a constraint in its own field, after a sentinel has shown that it holds."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from engine.dialects import DEAF, ENGINES, PROSE
from engine.wire import Server, fails

from headrace.backends import OpenAIBackend
from headrace.middleware.errors import InvalidRequest
from headrace.middleware.types import Constraint, Enforcement, Request, Sampling

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}
NUMBER = Constraint("json_schema", json.dumps(SCHEMA))
CHOICE = Constraint("choice", ("New", "New York"))
CODE = Constraint("regex", "[A-C]-[0-9]{2}")
NESTED = {"name": "answer", "strict": True, "schema": SCHEMA}
RESPONSE_FORMAT = {"response_format": {"type": "json_schema", "json_schema": NESTED}}


def wrapped(**inner: Any) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {"answer": {"type": "string", **inner}},
        "required": ["answer"],
        "additionalProperties": False,
    }
    return {"response_format": {"type": "json_schema", "json_schema": {**NESTED, "schema": schema}}}


FIELDS: dict[str, dict[str, dict[str, Any]]] = {
    "vllm": {
        "json_schema": {"structured_outputs": {"json": SCHEMA}},
        "choice": {"structured_outputs": {"choice": ["New", "New York"]}},
        "regex": {"structured_outputs": {"regex": "[A-C]-[0-9]{2}"}},
    },
    "vllm-guided": {
        "json_schema": {"guided_json": SCHEMA},
        "choice": {"guided_choice": ["New", "New York"]},
        "regex": {"guided_regex": "[A-C]-[0-9]{2}"},
    },
    "sglang": {
        "json_schema": RESPONSE_FORMAT,
        "choice": {"regex": "(New York|New)"},
        "regex": {"regex": "[A-C]-[0-9]{2}"},
    },
    "tgi": {
        "json_schema": {"response_format": {"type": "json", "value": SCHEMA}},
        "choice": {"response_format": {"type": "regex", "value": "(New York|New)"}},
        "regex": {"response_format": {"type": "regex", "value": "[A-C]-[0-9]{2}"}},
    },
    "llama.cpp": {
        "json_schema": RESPONSE_FORMAT,
        "choice": {"grammar": 'root ::= "New" | "New York"'},
        "regex": {"grammar": r'root ::= [A-C] "\u002D" [0-9]{2}'},
    },
    "ollama": {
        "json_schema": RESPONSE_FORMAT,
        "choice": wrapped(enum=["New", "New York"]),
        "regex": wrapped(pattern="^(?:[A-C]-[0-9]{2})$"),
    },
    "openai": {
        "json_schema": RESPONSE_FORMAT,
        "choice": wrapped(enum=["New", "New York"]),
        "regex": wrapped(pattern="^(?:[A-C]-[0-9]{2})$"),
    },
}
SENT = frozenset({"model", "messages", "stream", "stream_options", "max_tokens", "temperature"})


def constraint_fields(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in SENT}


@pytest.mark.parametrize("engine", FIELDS)
@pytest.mark.parametrize(
    ("constraint", "text", "raw"),
    [
        (NUMBER, '{"n": 5}', '{"n": 5}'),
        (CHOICE, "New York", '{"answer": "New York"}'),
        (CODE, "B-42", '{"answer": "B-42"}'),
    ],
    ids=["json_schema", "choice", "regex"],
)
async def test_a_constraint_travels_in_the_engines_own_field(
    engine: str, constraint: Constraint, text: str, raw: str, hold: Any, server: Server
) -> None:
    response = await hold(engine, constraint, text, raw)
    assert response.text == text
    sentinel, body = server.bodies
    assert constraint_fields(body) == FIELDS[engine][constraint.kind]
    assert constraint_fields(sentinel).keys() == constraint_fields(body).keys()
    assert sentinel["max_tokens"] <= 64
    assert [m["content"] for m in body["messages"]] == ["Go"]  # nothing is said in words
    is_regex_in_a_schema = constraint is CODE and engine in ("ollama", "openai")
    assert response.enforced.level == ("partial" if is_regex_in_a_schema else "full")
    assert response.enforced.by.startswith(f"{engine} ")


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_server_says_what_it_is(
    engine: str, hold: Any, server: Server, make: Any, ask: Any
) -> None:
    ENGINES[engine].on(server, "New")
    backend = make(server.url)
    assert (await backend.capabilities()).engine == ""
    assert server.asked == []  # not before somebody wants a constraint
    await ask(backend, [Request.of("Go", constraint=CHOICE)] * 3)
    capabilities = await backend.capabilities()
    said: dict[str, Any] = next(iter(ENGINES[engine].pages.values()), {})
    version = said.get("version") or said.get("build_info", "")
    assert capabilities.engine == f"{engine} {version}".rstrip()
    assert capabilities.has_prefix_cache is (engine in ("vllm", "sglang"))
    assert len(server.asked) == {"tgi": 3, "openai": 0}.get(engine, 1)  # once for all
    assert len(server.bodies) == 1 + 3  # one sentinel for all
    known = {"llama.cpp": 2048, "tgi": 4096}
    assert capabilities.context_length == known.get(engine)


async def test_a_server_that_says_nothing_is_asked_as_openai(hold: Any, server: Server) -> None:
    response = await hold(DEAF, NUMBER)
    pages = ["/props", "/api/version", "/info", "/server_info", "/get_server_info", "/version"]
    assert server.asked == pages
    assert constraint_fields(server.bodies[0]).keys() == {"response_format"}
    assert response.text == PROSE


async def test_an_old_vllm_that_hides_its_version_is_found_out(hold: Any, server: Server) -> None:
    hidden = replace(ENGINES["vllm-guided"], pages={})
    response = await hold(hidden, CODE, "A-11")
    assert [list(constraint_fields(body)) for body in server.bodies] == [
        ["structured_outputs"],
        ["guided_regex"],
        ["guided_regex"],
    ]
    assert response.enforced == Enforcement("full", (), "vllm guided_regex")


async def test_a_model_that_takes_no_temperature_is_no_reason(hold: Any, server: Server) -> None:
    await hold("openai", NUMBER, '{"n": 5}')
    assert "temperature" not in server.bodies[0]


async def test_a_sentinel_that_is_refused_for_its_own_sake_proves_nothing(
    server: Server, make: Any, ask: Any
) -> None:
    ENGINES["vllm"].on(server, "A-11")
    real, no = server.script, fails(400, "max_tokens must be at least 64")
    assert real is not None
    server.script = lambda body: (no if body.get("max_tokens") == 32 else real)(body)
    [answer] = await ask(make(server.url), [Request.of("Go", constraint=CODE)])
    by = "vllm structured_outputs.regex (unverified)"
    assert answer.finished.enforced == Enforcement("partial", ("/",), by)


async def test_the_user_may_name_the_dialect(hold: Any, server: Server) -> None:
    response = await hold("vllm", CODE, "A-11", constraints="vllm-guided")
    assert server.asked == []
    assert "guided_regex" in server.bodies[0]  # the sentinel: this server ignores it
    assert response.enforced == Enforcement("none", by="words")


async def test_without_probing_nothing_but_the_request_is_sent(hold: Any, server: Server) -> None:
    response = await hold("vllm", CODE, "A-11", constraints="vllm", probe=False)
    assert server.asked == []
    assert len(server.bodies) == 1
    by = "vllm structured_outputs.regex (unverified)"
    assert response.enforced == Enforcement("partial", ("/",), by)


def test_a_dialect_that_there_is_not_is_refused_with_the_choice() -> None:
    with pytest.raises(InvalidRequest, match=r"'vlm'.*vllm, vllm-guided, sglang"):
        OpenAIBackend("http://localhost:8000", constraints="vlm")


@pytest.mark.parametrize("engine", ["tgi", "llama.cpp"])
async def test_tools_and_grammars_do_not_go_together_there(
    engine: str, hold: Any, server: Server
) -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    response = await hold(engine, CODE, sampling=Sampling(extra={"tools": tools}))
    assert len(server.bodies) == 1
    assert response.enforced == Enforcement("none", by="words")


async def test_a_grammar_is_native_where_it_is_read(hold: Any, server: Server) -> None:
    grammar = Constraint("grammar", 'start: "abc"')
    response = await hold("vllm", grammar, "abc")
    assert server.bodies[1]["structured_outputs"] == {"grammar": 'start: "abc"'}
    assert (response.text, response.enforced.level) == ("abc", "partial")


async def test_a_grammar_is_written_in_the_language_of_the_server(
    hold: Any, server: Server
) -> None:
    response = await hold("llama.cpp", Constraint("grammar", 'start: "abc"'), "abc")
    assert server.bodies[-1]["grammar"] == 'root ::= "abc"'
    assert response.enforced == Enforcement("partial", ("/",), by="llama.cpp grammar")


async def test_a_grammar_is_words_where_the_build_cannot_be_told(hold: Any, server: Server) -> None:
    response = await hold("llama.cpp", Constraint("grammar", "start: /abc/i"), "aBc")
    sentinel, body = server.bodies
    assert sentinel["grammar"].startswith("%llguidance")
    assert "start: /abc/i" in body["messages"][0]["content"]
    assert response.enforced == Enforcement("none", by="words")


async def test_a_template_is_a_pattern_where_its_fields_allow(hold: Any, server: Server) -> None:
    parts = ["Name: ", {"name": "name", "kind": "text", "until": "\n"}, "\nAge: "]
    parts += [{"name": "age", "kind": "regex", "spec": "[0-9]+"}]
    template = Constraint("template", json.dumps(parts))
    response = await hold("sglang", template, "Name: Ann\nAge: 7")
    assert server.bodies[1]["regex"] == r"Name: [^\n]*\nAge: (?:[0-9]+)"
    assert response.enforced.level == "full"
