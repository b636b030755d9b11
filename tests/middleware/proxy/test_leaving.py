"""Callers who leave, callers who hang, and one too many."""

from __future__ import annotations

import httpx
import pytest
from engine.proxied import Start, asking, chat, until
from engine.upstream import (
    HELLO,
    Upstream,
    hangs,
    in_turn,
    openai_like,
    streams,
)

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


def test_one_hung_request_holds_nobody(server: Upstream, start: Start, http: httpx.Client) -> None:
    server.script = in_turn([hangs(), openai_like()])
    proxy = start()
    with asking(proxy.url + PATH, chat()):
        until(lambda: len(server.seen) == 1)
        assert http.post(proxy.url + PATH, json=chat()).status_code == 200
