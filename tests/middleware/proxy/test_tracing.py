"""Spans of the proxy, in both versions of the conventions."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from engine.proxied import LEXICAL, Start, asking, chat, history, until
from engine.upstream import (
    DONE,
    HELLO,
    USAGE,
    Upstream,
    completion,
    event,
    hangs,
    posts,
    says,
    streams,
)
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from headrace.middleware.proxy.routes import Routes
from headrace.middleware.proxy.tracing import LATEST, Tracer

PATH = "/chat/completions"
KEY = {"authorization": "Bearer hr-ann"}
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def spans() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def routes(spans: InMemorySpanExporter) -> Routes:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    return Routes(tracer=Tracer(provider))


def only(spans: InMemorySpanExporter) -> tuple[ReadableSpan, dict[str, Any]]:
    until(lambda: len(spans.get_finished_spans()) == 1)
    [span] = spans.get_finished_spans()
    return span, dict(span.attributes or {})


@pytest.mark.parametrize("is_latest", [False, True])
def test_a_request_is_one_span(
    is_latest: bool,
    server: Upstream,
    start: Start,
    http: httpx.Client,
    routes: Routes,
    spans: InMemorySpanExporter,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_SEMCONV_STABILITY_OPT_IN", f"http,{LATEST}" if is_latest else "")
    proxy = start(LEXICAL, routes)
    headers = {"traceparent": PARENT}
    http.post(proxy.url + PATH, json=history(temperature=0.5, max_tokens=9), headers=headers)
    span, said = only(spans)
    assert (span.name, span.kind) == ("chat tiny", SpanKind.CLIENT)
    assert said["gen_ai.provider.name" if is_latest else "gen_ai.system"] == "_OTHER"
    assert "gen_ai.system" not in said or not is_latest
    assert said["gen_ai.operation.name"] == "chat"
    assert said["gen_ai.request.model"] == said["gen_ai.response.model"] == "tiny"
    assert (said["gen_ai.request.temperature"], said["gen_ai.request.max_tokens"]) == (0.5, 9)
    assert (said["gen_ai.usage.input_tokens"], said["gen_ai.usage.output_tokens"]) == (9, 2)
    assert said["gen_ai.response.finish_reasons"] == ("stop",)
    assert said["server.address"] == "127.0.0.1"
    assert said["headrace.decision"] == "changed"
    assert said["headrace.tokens.before"] > said["headrace.tokens.after"]
    assert not any("mill" in str(value) for value in said.values())
    assert span.context is not None
    trace = f"{span.context.trace_id:032x}"
    assert trace in PARENT
    assert server.seen[-1].headers["traceparent"].startswith(f"00-{trace}")
    assert server.seen[-1].headers["traceparent"] != PARENT


def test_retries_are_one_span_and_errors_are_typed(
    server: Upstream,
    start: Start,
    http: httpx.Client,
    routes: Routes,
    spans: InMemorySpanExporter,
) -> None:
    proxy = start("retries = 2\n", routes)
    server.script = says({"error": {"message": "full"}}, 503, {"retry-after": "0"})
    http.post(proxy.url + PATH, json=chat("a private prompt"))
    span, said = only(spans)
    assert len(server.seen) == 3
    assert said["error.type"] == "503"
    assert span.status.status_code is StatusCode.ERROR
    assert not span.events
    assert "a private prompt" not in str(said)


def test_prompts_are_traced_only_when_asked_for(
    server: Upstream,
    start: Start,
    http: httpx.Client,
    routes: Routes,
    spans: InMemorySpanExporter,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_SEMCONV_STABILITY_OPT_IN", LATEST)
    http.post(start("trace_prompts = true\n", routes).url + PATH, json=chat("Who?"))
    messages = json.loads(only(spans)[1]["gen_ai.input.messages"])
    assert messages == [{"role": "user", "parts": [{"type": "text", "content": "Who?"}]}]


@pytest.mark.parametrize("is_asked", [False, True])
@pytest.mark.parametrize("conventions", ["", LATEST])
@pytest.mark.parametrize(
    ("path", "body", "operation"),
    [
        (PATH, chat("a private prompt"), "chat"),
        ("/responses", {"model": "tiny", "input": "a private prompt"}, "chat"),
        ("/completions", {"model": "tiny", "prompt": "a private prompt"}, "text_completion"),
    ],
)
def test_a_prompt_is_in_a_span_only_when_asked_for_in_the_newest_conventions(
    path: str,
    body: dict[str, Any],
    operation: str,
    conventions: str,
    is_asked: bool,
    server: Upstream,
    start: Start,
    http: httpx.Client,
    routes: Routes,
    spans: InMemorySpanExporter,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_SEMCONV_STABILITY_OPT_IN", conventions)
    server.script = says(completion("a private answer"))
    http.post(start(f"trace_prompts = {str(is_asked).lower()}\n", routes).url + path, json=body)
    span, said = only(spans)
    assert said["gen_ai.operation.name"] == operation
    everything = f"{span.name} {said} {span.events} {span.status.description}"
    assert ("a private prompt" in everything) == (is_asked and conventions == LATEST)
    assert "a private answer" not in everything


def test_a_stream_is_one_span_that_ends_with_it(
    server: Upstream,
    start: Start,
    routes: Routes,
    spans: InMemorySpanExporter,
) -> None:
    with start("", routes).client() as client:
        create: Any = client.chat.completions.create
        stream = create(**chat("a private prompt"), stream=True)
        assert len(list(stream)) == 2
    _, said = only(spans)
    assert (said["gen_ai.usage.input_tokens"], said["gen_ai.usage.output_tokens"]) == (9, 2)
    assert said["gen_ai.response.finish_reasons"] == ("stop",)
    assert said["gen_ai.response.model"] == "tiny"
    assert "error.type" not in said
    assert "a private prompt" not in str(said)


def test_a_broken_stream_and_a_refused_option_are_errors_of_their_span(
    server: Upstream,
    start: Start,
    http: httpx.Client,
    routes: Routes,
    spans: InMemorySpanExporter,
) -> None:
    proxy = start("", routes)
    server.script = streams(*HELLO, cut=True)
    http.post(proxy.url + PATH, json=chat(stream=True))
    http.post(proxy.url + PATH, json=chat(headrace={"rte": 1}))
    until(lambda: len(spans.get_finished_spans()) == 2)
    found = [dict(span.attributes or {}) for span in spans.get_finished_spans()]
    assert [one["error.type"] for one in found] == ["upstream_closed", "invalid_request"]
    assert [one["headrace.decision"] for one in found] == ["off", "refused"]
    assert all(s.status.status_code is StatusCode.ERROR for s in spans.get_finished_spans())


def test_a_caller_who_leaves_ends_the_span(
    server: Upstream, start: Start, routes: Routes, spans: InMemorySpanExporter
) -> None:
    server.script = hangs()
    with asking(start("", routes).url + PATH, chat()):
        until(lambda: len(server.seen) == 1)
    _, said = only(spans)
    assert said["gen_ai.request.model"] == "tiny"


def test_a_planned_answer_is_one_span(
    server: Upstream, start: Start, routes: Routes, spans: InMemorySpanExporter
) -> None:
    server.script = posts(streams(event({"content": "A part."}, "stop"), event(usage=USAGE), DONE))
    listed = "Translate each sentence to French:\n1. One mill.\n2. Two mills.\n3. Three mills."
    with start('[models."*"]\nplan = "map"\n', routes).client() as client:
        client.chat.completions.create(**chat(listed))
    _, said = only(spans)
    assert (said["gen_ai.usage.input_tokens"], said["gen_ai.usage.output_tokens"]) == (27, 6)
    assert said["gen_ai.response.finish_reasons"] == ("stop",)
    assert "mill" not in str(said)


@pytest.mark.parametrize(
    ("status", "code", "decision", "asked"),
    [
        (401, "invalid_api_key", "refused", {"json": chat()}),
        (413, "request_too_large", "refused", {"content": b"x" * 6000, "headers": KEY}),
        (400, "400", "unread", {"content": b"[1]", "headers": KEY}),
    ],
)
def test_a_request_that_is_not_read_has_a_span_too(
    status: int,
    code: str,
    decision: str,
    asked: dict[str, Any],
    server: Upstream,
    start: Start,
    http: httpx.Client,
    routes: Routes,
    spans: InMemorySpanExporter,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OUR_KEYS", "hr-ann")
    server.script = says({"error": {"message": "no"}}, 400)
    proxy = start('max_body = 5000\nkeys_env = "OUR_KEYS"\n', routes)
    headers = {"traceparent": PARENT, **asked.get("headers", {})}
    answer = http.post(proxy.url + PATH, **{**asked, "headers": headers})
    assert answer.status_code == status
    span, said = only(spans)
    assert (span.name, span.kind) == ("chat", SpanKind.CLIENT)
    assert (said["error.type"], said["headrace.decision"]) == (code, decision)
    assert span.status.status_code is StatusCode.ERROR
    assert span.parent is not None
    assert f"{span.parent.trace_id:032x}" in PARENT
    assert (span.start_time or 0) <= (span.end_time or 0)
    http.get(proxy.url + "/models", headers=KEY)
    until(lambda: proxy.metric("requests_total", route="other", policy="*", status="400") == 1)
    assert len(spans.get_finished_spans()) == 1  # what is not read on purpose has none
