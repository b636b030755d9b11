"""How a proxy is configured, guarded, watched and stopped."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from engine.proxied import LEXICAL, Start, chat, history, until
from engine.upstream import DONE, HELLO, Upstream, hangs, openai_like
from prometheus_client.parser import text_string_to_metric_families
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from headrace import InvalidRequest
from headrace.middleware.proxy.app import make_app
from headrace.middleware.proxy.config import Config, Live, read_config
from headrace.middleware.proxy.policies import Policy

PATH = "/chat/completions"


def root(url: str) -> str:
    return url.removesuffix("/v1")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "no backend: pass --backend URL"),
        ({"backend": "ftp://x"}, "not an http"),
        ({"bakend": "http://x"}, "no setting 'bakend'"),
        ({"backend": "http://x", "keys": ["k"]}, "no setting 'keys'"),
        ({"backend": "http://x", "retries": "2"}, "retries is a whole number, got '2'"),
        ({"backend": "http://x", "retries": True}, "retries is a whole number, got True"),
        ({"backend": "http://x", "timeout": 0}, "timeout must be more than 0, got 0.0"),
        ({"backend": "http://x", "keepalive": -1}, "keepalive must be 0 or more, got -1.0"),
        ({"backend": "http://x", "keys_env": "NOT_SET_HERE"}, "NOT_SET_HERE is not set"),
        ({"backend": "http://x", "models": {"m": {"rte": 1}}}, r"\[models.\"m\"\]: .*'rte'"),
        ({"backend": "http://x", "models": {"m": {"rate": 3}}}, r"\[models.\"m\"\]: .*rate"),
        ({"backend": "http://x", "models": {"m": {"plan": "x"}}}, r"\[models.\"m\"\]: .*'x'"),
        ({"backend": "http://x", "models": []}, "is a table of options"),
    ],
)
def test_a_wrong_configuration_is_one_line(given: Any, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words) as error:
        read_config(given)
    assert "\n" not in str(error.value)


def test_the_longest_pattern_that_fits_is_the_policy() -> None:
    models = {"*": Policy(rate=0.1), "gpt-*": Policy(rate=0.2), "gpt-4*": Policy(rate=0.3)}
    config = Config("http://x/v1", models={**models, "gpt-[x]": Policy(off=True)})
    rates = {name: config.policy(name) for name in ("llama", "gpt-3", "gpt-4o", "gpt-[x]")}
    assert [rate[1].rate for rate in rates.values()] == [0.1, 0.2, 0.3, None]
    assert rates["gpt-4o"][0] == "gpt-4*"
    assert Config("http://x/v1").policy("any") == ("*", Policy())


def test_the_file_is_read_again_and_a_broken_one_keeps_the_old(
    server: Upstream, start: Start, http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    proxy = start(LEXICAL)
    backend = f'backend = "{server.url}"\n'

    def decision() -> str:
        return http.post(proxy.url + PATH, json=history()).headers["x-headrace-decision"]

    assert decision() == "changed"
    proxy.file.write_text(backend + '[models."*"]\noff = true\n')
    assert decision() == "off"
    proxy.file.write_text(backend + '[models."*"]\nrate = "half of it"\n')
    assert decision() == "off"
    assert "kept the old settings" in caplog.text
    assert "rate is a number from 0 to 1, got 'half of it'" in proxy.proxy.live.error
    assert "half of it" in http.get(root(proxy.url) + "/ready").json()["config"]
    assert proxy.metric("config_broken") == 1
    proxy.file.unlink()
    assert decision() == "off"
    proxy.file.write_text(backend + LEXICAL)
    assert decision() == "changed"
    assert proxy.proxy.live.error is None
    assert proxy.metric("config_reloads", result="read") == 2


def test_own_keys_let_nobody_else_in_and_go_nowhere(
    server: Upstream, start: Start, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUR_KEYS", "hr-ann, hr-bob")
    monkeypatch.setenv("THEIR_KEY", "sk-upstream")
    proxy = start('keys_env = "OUR_KEYS"\nbackend_key_env = "THEIR_KEY"\n')
    base = root(proxy.url)
    for headers in ({}, {"authorization": "Bearer hr-eve"}, {"authorization": "Bearer"}):
        refused = http.post(proxy.url + PATH, json=chat(), headers=headers)
        assert refused.status_code == 401
        assert refused.json()["error"]["code"] == "invalid_api_key"
        assert [http.get(base + p, headers=headers).status_code for p in ("/metrics", "/ui/data")] \
            == [401, 401]  # fmt: skip
    assert not server.seen
    for headers in ({"authorization": "Bearer hr-bob"}, {"x-api-key": "hr-ann"}):
        assert http.post(proxy.url + PATH, json=chat(), headers=headers).status_code == 200
        assert server.seen[-1].headers["authorization"] == "Bearer sk-upstream"
        assert "hr-" not in str(server.seen[-1].headers)
    assert http.get(base + "/metrics", headers=headers).status_code == 200
    assert [http.get(base + path).status_code for path in ("/health", "/ready", "/ui")] == [200] * 3
    assert "sk-upstream" not in repr(proxy.proxy.live.config)


def test_a_key_for_the_server_is_used_only_for_callers_without_one(
    server: Upstream, start: Start, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THEIR_KEY", "sk-upstream")
    proxy = start('backend_key_env = "THEIR_KEY"\n')
    http.post(proxy.url + PATH, json=chat())
    http.post(proxy.url + PATH, json=chat(), headers={"authorization": "Bearer sk-own"})
    keys = [seen.headers["authorization"] for seen in server.seen]
    assert keys == ["Bearer sk-upstream", "Bearer sk-own"]
    page = {"origin": "https://somewhere.example"}  # any page can ask the loopback
    refused = http.post(proxy.url + PATH, json=chat(), headers=page)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "key_not_lent")
    own = {**page, "authorization": "Bearer sk-own"}
    assert http.post(proxy.url + PATH, json=chat(), headers=own).status_code == 200
    assert len(server.seen) == 3


def test_a_body_that_is_too_long_is_refused(
    server: Upstream, start: Start, http: httpx.Client
) -> None:
    proxy = start("max_body = 1000\n")

    def pieces() -> Any:
        yield from [b"x" * 400] * 3

    for content in (b"x" * 1001, pieces()):
        refused = http.post(proxy.url + PATH, content=content)
        assert refused.status_code == 413
        assert refused.json()["error"]["code"] == "request_too_large"
    assert not server.seen
    assert http.post(proxy.url + PATH, json=chat()).status_code == 200


def test_a_body_that_does_not_come_is_not_waited_for(start: Start) -> None:
    proxy = start("timeout = 0.2\n")
    parts = httpx.URL(proxy.url)
    with socket.create_connection((parts.host, parts.port or 80), 30) as sock:
        sock.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
        assert b"408" in sock.recv(100)
    until(lambda: proxy.proxy.gate.num_open == 0)


def test_ready_says_whether_the_server_answers(
    server: Upstream, start: Start, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = start('backend = "http://127.0.0.1:9"\n')
    answer = http.get(root(proxy.url) + "/ready")
    assert answer.status_code == 503
    assert answer.json()["backend"] == "cannot reach http://127.0.0.1:9/v1"
    assert http.get(root(proxy.url) + "/health").json() == {"status": "ok"}
    monkeypatch.setattr("headrace.middleware.proxy.app.CHECK_SECONDS", 0.0)
    proxy.file.write_text(f'backend = "{server.url}"\n')
    monkeypatch.setattr("headrace.middleware.proxy.app.CHECK_SECONDS", 5.0)
    proxy.proxy._checked = float("-inf"), None
    assert http.get(root(proxy.url) + "/ready").json() == {"status": "ok", "backend": "ok"}


def test_metrics_are_prometheus_text_with_few_labels(
    server: Upstream, start: Start, http: httpx.Client
) -> None:
    proxy = start(LEXICAL)
    for i in range(5):
        http.post(proxy.url + PATH, json=history() | {"model": f"made-up-{i}"})
    http.get(proxy.url + "/anything/else")
    proxy.counts(5, "decisions_total", policy="*", decision="changed")
    text = http.get(root(proxy.url) + "/metrics").text
    families = {family.name: family for family in text_string_to_metric_families(text)}
    [requests] = [
        s for s in families["headrace_requests"].samples if s.labels.get("route") == "chat"
    ]
    assert requests.value == 5
    assert requests.labels == {"route": "chat", "policy": "*", "status": "200"}
    assert "made-up" not in text
    assert "/anything" not in text


def test_the_page_has_its_numbers(server: Upstream, start: Start, http: httpx.Client) -> None:
    proxy = start(LEXICAL)
    http.post(proxy.url + PATH, json=history())
    http.get(proxy.url + "/models")
    until(lambda: http.get(root(proxy.url) + "/ui/data").json()["requests"] == 1)
    data = http.get(root(proxy.url) + "/ui/data").json()
    assert data["tokens_saved"] == data["tokens_before"] - data["tokens_after"] > 100
    [row] = data["recent"]
    assert (row["model"], row["status"], row["decision"]) == ("tiny", 200, "changed")
    assert "mill" not in str(data)  # nothing of the prompt
    page = http.get(root(proxy.url) + "/ui")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert not re.search(r"(src|href)\s*=|https?://|@import|url\(", page.text)


async def test_a_model_that_cannot_be_loaded_is_said_at_the_start(
    tmp_path: Path, damaged: str, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "proxy.toml"
    policies = LEXICAL + f'[models.mine]\nrate = 0.5\ncompressor = "{damaged}"\n'
    file.write_text(f'backend = "http://127.0.0.1:9"\n{policies}')
    app = make_app(Live(file), warm=True)
    async with app.router.lifespan_context(app):
        pass
    assert '[models."mine"] will change nothing: ' in caplog.text
    assert '"*"' not in caplog.text


def serve(*arguments: str) -> subprocess.Popen[str]:
    line = [sys.executable, "-m", "headrace.middleware.cli", "serve", "--port", "0", *arguments]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    return subprocess.Popen(line, stderr=subprocess.PIPE, text=True, env=environment)


@pytest.mark.slow
def test_a_stop_lets_requests_end(server: Upstream) -> None:
    go_on = threading.Event()

    async def body() -> AsyncIterator[bytes]:
        yield HELLO[0]
        await asyncio.to_thread(go_on.wait, 60)
        yield HELLO[1] + DONE

    async def script(request: Request) -> Response:
        return StreamingResponse(body(), media_type="text/event-stream")

    server.script = script
    process = serve("--backend", server.url)
    assert process.stderr is not None
    try:
        found = re.match(r"(http://127.0.0.1:\d+)/v1 \(page: \1/ui\)", process.stderr.readline())
        assert found is not None
        url = found[1]
        until(lambda: answers(url), 60)
        with (
            httpx.Client(timeout=60) as client,
            client.stream("POST", f"{url}/v1{PATH}", json=chat(stream=True)) as answer,
        ):
            pieces = answer.iter_raw()
            assert next(pieces) == HELLO[0]
            process.send_signal(signal.SIGTERM)
            until(lambda: not answers(url), 60)  # nobody new
            go_on.set()
            assert b"".join(pieces) == HELLO[1] + DONE
        process.wait(60)
    finally:
        process.kill()
        said = process.communicate()[1]
    assert "POST chat 200" in said
    assert "Traceback" not in said


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", timeout=30).status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.slow
def test_others_are_let_in_only_when_that_is_said(tmp_path: Path, server: Upstream) -> None:
    process = serve("--backend", server.url, "--host", "0.0.0.0")
    said = process.communicate(timeout=120)[1]
    assert process.returncode == 2
    assert "error: 0.0.0.0 can be reached by others: set keys_env" in said
    missing = serve("--config", str(tmp_path / "none.toml"))
    assert "cannot read" in missing.communicate(timeout=120)[1]
    assert missing.returncode == 2


def test_a_live_configuration_without_a_file_is_the_command_lines() -> None:
    assert Live(backend="http://127.0.0.1:1").config.backend == "http://127.0.0.1:1/v1"
    with pytest.raises(InvalidRequest, match="no backend"):
        Live()


def test_a_request_that_hangs_does_not_hold_the_pages(
    server: Upstream, start: Start, http: httpx.Client
) -> None:
    proxy = start()
    server.script = hangs()
    assert http.get(root(proxy.url) + "/health").status_code == 200
    server.script = openai_like()
    assert http.get(proxy.url + "/models").status_code == 200
