"""Chats that the whole pipeline answers: planned in parts, or checked against a schema."""

from __future__ import annotations

import json
import time
import uuid
from collections import OrderedDict
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any, cast

from ...backends import OpenAIBackend
from ..constrain import Constrain
from ..constraints import constraint
from ..dispatcher import Dispatcher
from ..errors import HeadraceError
from ..plan import Plan
from ..shown import shown
from ..types import (
    Event,
    Finished,
    Handler,
    Message,
    Middleware,
    Request,
    Response,
    TextDelta,
    ToolCallDelta,
)
from .config import Config
from .errors import SURROGATES, Failure, encoded, failure_of
from .events import Counts
from .fields import sampling_of
from .policies import Policy
from .sending import STREAM_HEADERS, Sending

FIELD = "headrace"  # of a body: options for this request, which are never sent on
MAX_ENGINES = 32  # callers' keys times models with connections of their own
_OURS = frozenset(
    (
        *("messages", "model", "stream", "stream_options", "response_format", "n", "stop", "seed"),
        *("max_tokens", "max_completion_tokens", "temperature", "top_p", FIELD),
    )
)
# What a pipeline's answer does not have; with one of these the server answers alone.
_ONLY_SERVERS = ("tools", "functions", "logprobs", "top_logprobs", "audio", "modalities")
_PLAIN = (b"content-type", b"application/json")


def is_pipelined(policy: Policy, body: Mapping[str, Any]) -> bool:
    """Whether a chat is answered by the pipeline: the policy wants it, and it can be."""
    if any(body.get(name) for name in _ONLY_SERVERS) or body.get("n") not in (None, 1):
        return False
    if not body.get("messages") or not isinstance(body.get("model"), str):
        return False
    if policy.off:
        return False
    return policy.constrain if _schema(body) is not None else policy.plan != "off"


class Engines:
    """One dispatcher for each server, model and key: callers never share an answer.

    One that falls out of use is not closed, since it may be answering; its connections close when
    nobody holds it any longer.
    """

    def __init__(self) -> None:
        self._made: OrderedDict[tuple[str, str, str], tuple[Config, Dispatcher]] = OrderedDict()

    async def get(self, config: Config, model: str, key: str) -> Dispatcher:
        """Return the dispatcher, made when there is none yet for these settings."""
        name = (config.backend, model, key)
        if name in self._made and self._made[name][0] is config:
            self._made.move_to_end(name)
            return self._made[name][1]
        backend = OpenAIBackend(
            config.backend, model=model, api_key=key, timeout=config.timeout, probe=False
        )
        self._made[name] = config, Dispatcher(backend, retries=config.retries)
        self._made.move_to_end(name)
        if len(self._made) > MAX_ENGINES:
            self._made.popitem(last=False)
        return self._made[name][1]

    async def close(self) -> None:
        """Close all connections."""
        made, self._made = self._made, OrderedDict()
        for _, dispatcher in made.values():
            await dispatcher.close()


async def answer(
    sending: Sending,
    dispatcher: Dispatcher,
    policy: Policy,
    body: Mapping[str, Any],
    counts: Counts,
) -> tuple[str, ...]:
    """Answer a chat, streamed if it asks for that, and return what the stages decided.

    Raises Failure; of a stream, something may have been sent then.
    """
    body = _sendable(body)
    events = _events(dispatcher, policy, _request(body))
    head = {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "created": int(time.time()),
        "model": body["model"],
    }
    try:
        if body.get("stream"):
            options: Any = body.get("stream_options")
            wants_usage = isinstance(options, dict) and bool(
                cast("Any", options).get("include_usage")
            )
            response = await _stream(sending, events, head, wants_usage, counts)
        else:
            response = await _whole(sending, events, head, counts)
    except HeadraceError as error:
        raise failure_of(error) from error
    return tuple(f"{row.stage}: {row.decision}" for row in response.report.stages)


