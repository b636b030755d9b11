"""The chunks of a streamed chat completion, put together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..middleware.errors import BackendError
from ..middleware.types import (
    Event,
    FinishReason,
    Response,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    Usage,
)

_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}
_FAILURES = ("abort", "error")  # vLLM and SGLang say so when they gave up


@dataclass(slots=True)
class Collector:
    """What a stream has said so far. Servers leave fields out, so nothing is taken for granted."""

    text: str = ""
    finish_reason: FinishReason | None = None
    usage: Usage = field(default_factory=Usage)
    calls: dict[int, ToolCallDelta] = field(default_factory=dict[int, ToolCallDelta])
    is_refused: bool = False  # the model said no, in a field of its own

    def read(self, chunk: Any) -> Iterator[Event]:
        """Take a chunk and yield what is new in it. Raises BackendError when the engine gave up."""
        if usage := getattr(chunk, "usage", None):
            details = getattr(usage, "prompt_tokens_details", None)
            self.usage = Usage(  # the latest count is the whole: some servers send one a chunk
                prompt_tokens=_number(usage, "prompt_tokens"),
                completion_tokens=_number(usage, "completion_tokens"),
                cached_tokens=_number(details, "cached_tokens"),
            )
        for choice in getattr(chunk, "choices", None) or ():
            delta = getattr(choice, "delta", None)
            refusal = getattr(delta, "refusal", None)
            if text := getattr(delta, "content", None) or refusal:
                self.text += text
                yield TextDelta(text)
            for call in getattr(delta, "tool_calls", None) or ():
                yield self._call(call)
            if reason := getattr(choice, "finish_reason", None):
                if reason in _FAILURES:
                    raise BackendError(f"the engine gave up ({reason})", retryable=True)
                self.finish_reason = _REASONS.get(reason, "stop")
            self.is_refused = self.is_refused or bool(refusal)
            if self.is_refused and self.finish_reason is not None:
                self.finish_reason = "content_filter"

    def response(self, finish_reason: FinishReason) -> Response:
        """Return the whole answer."""
        calls = (self.calls[index] for index in sorted(self.calls))
        return Response(
            self.text,
            finish_reason=finish_reason,
            usage=self.usage,
            tool_calls=tuple(ToolCall(c.id, c.name, c.arguments) for c in calls),
        )

    def _call(self, call: Any) -> ToolCallDelta:
        function = getattr(call, "function", None)
        index = getattr(call, "index", None)
        call_id = getattr(call, "id", None) or ""
        if index is None:  # some servers do not number them: an id begins a new call
            index = len(self.calls) if call_id else max(len(self.calls) - 1, 0)
        delta = ToolCallDelta(
            index,
            id=call_id,
            name=getattr(function, "name", None) or "",
            arguments=getattr(function, "arguments", None) or "",
        )
        known = self.calls.get(index, ToolCallDelta(index))
        self.calls[index] = ToolCallDelta(
            index,
            id=known.id or delta.id,
            name=known.name or delta.name,
            arguments=known.arguments + delta.arguments,
        )
        return delta


def _number(holder: Any, name: str) -> int:
    value = getattr(holder, name, None)
    return value if isinstance(value, int) else 0
