"""Answers that are checked against a schema, and answers that are nobody else's."""

from __future__ import annotations

import json
import time
from typing import Any

import httpx
import pytest
from engine.proxied import Start, asking, chat, until
from engine.upstream import (
    DONE,
    HELLO,
    USAGE,
    Upstream,
    completion,
    event,
    in_turn,
    posts,
    says,
    streams,
)

PATH = "/chat/completions"
SCHEMA = {
    "type": "json_schema",
    "json_schema": {
        "name": "mill",
        "schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    },
}
SEVEN = streams(event({"content": '{"n": 7}'}, "stop"), event(usage=USAGE), DONE)


def test_a_schema_that_the_server_ignores_is_noticed(
    server: Upstream, start: Start, http: httpx.Client
) -> None:
    def wrote(text: str) -> Any:
        return streams(event({"content": text}, "stop"), event(usage=USAGE), DONE)

    proxy = start('[models."*"]\nconstrain = true\n')
    server.script = posts(in_turn([wrote("Mill seven."), wrote('{"n": 7}')]))
    answer = http.post(proxy.url + PATH, json=chat(response_format=SCHEMA))
    assert json.loads(answer.json()["choices"][0]["message"]["content"]) == {"n": 7}
    assert answer.json()["usage"]["headrace"]["num_calls"] == 2
    server.script = posts(wrote("Mill seven."))
    refused = http.post(proxy.url + PATH, json=chat(response_format=SCHEMA))
    assert refused.status_code == 502
    assert refused.json()["error"]["code"] == "invalid_output"
    assert refused.headers["x-should-retry"] == "false"
    stream = http.post(proxy.url + PATH, json=chat(response_format=SCHEMA, stream=True))
    assert stream.json()["error"]["code"] == "invalid_output"  # nothing had been sent yet


def test_a_checked_answer_streams_to_the_client(server: Upstream, start: Start) -> None:
    server.script = posts(SEVEN)
    proxy = start('[models."*"]\nconstrain = true\n')
    asked: Any = chat(response_format=SCHEMA, stream_options={"include_usage": True})
    with proxy.client() as client:
        *rest, last = client.chat.completions.create(**asked, stream=True)
        whole = client.chat.completions.create(**chat(response_format=SCHEMA))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in rest) == '{"n": 7}'
    assert rest[-1].choices[0].finish_reason == "stop"
    assert (last.choices, last.usage.completion_tokens) == ([], 2)
    assert whole.choices[0].message.content == '{"n": 7}'
    assert server.seen[-1].headers["authorization"] == "Bearer sk-caller"
    assert time.time() - whole.created < 3600


@pytest.mark.parametrize("is_stream", [False, True])
def test_who_leaves_a_checked_answer_stops_the_server(
    is_stream: bool, server: Upstream, start: Start
) -> None:
    server.script = posts(streams(*HELLO * 5000, pause=0.01))
    proxy = start('[models."*"]\nconstrain = true\n')
    with asking(proxy.url + PATH, chat(response_format=SCHEMA, stream=is_stream)):
        until(lambda: any(seen.method == "POST" for seen in server.seen))
    assert server.aborted.wait(20)


def test_callers_never_share_an_answer(server: Upstream, start: Start) -> None:
    server.script = posts(SEVEN)
    proxy = start('[models."*"]\nconstrain = true\n')
    for key in ("sk-ann", "sk-bob"):
        with proxy.client(api_key=key) as client:
            client.chat.completions.create(**chat(response_format=SCHEMA, temperature=0))
    keys = [seen.headers["authorization"] for seen in server.seen if seen.method == "POST"]
    assert keys == ["Bearer sk-ann", "Bearer sk-bob"]


def test_the_same_question_twice_is_asked_twice(server: Upstream, start: Start) -> None:
    server.script = says(completion())
    with start().client() as client:
        for _ in range(2):
            client.chat.completions.create(**chat(temperature=0))
    assert len(server.seen) == 2  # the proxy keeps no answers