def _sendable(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the body without halves of surrogate pairs, which no engine can be sent, anywhere."""
    text = json.dumps(body, ensure_ascii=False)
    if not SURROGATES.search(text):
        return body
    return cast("dict[str, Any]", json.loads(SURROGATES.sub("\ufffd", text)))


def _request(body: Mapping[str, Any]) -> Request:
    schema = _schema(body)
    try:
        return Request(
            tuple(Message.from_dict(message) for message in body["messages"]),
            constraint=None if schema is None else constraint(schema),
            sampling=sampling_of(body, {k: v for k, v in body.items() if k not in _OURS}),
        )
    except HeadraceError as error:
        raise failure_of(error) from error


def _schema(body: Mapping[str, Any]) -> Any:
    """Return the JSON schema that a body asks for. Raises Failure for one that is no object."""
    wanted: Any = body.get("response_format")
    if not isinstance(wanted, Mapping):
        return None
    fields = cast("Mapping[str, Any]", wanted)
    if fields.get("type") == "json_object":
        return {"type": "object"}
    named = fields.get("json_schema")
    schema: Any = cast("Any", named).get("schema") if isinstance(named, Mapping) else None
    if not isinstance(schema, Mapping | None):
        said = f"response_format.json_schema.schema is an object, got {shown(schema)}"
        raise Failure(400, "invalid_request", said)
    return cast("Any", schema)


def _events(
    dispatcher: Dispatcher, policy: Policy, request: Request
) -> AsyncGenerator[Event, None]:
    stages: list[Middleware] = [Constrain()]
    if policy.plan != "off":
        stages.insert(0, Plan(cast("Any", policy.plan)))
    handler: Handler = dispatcher
    for stage in reversed(stages):
        handler = partial(_call, stage, handler)
    return handler(request)


def _call(stage: Middleware, call_next: Handler, request: Request) -> AsyncGenerator[Event, None]:
    return stage(request, call_next)


async def _whole(
    sending: Sending, events: AsyncGenerator[Event, None], head: dict[str, Any], counts: Counts
) -> Response:
    response = await _last(events, None)
    message: dict[str, Any] = {"role": "assistant", "content": response.text}
    if response.tool_calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in response.tool_calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": response.finish_reason}
    usage = _usage(response, counts)
    whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
    counts.read(whole)
    await sending.whole(200, [_PLAIN], encoded(whole))
    return response


async def _stream(
    sending: Sending,
    events: AsyncGenerator[Event, None],
    head: dict[str, Any],
    wants_usage: bool,
    counts: Counts,
) -> Response:
    async def send(delta: dict[str, Any], reason: str | None = None) -> None:
        if not sending.status:
            await sending.start(200, STREAM_HEADERS)
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        await sending.write(_event({**head, "object": _CHUNK, "choices": [choice]}))

    role: dict[str, Any] = {"role": "assistant"}

    async def pass_on(event: Event) -> None:
        delta: dict[str, Any] = {}
        if isinstance(event, TextDelta):
            delta = {"content": event.text}
        elif isinstance(event, ToolCallDelta):
            function = {"name": event.name, "arguments": event.arguments}
            call = {"index": event.index, "id": event.id, "type": "function"}
            delta = {"tool_calls": [{**call, "function": function}]}
        await send({**role, **delta})
        role.clear()

    response = await _last(events, pass_on)
    await send(dict(role), response.finish_reason)
    usage = _usage(response, counts)
    end = {**head, "object": _CHUNK, "choices": list[Any](), "usage": usage}
    counts.read(end)
    if wants_usage:
        await sending.write(_event(end))
    await sending.end(b"data: [DONE]\n\n")
    return response


_CHUNK = "chat.completion.chunk"


async def _last(events: AsyncGenerator[Event, None], each: Any) -> Response:
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Finished):
                return event.response
            if each is not None:
                await each(event)
    raise HeadraceError("the pipeline ended without an answer")


def _usage(response: Response, counts: Counts) -> dict[str, Any]:
    usage = response.usage
    decided = [{"stage": row.stage, "decision": row.decision} for row in response.report.stages]
    block = dict(counts.block or {})
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "headrace": {
            **block,
            "num_calls": usage.num_calls,
            "stages": [*block.get("stages", ()), *decided],
        },
    }


def _event(data: dict[str, Any]) -> bytes:
    return b"data: " + encoded(data) + b"\n\n"
