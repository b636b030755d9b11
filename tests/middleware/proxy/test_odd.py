"""Bodies that no careful client sends, and many clients at once: an answer each, and no fault."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import httpx
import pytest
from engine.proxied import LEXICAL, LONG, Start, chat, history
from engine.upstream import (
    DONE,
    USAGE,
    Upstream,
    completion,
    event,
    openai_like,
    posts,
    says,
    streams,
)

from headrace.middleware.cli_serve import is_told

PATH = "/chat/completions"
HALF = "\ud83d"  # of a pair: JSON can say it, UTF-8 cannot
ALL = LEXICAL + 'constrain = true\nplan = "auto"\ntools = 0.5\nlast_user = "context"\n'
SCHEMA = {"type": "json_schema", "json_schema": {"name": "m", "schema": {"type": "object"}}}


def turns(*first: Any) -> dict[str, Any]:
    return {"model": "tiny", "messages": [*first, *history()["messages"]]}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


@pytest.mark.parametrize("policy", ["", LEXICAL, ALL], ids=["none", "lexical", "all"])
@pytest.mark.parametrize(
    "body",
    [
        turns(user(f"a {HALF} b {LONG}")),
        {**history(), "model": HALF},
        {**history(), "user": HALF},
        turns(user(None)),
        turns(user("")),
        turns(user([])),
        turns(user([None, 3, "x", [], {"type": "text"}, {"type": "text", "text": None}])),
        turns(user("\u202e\u200f\u0301" * 500 + "\U0001f468\u200d\U0001f469" * 100)),
        turns(user("x" * 300_000)),
        turns(user(" \n\t" * 5000)),
        turns(user("\0" * 500)),
        {"model": "tiny", "messages": [{"role": "tool", "content": LONG}]},
        {**history(), "model": ["tiny"]},
        {**history(), "model": None},
        {**history(), "model": "a\r\nX-Injected: 1"},
        {**history(), "tools": {"a": 1}},
        {**history(), "response_format": "json"},
        {**history(), "headrace": None},
        {**history(), "headrace": {"documents": [HALF + LONG], "top_k": 1, "method": "bm25"}},
    ],
)
def test_an_odd_body_is_answered(
    body: dict[str, Any], policy: str, server: Upstream, start: Start, http: httpx.Client
) -> None:
    proxy = start(policy)
    for is_stream in (False, True):
        asked = json.dumps({**body, "stream": is_stream})
        answer = http.post(proxy.url + PATH, content=asked)
        assert answer.status_code == 200
        assert "Hel" in answer.text
        assert "x-injected" not in answer.headers
        assert "headrace" not in server.seen[-1].body
    base = proxy.url.removesuffix("/v1")
    assert [http.get(base + at).status_code for at in ("/ui/data", "/metrics")] == [200, 200]


@pytest.mark.parametrize(
    "messages",
    [
        [],
        None,
        {"a": 1},
        [None],
        [3],
        [{"content": "x"}],
        [user(3)],
        [user({"a": 1})],
        [user(True)],
    ],
)
def test_a_chat_that_is_none_is_the_servers_to_refuse_also_with_a_plan(
    messages: Any, server: Upstream, start: Start, http: httpx.Client
) -> None:
    server.script = says({"error": {"message": "no"}}, 422)
    options = {"documents": ["a", "b"], "top_k": 1, "question": "a"}
    body = {"model": "tiny", "messages": messages, "response_format": SCHEMA}
    proxy = start(ALL)
    for more in ({}, {"headrace": options}):
        answer = http.post(proxy.url + PATH, json=body | more)
        assert (answer.status_code, answer.json()) == (422, {"error": {"message": "no"}})
        assert answer.headers["x-headrace-decision"] == "unread"
        assert server.seen[-1].body == body


@pytest.mark.parametrize(
    "fields",
    [{"temperature": "hot"}, {"max_tokens": -1}, {"stop": 3}, {"max_tokens": "9"}],
)
def test_a_field_that_the_pipeline_refuses_is_refused(
    fields: dict[str, Any], server: Upstream, start: Start, http: httpx.Client
) -> None:
    answer = http.post(start(ALL).url + PATH, json=chat(response_format=SCHEMA, **fields))
    assert (answer.status_code, answer.headers["x-headrace-decision"]) == (400, "refused")
    assert not server.seen


def test_the_options_of_a_request_are_not_sent_on_by_the_pipeline_either(
    server: Upstream, start: Start, http: httpx.Client
) -> None:
    server.script = posts(streams(event({"content": "{}"}, "stop"), event(usage=USAGE), DONE))
    body = chat(response_format=SCHEMA, top_k=3, headrace={"rate": 0.5})
    answer = http.post(start(ALL).url + PATH, json=body)
    assert answer.json()["choices"][0]["message"]["content"] == "{}"
    sent = [seen.body for seen in server.seen if seen.method == "POST"]
    assert [one["top_k"] for one in sent] == [3]
    assert "headrace" not in sent[0]


def test_half_a_pair_in_an_answer_ends_no_stream(
    server: Upstream, start: Start, http: httpx.Client
) -> None:
    half = json.dumps({"choices": [], "usage": USAGE, "x": HALF}).encode()
    server.script = streams(b"data: " + half + b"\n\n", DONE)
    asked = history(stream=True, stream_options={"include_usage": True})
    proxy = start(LEXICAL)
    events = http.post(proxy.url + PATH, json=asked).text.split("\n\n")
    found = json.loads(events[0][6:])
    assert (found["x"], events[1]) == (HALF, "data: [DONE]")
    assert found["usage"]["headrace"]["tokens_saved"] > 100
    server.script = says_raw(json.dumps(completion(HALF)))
    answer = http.post(proxy.url + PATH, json=history())
    assert json.loads(answer.content)["choices"][0]["message"]["content"] == HALF


def says_raw(text: str) -> Any:
    from starlette.responses import Response

    async def script(request: Any) -> Response:
        return Response(text, media_type="application/json")

    return script


async def test_many_clients_at_once_get_their_own_answers(server: Upstream, start: Start) -> None:
    async def echo(request: Any) -> Any:
        said = (await request.json())["messages"][-1]["content"]
        return await says(completion(said))(request)

    server.script = echo
    proxy = start(LEXICAL)
    async with httpx.AsyncClient(timeout=60) as client:

        async def ask(number: int) -> str:
            body = history()
            body["messages"][-1]["content"] = f"Who built mill {number}?"
            answer = await client.post(proxy.url + PATH, json=body)
            return str(answer.json()["choices"][0]["message"]["content"])

        answers = await asyncio.gather(*map(ask, range(100)))
    assert answers == [f"Who built mill {number}?" for number in range(100)]
    proxy.counts(100, "requests_total", route="chat", policy="*", status="200")
    assert proxy.proxy.gate.num_open == 0


def test_a_server_that_is_gone_half_way_and_back_again_is_used_again(
    server: Upstream, start: Start, http: httpx.Client
) -> None:
    proxy = start()
    server.script = streams(event({"content": "A"}), cut=True)
    for _ in range(3):
        broken = http.post(proxy.url + PATH, json=chat(stream=True))
        assert '"code":"upstream_closed"' in broken.text
    server.script = openai_like()
    assert http.post(proxy.url + PATH, json=chat()).status_code == 200
    proxy.counts(3, "errors_total", code="upstream_closed")


def test_the_terminal_is_ours() -> None:
    def told(name: str, level: int) -> bool:
        return is_told(logging.LogRecord(name, level, "", 0, "", None, None))

    assert told("headrace.proxy", logging.INFO)
    assert told("bm25s", logging.WARNING)
    assert not told("bm25s", logging.DEBUG)  # it says each index that it builds
