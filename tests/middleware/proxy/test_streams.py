"""Streams: to the byte, at once, and never silent for long."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator

import httpx
import pytest
from engine.proxied import Start, chat
from engine.upstream import (
    DONE,
    HELLO,
    USAGE,
    Upstream,
    event,
    says,
    streams,
)
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

PATH = "/chat/completions"


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


def test_a_stream_that_breaks_is_counted_as_an_error(
    server: Upstream, start: Start, http: httpx.Client
) -> None:
    proxy = start()
    server.script = streams(*HELLO[:1], cut=True)
    answer = http.post(proxy.url + PATH, json=chat(stream=True))
    assert answer.text.count("data: ") == 2
    assert '"code":"upstream_closed"' in answer.text
    proxy.counts(1, "errors_total", code="upstream_closed")


def test_an_answer_that_is_no_stream_after_comments_is_an_error(
    server: Upstream, start: Start, http: httpx.Client
) -> None:
    proxy = start("keepalive = 0.05\n")
    go_on = threading.Event()

    async def script(request: Request) -> Response:
        await asyncio.to_thread(go_on.wait, 60)
        return await says({"object": "chat.completion"})(request)

    server.script = script
    with http.stream("POST", proxy.url + PATH, json=chat(stream=True)) as answer:
        lines = answer.iter_lines()
        assert next(lines) == ": keep-alive"
        go_on.set()
        assert '"code":"no_stream"' in "".join(lines)
    proxy.counts(1, "errors_total", code="no_stream")
