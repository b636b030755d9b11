"""Spans of the proxy, in both versions of the conventions."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from engine.proxied import LEXICAL, Start, chat, history, until
from engine.upstream import Upstream, says
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from headrace.middleware.proxy.routes import Routes
from headrace.middleware.proxy.tracing import LATEST, Tracer

PATH = "/chat/completions"
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
