"""What is sent again, and what never is."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import openai
import pytest
from engine.proxied import Start, chat
from engine.upstream import (
    DONE,
    USAGE,
    Upstream,
    event,
    hangs,
    in_turn,
    openai_like,
    posts,
    says,
    streams,
)
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from headrace.middleware.proxy.routes import Routes
from headrace.middleware.proxy.upstream import Upstream as Connections

PATH = "/chat/completions"


def test_each_retry_waits_as_long_as_the_last_answer_said(
    server: Upstream, start: Start, http: httpx.Client
) -> None:
    refusals = [says({}, 429, {"retry-after": seconds}) for seconds in ("1", "2")]
    server.script = in_turn([*refusals, openai_like()])
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    routes = Routes(Connections(sleep=sleep, jitter=lambda: 1.0))
    proxy = start("retries = 2\n", routes)
    assert http.post(proxy.url + PATH, json=chat()).status_code == 200
    assert waits == [1.0, 2.0]
    server.script = in_turn([says({}, 429, {"retry-after": "3600"}), openai_like()])
    assert http.post(proxy.url + PATH, json=chat()).status_code == 429  # told at once
    assert waits == [1.0, 2.0]


def test_a_stream_that_breaks_is_never_begun_again(
    server: Upstream, start: Start, http: httpx.Client
) -> None:
    server.script = streams(event({"content": "A"}), event({"content": "B"}), cut=True)
    proxy = start("retries = 2\n")
    answer = http.post(proxy.url + PATH, json=chat(stream=True))
    events = answer.text.strip().split("\n\n")
    assert [json.loads(one[6:])["choices"][0]["delta"]["content"] for one in events[:2]] == [*"AB"]
    assert json.loads(events[2][6:])["error"]["code"] == "upstream_closed"
    assert len(events) == 3
    assert len(server.seen) == 1
    asked: Any = chat(stream=True)
    with (
        proxy.client(max_retries=2) as client,
        pytest.raises(openai.APIError, match="closed the connection in the middle"),
    ):
        list(client.chat.completions.create(**asked))
    assert len(server.seen) == 2


def test_what_may_have_been_accepted_is_not_sent_again(server: Upstream, start: Start) -> None:
    server.script = hangs()
    proxy = start("retries = 2\ntimeout = 1.0\n")
    with (
        proxy.client(max_retries=2) as client,
        pytest.raises(openai.InternalServerError, match="it may still be at work") as error,
    ):
        client.chat.completions.create(**chat())
    assert error.value.status_code == 504
    assert len(server.seen) == 1

    async def drop(request: Request) -> Response:
        return StreamingResponse(_nothing(), headers={"content-length": "10"})

    server.script = drop
    with (
        proxy.client(max_retries=2) as client,
        pytest.raises(openai.InternalServerError, match="closed the connection"),
    ):
        client.chat.completions.create(**chat())
    assert len(server.seen) == 2


async def _nothing() -> AsyncIterator[bytes]:
    yield b"{"
    raise RuntimeError


def test_a_server_that_is_not_there_is_tried_again_and_named(
    start: Start, http: httpx.Client
) -> None:
    connections = Connections(sleep=_no_time)
    proxy = start('backend = "http://ann:secret@127.0.0.1:9"\nretries = 2\n', Routes(connections))
    answer = http.post(proxy.url + PATH, json=chat())
    assert answer.status_code == 502
    assert answer.json()["error"]["code"] == "upstream_unreachable"
    assert answer.json()["error"]["message"] == "cannot reach http://127.0.0.1:9/v1"
    assert answer.headers["x-should-retry"] == "false"
    assert connections.num_sent == 3


async def _no_time(seconds: float) -> None:
    pass


def test_the_clients_retries_and_ours_do_not_multiply(server: Upstream, start: Start) -> None:
    server.script = says({"error": {"message": "down"}}, 503, {"retry-after": "0"})
    proxy = start("retries = 2\n", Routes(Connections(sleep=_no_time)))
    with proxy.client(max_retries=2) as client, pytest.raises(openai.InternalServerError):
        client.chat.completions.create(**chat())
    assert len(server.seen) == 3  # with retries = 0 it is the client that asks three times


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("is_stream", [False, True])
def test_a_refusal_that_passes_is_not_seen_by_the_client(
    is_stream: bool, status: int, server: Upstream, start: Start
) -> None:
    refused = says({"error": {"message": "full"}}, status, {"retry-after": "0"})
    server.script = in_turn([refused, refused, openai_like()])
    proxy = start("retries = 2\n", Routes(Connections(sleep=_no_time)))
    asked: Any = chat(stream=is_stream)
    with proxy.client() as client:
        answer: Any = client.chat.completions.create(**asked)
        chunks = list(answer) if is_stream else []
    said = [chunk.choices[0].delta.content or "" for chunk in chunks]
    whole = "".join(said) if is_stream else answer.choices[0].message.content
    assert whole == "Hello"
    assert len(server.seen) == 3
    assert len({seen.raw for seen in server.seen}) == 1
    proxy.counts(1, "requests_total", route="chat", policy="*", status="200")
    proxy.counts(2, "usage_tokens_total", policy="*", kind="completion")


@pytest.mark.parametrize("status", [400, 408, 500, 502, 504])
def test_what_does_not_say_that_nothing_was_begun_is_not_sent_again(
    status: int, server: Upstream, start: Start, http: httpx.Client
) -> None:
    server.script = in_turn([says({"error": {"message": "no"}}, status), openai_like()])
    proxy = start("retries = 2\n", Routes(Connections(sleep=_no_time)))
    assert http.post(proxy.url + PATH, json=chat()).status_code == status
    assert len(server.seen) == 1


def test_a_checked_answer_is_asked_for_again_too(server: Upstream, start: Start) -> None:
    refused = says({"error": {"message": "full"}}, 503, {"retry-after": "0"})
    wrote = streams(event({"content": '{"n": 7}'}, "stop"), event(usage=USAGE), DONE)
    server.script = posts(in_turn([refused, wrote]))
    proxy = start('retries = 1\n[models."*"]\nconstrain = true\n')
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    wanted = {"type": "json_schema", "json_schema": {"name": "mill", "schema": schema}}
    with proxy.client() as client:
        answer = client.chat.completions.create(**chat(response_format=wanted))
    assert answer.choices[0].message.content == '{"n": 7}'
    assert [seen.method for seen in server.seen].count("POST") == 2
