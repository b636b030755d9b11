"""Every error of the proxy's own is said in HTTP's words: fields, JSON, headers, no Python."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest
from engine.proxied import LEXICAL, Start, chat, history
from engine.upstream import DONE, USAGE, Upstream, event, posts, says, streams

PATH = "/chat/completions"
CHECKED = '[models."*"]\nconstrain = true\n'
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
PYTHON = re.compile(
    r"\b(True|False|None|NoneType|dict|mapping|tuple|str|int|float|instances?|unhashable|re\.\w+)\b"
    r"|\.text\b|api_key|max_queue|headrace\.\w|\w=\)|\w+Error\b"
)


def asks(schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "mill", "schema": schema}}


def said(answer: httpx.Response, status: int) -> str:
    """Return the message of an error, which says nothing of Python."""
    assert answer.status_code == status
    message: str = answer.json()["error"]["message"]
    assert not PYTHON.search(message)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (None, ""),
        ([], "headrace takes an object of options, got []"),
        (True, "headrace takes an object of options, got true"),
        ({"rate": None, "target_tokens": True}, "target_tokens is a whole number from 0 on"),
        ({"rate": [1]}, "rate is a number from 0 to 1, got [1]"),
        ({"rates": {"tool": [1]}}, "rates.tool is a number from 0 to 1, got [1]"),
        ({"rates": {"tool": {"0": None}}}, "rates.tool.0 is a number from 0 to 1, got null"),
        ({"off": None}, "off is true or false, got null"),
        ({"last_user": True}, "last_user is a text, got true"),
        ({"documents": [True]}, "a document is a text or an object, got true"),
        ({"documents": [{"title": None}]}, 'a document needs a text, got {"title": null}'),
        ({"rate": 0}, "rate=0 leaves nothing of a message, and an empty one cannot be sent"),
        ({"plan": None}, "plan is one of"),
    ],
)
def test_wrong_options_of_a_request(
    options: Any, message: str, server: Upstream, start: Start, http: httpx.Client
) -> None:
    answer = http.post(start(LEXICAL).url + PATH, json=history(headrace=options))
    if options is None:  # no options
        assert answer.status_code == 200
        return
    assert message in said(answer, 400)
    assert not server.seen


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"temperature": "hot"}, "temperature is a number, got 'hot'"),
        ({"temperature": True}, "temperature is a number, got true"),
        ({"temperature": -1}, "temperature must be 0 or more, got -1"),
        ({"top_p": [1]}, "top_p is a number, got [1]"),
        ({"max_tokens": "9"}, "max_tokens is a whole number from 1 on, got '9'"),
        ({"max_completion_tokens": 0}, "max_completion_tokens is a whole number from 1 on, got 0"),
        ({"stop": 3}, "stop is a text or a list of texts, got 3"),
        ({"stop": [None]}, "stop is a text or a list of texts, got [null]"),
        ({"seed": "x"}, "seed is a whole number, got 'x'"),
        ({"response_format": asks("x")}, "schema is an object, got 'x'"),
        ({"response_format": asks([True])}, "schema is an object, got [true]"),
        ({"response_format": asks({"type": "mill"})}, "'mill'"),
        ({"response_format": asks({"$ref": "#/x"})}, "leads nowhere in the schema"),
    ],
)
def test_wrong_fields_of_a_chat_that_the_pipeline_answers(
    fields: dict[str, Any], message: str, server: Upstream, start: Start, http: httpx.Client
) -> None:
    asked = chat(**{"response_format": asks(SCHEMA), **fields})
    assert message in said(http.post(start(CHECKED).url + PATH, json=asked), 400)
    assert not server.seen


def test_an_answer_that_was_cut(server: Upstream, start: Start, http: httpx.Client) -> None:
    server.script = posts(streams(event({"content": '{"n": '}, "length"), event(usage=USAGE), DONE))
    answer = http.post(start(CHECKED).url + PATH, json=chat(response_format=asks(SCHEMA)))
    assert answer.json()["error"]["code"] == "truncated"
    assert said(answer, 502).startswith("the output was cut after 2 tokens, before the json_schema")


def test_a_key_that_the_server_refuses(server: Upstream, start: Start, http: httpx.Client) -> None:
    server.script = posts(says({"error": {"message": "no"}}, 401))
    answer = http.post(start(CHECKED).url + PATH, json=chat(response_format=asks(SCHEMA)))
    assert "refused the API key" in said(answer, 502)


@pytest.mark.parametrize("is_stream", [False, True])
def test_the_decision_says_who_answered(
    is_stream: bool, server: Upstream, start: Start, http: httpx.Client
) -> None:
    server.script = posts(streams(event({"content": '{"n": 7}'}, "stop"), event(usage=USAGE), DONE))
    proxy = start(f"{CHECKED}compressor = 'lexical'\n")
    asked: Any = {"response_format": asks(SCHEMA), "stream": is_stream}
    for body, decision in (
        (chat(**asked), "answered"),
        (history(headrace={"rate": 1}, **asked), "answered"),
        (history(headrace={"rate": 0.3}, **asked), "changed"),
        (chat(stream=is_stream), "off"),
    ):
        before = proxy.metric("decisions_total", policy="*", decision=decision)
        answer = http.post(proxy.url + PATH, json=body)
        assert (answer.status_code, answer.headers["x-headrace-decision"]) == (200, decision)
        assert ("x-headrace-tokens-before" in answer.headers) is ("headrace" in body)
        proxy.counts(before + 1, "decisions_total", policy="*", decision=decision)
