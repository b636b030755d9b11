"""Every answer of a route that is read says what became of the prompt, and is counted as such."""

from __future__ import annotations

import gzip
import json
import socket
from typing import Any

import httpx
import pytest
from engine.proxied import LEXICAL, Running, Start, asking, chat, history, until
from engine.upstream import Upstream, hangs, openai_like, says

ROUTES = {
    "chat": "/chat/completions",
    "completions": "/completions",
    "responses": "/responses",
    "messages": "/messages",
}
PATH = ROUTES["chat"]


def counted(proxy: Running, route: str, status: int, decision: str, count: int = 1) -> None:
    proxy.counts(count, "requests_total", route=route, policy="*", status=str(status))
    proxy.counts(count, "decisions_total", policy="*", decision=decision)


@pytest.mark.parametrize(("route", "path"), ROUTES.items())
@pytest.mark.parametrize(
    "raw",
    [
        *(b"", b"{", b"[1]", b'"text"', b"null", b"\xff\xfe\x00", b'{"a": "\xe9"}', b"[" * 100_000),
        gzip.compress(json.dumps(chat()).encode()),
        *(b'{"model": 3}', b'{"model": "tiny", "messages": "?", "input": 3, "prompt": {}}'),
    ],
    ids=lambda raw: repr(raw[:12]),
)
def test_a_body_that_cannot_be_read_is_the_servers_to_refuse(
    raw: bytes, route: str, path: str, server: Upstream, start: Start, http: httpx.Client
) -> None:
    error = {"error": {"message": "no", "type": "t", "param": None, "code": "c"}}
    server.script = says(error, 400)
    proxy = start(LEXICAL)
    answer = http.post(proxy.url + path, content=raw)
    assert (answer.status_code, answer.json()) == (400, error)
    assert answer.headers["x-headrace-decision"] == "unread"
    assert server.seen[-1].raw == raw
    counted(proxy, route, 400, "unread")


@pytest.mark.parametrize(("route", "path"), ROUTES.items())
def test_what_the_proxy_refuses_says_so(
    route: str,
    path: str,
    server: Upstream,
    start: Start,
    http: httpx.Client,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OUR_KEYS", "hr-ann")
    proxy = start('max_body = 5000\nkeys_env = "OUR_KEYS"\n')
    key = {"authorization": "Bearer hr-ann"}
    long = json.dumps(chat("x" * 6000)).encode()
    asked: list[tuple[int, dict[str, Any]]] = [
        (401, {"json": chat()}),
        (413, {"content": long, "headers": key}),
        (413, {"content": (long[i : i + 500] for i in range(0, 6000, 500)), "headers": key}),
        (400, {"json": chat(headrace={"rte": 1}), "headers": key}),
    ]
    for number, (status, request) in enumerate(asked, 1):
        refused = http.post(proxy.url + path, **request)
        assert (refused.status_code, refused.headers["x-headrace-decision"]) == (status, "refused")
        proxy.counts(number, "decisions_total", policy="*", decision="refused")
    proxy.counts(1, "requests_total", route=route, policy="*", status="401")
    proxy.counts(2, "requests_total", route=route, policy="*", status="413")
    assert not server.seen


def test_one_too_many_is_counted_where_it_belongs(
    server: Upstream, start: Start, http: httpx.Client
) -> None:
    server.script = hangs()
    proxy = start("max_concurrency = 1\n")
    with asking(proxy.url + PATH, chat()):
        until(lambda: proxy.proxy.gate.num_open == 1)
        refused = http.post(proxy.url + PATH, json=chat())
        other = http.get(proxy.url + "/models")
    assert (refused.status_code, refused.headers["x-headrace-decision"]) == (429, "refused")
    counted(proxy, "chat", 429, "refused")
    assert (other.status_code, "x-headrace-decision" in other.headers) == (429, False)
    proxy.counts(1, "requests_total", route="other", policy="*", status="429")
    proxy.counts(2, "errors_total", code="busy")


def test_a_page_without_a_key_is_refused_before_any_work(
    server: Upstream, start: Start, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THEIR_KEY", "sk-upstream")
    proxy = start(f'backend_key_env = "THEIR_KEY"\n{LEXICAL}')
    refused = http.post(proxy.url + PATH, json=history(), headers={"origin": "https://x.example"})
    assert (refused.status_code, refused.headers["x-headrace-decision"]) == (403, "refused")
    counted(proxy, "chat", 403, "refused")


def test_a_body_that_does_not_come_is_refused_and_counted(start: Start) -> None:
    proxy = start("timeout = 0.2\n")
    parts = httpx.URL(proxy.url)
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"
    with socket.create_connection((parts.host, parts.port or 80), 30) as sock:
        sock.sendall(head)
        said = sock.recv(1000)
    assert b"408" in said
    assert b"x-headrace-decision: refused" in said
    counted(proxy, "chat", 408, "refused")


def test_who_leaves_before_the_body_has_come_is_counted_without_a_decision(start: Start) -> None:
    proxy = start()
    parts = httpx.URL(proxy.url)
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"
    with socket.create_connection((parts.host, parts.port or 80), 30) as sock:
        sock.sendall(head)
        until(lambda: proxy.proxy.gate.num_open == 1)
    proxy.counts(1, "requests_total", route="chat", policy="*", status="499")
    proxy.counts(1, "disconnects_total", route="chat")
    assert "decisions_total{" not in proxy.proxy.metrics.text().decode()


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
def test_what_the_server_refuses_has_the_decision_of_its_prompt(
    status: int, is_stream: bool, server: Upstream, start: Start, http: httpx.Client
) -> None:
    server.script = says({"error": {"message": "no"}}, status)
    proxy = start(LEXICAL)
    answer = http.post(proxy.url + PATH, json=history(stream=is_stream))
    assert (answer.status_code, answer.headers["x-headrace-decision"]) == (status, "changed")
    counted(proxy, "chat", status, "changed")


def test_a_server_that_is_not_there_leaves_the_decision(start: Start, http: httpx.Client) -> None:
    proxy = start(f'backend = "http://127.0.0.1:9"\n{LEXICAL}')
    for body, decision in ((history(), "changed"), ([1], "unread")):
        answer = http.post(proxy.url + PATH, json=body)
        assert (answer.status_code, answer.headers["x-headrace-decision"]) == (502, decision)


def test_a_fault_of_our_own_says_so_too(
    start: Start, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = start()

    def broken(model: str) -> None:
        raise RuntimeError(model)

    monkeypatch.setattr("headrace.middleware.proxy.config.Config.policy", broken)
    answer = http.post(proxy.url + PATH, json=chat())
    assert (answer.status_code, answer.headers["x-headrace-decision"]) == (500, "refused")
    counted(proxy, "chat", 500, "refused")


def test_what_is_not_read_has_no_decision(
    server: Upstream, start: Start, http: httpx.Client
) -> None:
    server.script = openai_like()
    proxy = start(LEXICAL)
    for method, path in (("GET", PATH), ("GET", "/models"), ("POST", "/embeddings")):
        answer = http.request(method, proxy.url + path, json=chat())
        assert "x-headrace-decision" not in answer.headers
    proxy.counts(3, "requests_total", route="other", policy="*", status="200")


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
