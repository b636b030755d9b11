"""Spans in OpenTelemetry's conventions for generative AI, where its API is installed.

The conventions have status Development and were renamed twice, so each name stands in one table.
``OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental`` chooses the newest ones, as in other
instrumentations; without it, those of semantic conventions 1.36. Source: the repository
open-telemetry/semantic-conventions-genai.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Any, cast
from urllib.parse import urlsplit

from .config import Config
from .events import Counts
from .metrics import Record
from .sending import Headers

LATEST = "gen_ai_latest_experimental"
NAMES: dict[str, tuple[str, str]] = {  # what it is: (semantic conventions 1.36, newest)
    "operation": ("gen_ai.operation.name", "gen_ai.operation.name"),
    "provider": ("gen_ai.system", "gen_ai.provider.name"),
    "request_model": ("gen_ai.request.model", "gen_ai.request.model"),
    "response_model": ("gen_ai.response.model", "gen_ai.response.model"),
    "finish_reasons": ("gen_ai.response.finish_reasons", "gen_ai.response.finish_reasons"),
    "max_tokens": ("gen_ai.request.max_tokens", "gen_ai.request.max_tokens"),
    "temperature": ("gen_ai.request.temperature", "gen_ai.request.temperature"),
    "top_p": ("gen_ai.request.top_p", "gen_ai.request.top_p"),
    "input_tokens": ("gen_ai.usage.input_tokens", "gen_ai.usage.input_tokens"),
    "output_tokens": ("gen_ai.usage.output_tokens", "gen_ai.usage.output_tokens"),
    "cached_tokens": ("", "gen_ai.usage.cache_read.input_tokens"),
    "messages": ("", "gen_ai.input.messages"),
    "address": ("server.address", "server.address"),
    "port": ("server.port", "server.port"),
    "error": ("error.type", "error.type"),
}
_OPERATIONS = {"chat": "chat", "messages": "chat", "responses": "chat"}
_PROVIDERS = {
    "api.openai.com": "openai",
    "api.anthropic.com": "anthropic",
    "api.mistral.ai": "mistral_ai",
    "api.groq.com": "groq",
    "api.deepseek.com": "deepseek",
}


class Tracer:
    """Makes one span a request, which covers every time it is sent. ``provider`` is for tests."""

    def __init__(self, provider: Any = None) -> None:
        try:
            from opentelemetry import trace
        except ImportError:
            self._tracer: Any = None
        else:
            self._tracer = trace.get_tracer("headrace", tracer_provider=provider)

    @contextmanager
    def span(
        self,
        config: Config,
        record: Record,
        body: Mapping[str, Any],
        headers: Headers,
        *,
        since: int | None = None,
    ) -> Generator[dict[str, str]]:
        """Trace the block; yields headers that carry the trace on. ``end`` completes it.

        ``since`` is when it began, in nanoseconds of the epoch, if that was not now.
        """
        record.is_traced = True
        if self._tracer is None:
            yield {}
            return
        from opentelemetry import propagate, trace

        carrier = {k.decode("latin-1"): v.decode("latin-1") for k, v in headers}
        operation = _OPERATIONS.get(record.route, "text_completion")
        with self._tracer.start_as_current_span(
            f"{operation} {record.model}".strip(),
            context=propagate.extract(carrier),
            kind=trace.SpanKind.CLIENT,
            attributes=_named(_asked(config, record, body, operation)),
            start_time=since,
            record_exception=False,
            set_status_on_exception=False,
        ):
            onward: dict[str, str] = {}
            propagate.inject(onward)
            yield onward

    def refused(self, config: Config, record: Record, headers: Headers) -> None:
        """Trace a request that is over and was not read, so that nothing of its body is known."""
        since = time.time_ns() - round(record.seconds * 1e9)
        with self.span(config, record, {}, headers, since=since):
            self.end(record, Counts())

    def end(self, record: Record, counts: Counts) -> None:
        """Put what came back on the span that is open."""
        if self._tracer is None:
            return
        from opentelemetry import trace

        span = trace.get_current_span()
        span.set_attributes(
            _named(
                {
                    "response_model": counts.model,
                    "finish_reasons": counts.finish_reasons,
                    "input_tokens": counts.prompt_tokens,
                    "output_tokens": counts.completion_tokens,
                    "cached_tokens": counts.cached_tokens,
                    "error": record.error or (str(record.status) if record.status >= 400 else ""),
                }
            )
        )
        span.set_attribute("headrace.decision", record.decision)
        if record.tokens_before:
            span.set_attribute("headrace.tokens.before", record.tokens_before)
            span.set_attribute("headrace.tokens.after", record.tokens_after)
        if record.error or record.status >= 400:
            span.set_status(trace.StatusCode.ERROR)


def _asked(
    config: Config, record: Record, body: Mapping[str, Any], operation: str
) -> dict[str, Any]:
    server = urlsplit(config.backend)
    found: dict[str, Any] = {
        "operation": operation,
        "provider": _PROVIDERS.get(server.hostname or "", "_OTHER"),
        "request_model": record.model,
        "address": server.hostname,
        "port": server.port,
        "max_tokens": body.get("max_completion_tokens") or body.get("max_tokens"),
        "temperature": body.get("temperature"),
        "top_p": body.get("top_p"),
    }
    if config.trace_prompts:
        said: Any = body.get("messages") or body.get("input") or body.get("prompt")
        found["messages"] = json.dumps([_message(one) for one in _many(said, "content")])
    return found


def _message(said: Any) -> dict[str, Any]:
    """Return a message as the conventions write it."""
    message = cast("dict[str, Any]", said) if isinstance(said, dict) else {"content": str(said)}
    written = [
        {"type": "text", "content": part["text"]} if "text" in part else part
        for part in _many(message.get("content") or "", "text")
    ]
    return {"role": message.get("role", "user"), "parts": written}


def _named(values: Mapping[str, Any]) -> dict[str, Any]:
    chosen = os.environ.get("OTEL_SEMCONV_STABILITY_OPT_IN", "").replace(" ", "").split(",")
    column = 1 if LATEST in chosen else 0
    named = {NAMES[key][column]: value for key, value in values.items() if value not in (None, "")}
    named.pop("", None)
    return {name: value for name, value in named.items() if value != []}


def _many(value: Any, name: str) -> list[Any]:
    return [*cast("Iterable[Any]", value)] if isinstance(value, list) else [{name: value}]
