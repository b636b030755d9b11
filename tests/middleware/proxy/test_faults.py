"""What users of other proxies ran into; the table is in docs/proxy.md."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import openai
import pytest
from engine.proxied import LEXICAL, LONG, Start, asking, chat, history, until
from engine.upstream import (
    DONE,
    HELLO,
    USAGE,
    Upstream,
    completion,
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


@pytest.mark.parametrize("is_stream", [False, True])
def test_who_leaves_before_the_first_byte_stops_the_server(
    is_stream: bool, server: Upstream, start: Start
) -> None:
    server.script = hangs()
    proxy = start()
    with asking(proxy.url + PATH, chat(stream=is_stream)):
        until(lambda: len(server.seen) == 1)
    assert server.aborted.wait(10)
    proxy.counts(1, "disconnects_total", route="chat")


def test_who_leaves_in_the_middle_of_a_stream_stops_the_server(
    server: Upstream, start: Start
) -> None:
    server.script = streams(*HELLO * 5000, pause=0.01)
    with asking(start().url + PATH, chat(stream=True)) as caller:
        assert caller.recv(10)
    assert server.aborted.wait(10)


@pytest.mark.parametrize("is_stream", [False, True])
def test_who_leaves_a_checked_answer_stops_the_server(
    is_stream: bool, server: Upstream, start: Start
) -> None:
    server.script = posts(streams(*HELLO * 5000, pause=0.01))
    proxy = start('[models."*"]\nconstrain = true\n')
    with asking(proxy.url + PATH, chat(response_format=SCHEMA, stream=is_stream)):
        until(lambda: any(seen.method == "POST" for seen in server.seen))
    assert server.aborted.wait(20)


def test_a_place_is_given_back_whatever_happened(
    server: Upstream, start: Start, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = start("max_concurrency = 1\ntimeout = 1.0\n")
    url = proxy.url + PATH

    def is_free() -> bool:
        return proxy.proxy.gate.num_open == 0

    server.script = streams(*HELLO * 5000, pause=0.01)
    with asking(url, chat(stream=True)) as caller:
        assert caller.recv(10)
    until(is_free)
    server.script = hangs()
    assert http.post(url, json=chat()).status_code == 504
    until(is_free)

    def broken(record: object) -> None:
        raise RuntimeError("a callback that raises")

    monkeypatch.setattr(proxy.proxy.metrics, "observe", broken)
    server.script = openai_like()
    for _ in range(2):
        assert http.post(url, json=chat()).status_code == 200
        until(is_free)


def test_too_many_at_a_time_are_told_when_to_come_back(
    server: Upstream, start: Start, http: httpx.Client
) -> None:
    server.script = hangs()
    proxy = start("max_concurrency = 1\n")
    with asking(proxy.url + PATH, chat()):
        until(lambda: proxy.proxy.gate.num_open == 1)
        refused = http.post(proxy.url + PATH, json=chat())
        health = http.get(proxy.url.removesuffix("/v1") + "/health")
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) >= 1
    error = refused.json()["error"]
    assert (error["type"], error["code"]) == ("rate_limit_error", "busy")
    assert health.status_code == 200


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


def test_characters_and_lines_may_be_cut_anywhere(
    server: Upstream, start: Start, http: httpx.Client
) -> None:
    text = event({"content": "漢🙂é"}, usage=None).replace(b"\n", b"\r\n") + event(
        {"content": "漢"}, usage=USAGE
    )
    server.script = streams(*(bytes([byte]) for byte in text + DONE))
    proxy = start()
    asked = chat(stream=True, stream_options={"include_usage": True})
    assert http.post(proxy.url + PATH, json=asked).content == text + DONE
    hidden = http.post(proxy.url + PATH, json=chat(stream=True)).content
    assert "漢🙂é".encode() in hidden
    assert "\ufffd" not in hidden.decode()


def test_a_stream_comes_as_it_is_written(server: Upstream, start: Start) -> None:
    more = threading.Event()

    async def body() -> AsyncIterator[bytes]:
        for piece in (*HELLO, DONE):
            yield piece
            await asyncio.to_thread(more.wait, 60)
            more.clear()

    async def script(request: Request) -> Response:
        return StreamingResponse(body(), media_type="text/event-stream")

    server.script = script
    with (
        httpx.Client(timeout=30) as client,
        client.stream("POST", start().url + PATH, json=chat(stream=True)) as answer,
    ):
        pieces = answer.iter_raw()
        for expected in (*HELLO, DONE):  # the server waits until the last one has arrived
            assert next(pieces) == expected
            more.set()
        assert answer.headers["x-accel-buffering"] == "no"
        assert answer.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("has_headers", [False, True])
def test_silence_is_filled_with_comments(has_headers: bool, server: Upstream, start: Start) -> None:
    go_on = threading.Event()

    async def body() -> AsyncIterator[bytes]:
        await asyncio.to_thread(go_on.wait, 60)
        for piece in (*HELLO, DONE):
            yield piece

    async def script(request: Request) -> Response:
        if not has_headers:
            await asyncio.to_thread(go_on.wait, 60)
        return StreamingResponse(body(), media_type="text/event-stream")

    server.script = script
    proxy = start("keepalive = 0.05\n")
    with (
        httpx.Client(timeout=30) as client,
        client.stream("POST", proxy.url + PATH, json=chat(stream=True)) as answer,
    ):
        lines = answer.iter_lines()
        for _ in range(2):
            assert [next(lines), next(lines)] == [": keep-alive", ""]
        go_on.set()
        rest = [line for line in lines if line and not line.startswith(":")]
    assert "\n\n".join(rest) + "\n\n" == b"".join((*HELLO, DONE)).decode()


def test_an_error_after_comments_is_an_event(server: Upstream, start: Start) -> None:
    go_on = threading.Event()

    async def script(request: Request) -> Response:
        await asyncio.to_thread(go_on.wait, 60)
        return await says({"error": {"message": "no room", "code": "full"}}, 500)(request)

    server.script = script
    proxy = start("keepalive = 0.05\n")
    with (
        httpx.Client(timeout=30) as client,
        client.stream("POST", proxy.url + PATH, json=chat(stream=True)) as answer,
    ):
        lines = answer.iter_lines()
        assert next(lines) == ": keep-alive"
        go_on.set()
        data = [line for line in lines if line.startswith("data:")]
    assert json.loads(data[0][6:])["error"]["message"] == "no room"


def test_counts_are_shown_only_to_those_who_ask(
    server: Upstream, start: Start, http: httpx.Client
) -> None:
    proxy = start()
    plain = http.post(proxy.url + PATH, json=chat(stream=True)).text
    assert "usage" not in plain
    proxy.counts(2, "usage_tokens_total", policy="*", kind="completion")
    proxy.counts(9, "usage_tokens_total", policy="*", kind="prompt")
    asked = chat(stream=True, stream_options={"include_usage": True})
    lines = http.post(proxy.url + PATH, json=asked).text.split("\n\n")
    counted = [json.loads(line[6:]) for line in lines if '"usage": {' in line]
    assert [(one["choices"], one["usage"]) for one in counted] == [([], USAGE)]


RECORDS = json.dumps([{"id": i, "note": SAID} for i, SAID in enumerate([LONG[:200]] * 5)])
CALLS = [
    {"id": f"c{i}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    for i in (1, 2)
]
AGENT: list[dict[str, Any]] = [
    {"role": "system", "content": LONG},
    {"role": "user", "content": LONG},
    {"role": "assistant", "content": None, "tool_calls": CALLS[:1]},
    {"role": "tool", "tool_call_id": "c1", "content": RECORDS},
    {"role": "assistant", "content": LONG, "tool_calls": CALLS[1:]},
    {"role": "tool", "tool_call_id": "c2", "content": json.dumps(LONG)},
    {"role": "user", "content": "And now?"},
]


def sent(server: Upstream, start: Start, messages: Any, text: str = LEXICAL, **more: Any) -> Any:
    body = {"model": "tiny", "messages": messages, **more}
    answer = httpx.post(start(text).url + PATH, json=body, timeout=30)
    assert answer.status_code == 200
    return server.seen[-1].body


def test_tool_calls_and_their_results_are_left_alone(server: Upstream, start: Start) -> None:
    messages = sent(server, start, AGENT)["messages"]
    same = [new == old for new, old in zip(messages, AGENT, strict=True)]
    assert same == [True, False, True, True, True, True, True]


def test_results_that_are_to_be_cut_stay_json_with_all_records(
    server: Upstream, start: Start
) -> None:
    text = LEXICAL + "rates = { tool = 0.3 }\n"
    messages = sent(server, start, AGENT, text)["messages"]
    records = json.loads(messages[3]["content"])
    assert [record["id"] for record in records] == [0, 1, 2, 3, 4]
    assert all(set(record) == {"id", "note"} for record in records)
    assert len(messages[3]["content"]) < len(RECORDS)
    assert isinstance(json.loads(messages[5]["content"]), str)  # a text in JSON stays one
    assert [m.get("tool_call_id") for m in messages] == [m.get("tool_call_id") for m in AGENT]
    assert [m.get("tool_calls") for m in messages] == [m.get("tool_calls") for m in AGENT]


def test_long_arguments_are_the_same_bytes(server: Upstream, start: Start) -> None:
    arguments = json.dumps({"text": 'a \\ " é🙂 ' * 10_000})
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
    agent = [AGENT[1], {"role": "assistant", "tool_calls": [call]}, AGENT[-1]]
    messages = sent(server, start, agent, LEXICAL + "rates = { assistant = 0.1 }\n")["messages"]
    assert messages[1]["tool_calls"][0]["function"]["arguments"] == arguments


def test_a_top_level_system_prompt_stays_where_it_is(server: Upstream, start: Start) -> None:
    server.script = says({"type": "message", "usage": {"input_tokens": 3, "output_tokens": 1}})
    body = {"model": "m", "system": LONG, "max_tokens": 5, "messages": history()["messages"][1:]}
    httpx.post(start(LEXICAL).url + "/messages", json=body, timeout=30)
    assert server.seen[-1].body["system"] == LONG
    roles = [message["role"] for message in server.seen[-1].body["messages"]]
    assert roles == ["user", "assistant", "user"]
    assert len(server.seen[-1].body["messages"][0]["content"]) < 0.4 * len(LONG)


def test_pictures_and_kept_parts_are_the_same_objects(server: Upstream, start: Start) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "x"}}
    kept = {"type": "text", "text": LONG, "headrace": "keep"}
    parts = [{"type": "text", "text": LONG}, image, kept, {"type": "text", "text": LONG}]
    messages = sent(server, start, [{"role": "user", "content": parts}, AGENT[-1]])["messages"]
    first, picture, same, last = messages[0]["content"]
    assert picture == image
    assert same == {"type": "text", "text": LONG}
    assert max(len(first["text"]), len(last["text"])) < 0.4 * len(LONG)


def test_a_turn_is_the_same_bytes_in_every_later_request(server: Upstream, start: Start) -> None:
    chat_so_far: list[dict[str, Any]] = [{"role": "system", "content": LONG}]
    before: list[Any] = []
    for turn in range(10):
        chat_so_far.append({"role": "user", "content": f"{turn}. {LONG} What of mill {turn}?"})
        # A new proxy each time: nothing is remembered.
        messages = sent(server, start, chat_so_far)["messages"]
        assert messages[: len(before)] == before
        assert messages[-1] == chat_so_far[-1]
        before = messages[:-1]
        chat_so_far.append({"role": "assistant", "content": f"I think that {LONG}"})
    assert all(len(m["content"]) < 0.5 * len(LONG) for m in before[1:])


def test_no_tool_and_no_marker_is_added(server: Upstream, start: Start) -> None:
    tools = [{"type": "function", "function": {"name": "f"}}]
    body = sent(server, start, AGENT, tools=tools)
    assert body["tools"] == tools
    assert set(body) == {"model", "messages", "tools"}
    assert "tools" not in sent(server, start, AGENT)
    words = set(LONG.split())
    assert set(body["messages"][1]["content"].split()) <= words


def test_one_hung_request_holds_nobody(server: Upstream, start: Start, http: httpx.Client) -> None:
    server.script = in_turn([hangs(), openai_like()])
    proxy = start()
    with asking(proxy.url + PATH, chat()):
        until(lambda: len(server.seen) == 1)
        assert http.post(proxy.url + PATH, json=chat()).status_code == 200


def test_the_reason_is_said_for_every_request(
    server: Upstream, start: Start, http: httpx.Client
) -> None:
    proxy = start(LEXICAL)
    for body, decision in (
        (history(), "changed"),
        (chat(), "unchanged"),
        (history(headrace={"off": True}), "off"),
        (chat() | {"messages": "?"}, "unread"),
    ):
        answer = http.post(proxy.url + PATH, json=body)
        assert answer.headers["x-headrace-decision"] == decision
        proxy.counts(1, "decisions_total", policy="*", decision=decision)


def test_a_stage_that_fails_lets_the_request_pass(
    server: Upstream,
    start: Start,
    http: httpx.Client,
    damaged: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    proxy = start(f'[models."*"]\nrate = 0.5\ncompressor = "{damaged}"\n')
    answer = http.post(proxy.url + PATH, json=history())
    assert answer.headers["x-headrace-decision"] == "failed"
    assert server.seen[-1].body == history()
    assert "sent as it came" in caplog.text


def test_no_key_and_no_prompt_is_ever_logged_or_counted(
    server: Upstream, start: Start, http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    key, prompt = "sk-very-secret-1234567890", "a very private prompt"
    headers = {"authorization": f"Bearer {key}"}
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("httpcore").setLevel(logging.WARNING)  # it logs headers, at DEBUG only
        proxy = start("timeout = 0.2\n")
        server.script = says({"error": {"message": "bad key"}}, 401)
        first = http.post(proxy.url + PATH, json=chat(prompt), headers=headers)
        server.script = hangs()
        second = http.post(proxy.url + PATH, json=chat(prompt), headers=headers)
        third = http.post(proxy.url + PATH, json=chat(prompt, headrace={"x": 1}), headers=headers)
    assert (first.status_code, second.status_code, third.status_code) == (401, 504, 400)
    metrics = http.get(proxy.url.removesuffix("/v1") + "/metrics").text
    ours = "\n".join(r.getMessage() for r in caplog.records if "headrace" in r.name)
    for text in (second.text, third.text, metrics, ours):
        assert key not in text
        assert prompt not in text


@pytest.mark.parametrize(
    ("base", "path"),
    [
        ("", "/v1/chat/completions"),
        ("/", "/v1/chat/completions"),
        ("/v1", "/v1/chat/completions"),
        ("/v1/", "/v1/chat/completions"),
        ("/api/v3", "/api/v3/chat/completions"),
        ("/openai/v1/chat/completions", "/openai/v1/chat/completions"),
    ],
)
def test_the_servers_address_is_joined_once(
    base: str, path: str, server: Upstream, start: Start, http: httpx.Client
) -> None:
    host = server.url.removesuffix("/v1")
    http.post(start(f'backend = "{host}{base}"\n').url + PATH, json=chat())
    assert server.seen[-1].path == path


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
