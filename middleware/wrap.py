"""Somebody's client of an API, with headrace in front of what it sends.

The clients of OpenAI and Anthropic send every request through their ``post``, whichever method
makes it (create, parse, stream, with_raw_response, a later one), so that is where headrace stands.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeVar, cast

from .blocking import Loop
from .errors import InvalidRequest
from .report import Report
from .wrap_bodies import Kind, kind_of
from .wrap_options import Options
from .wrap_prepare import Prepared, prepare

Client = TypeVar("Client")
FIELD = "headrace"


def wrap(client: Client, **options: Any) -> Client:
    """Return the client with headrace in front of what it sends.

    ``client`` is an OpenAI, AsyncOpenAI, Anthropic or AsyncAnthropic, or one of their subclasses
    (Azure, ...). The result has the same type, settings and connections; the given client stays as
    it is. ``options`` are those of ``Options`` (rate=0.5, compressor="lexical", ...) for every
    request, and ``extra_body={"headrace": {...}}`` puts others over them for one; it is taken out
    before the request is sent.

    Chat completions, completions, responses and Anthropic's messages are changed, with ``create``,
    ``parse``, ``stream`` and their raw forms; everything else passes. System prompts, tools, tool
    calls, their results and ids, images, formats and the last user message are not touched unless
    an option says so. Part of a message is cut for the question when it is marked
    (``{"type": "text", "text": ..., "headrace": "document"}``), and left alone with "keep".

    What was done is in ``response.headrace``, a ``Report``, also on a stream.

    Raises InvalidRequest for another client and for options that there are not.
    """
    kind = type(client)
    post = getattr(kind, "post", None)
    if post is None or not hasattr(client, "max_retries"):
        raise InvalidRequest(f"wrap takes a client of openai or anthropic, got {client!r:.80}")
    fixed = Options.of(options)
    made = (
        _asynchronous(fixed, post) if inspect.iscoroutinefunction(post) else _blocking(fixed, post)
    )
    wrapped: Any = copy.copy(client)
    names = {"__module__": kind.__module__, "__doc__": kind.__doc__, "post": made}
    # Of the type itself, so that what the client makes of itself (with_options) has it too.
    wrapped.__class__ = type(kind.__name__, (kind,), names)
    held: dict[str, Any] = wrapped.__dict__
    for name in [name for name in held if _is_resource(kind, name)]:
        del held[name]  # made for the given client, and bound to it
    return cast("Client", wrapped)


def report_of(response: Any) -> Report | None:
    """Return what headrace did to the request behind a response or stream, None: not there."""
    for holder in (response, getattr(response, "_raw_stream", None)):
        if isinstance(found := getattr(holder, FIELD, None), Report):
            return found
    return None


def _blocking(fixed: Options, send: Any) -> Any:
    def post(self: Any, path: str, **call: Any) -> Any:
        kind, body, options = _taken(fixed, path, call)
        if kind is None:
            return send(self, path, **call)
        prepared = _loop().run(prepare(kind, body, options))
        return _told(send(self, path, **{**call, "body": prepared.body}), prepared)

    return post


def _asynchronous(fixed: Options, send: Any) -> Any:
    async def post(self: Any, path: str, **call: Any) -> Any:
        kind, body, options = _taken(fixed, path, call)
        if kind is None:
            return await send(self, path, **call)
        prepared = await prepare(kind, body, options)
        return _told(await send(self, path, **{**call, "body": prepared.body}), prepared)

    return post


def _taken(
    fixed: Options, path: str, call: dict[str, Any]
) -> tuple[Kind | None, Mapping[str, Any], Options]:
    """Return what is sent and what is asked of headrace, which is taken out of the call."""
    body: Any = call.get("body")
    settings: dict[str, Any] = dict(call.get("options") or {})
    extra: Any = settings.get("extra_json")
    asked: Any = None
    if isinstance(extra, Mapping) and FIELD in extra:
        rest = dict(cast("Mapping[str, Any]", extra))
        asked = rest.pop(FIELD)
        call["options"] = {**settings, "extra_json": rest}
    kind = kind_of(path)
    if kind is None and asked is not None:
        raise InvalidRequest(f"headrace has no options for requests to {path}")
    if not isinstance(body, Mapping):
        return None, {}, fixed
    return kind, cast("Mapping[str, Any]", body), fixed.merged(asked)


def _told(response: Any, prepared: Prepared) -> Any:
    # Not through pydantic, which would take it for a field of the server's.
    object.__setattr__(response, FIELD, prepared.report)
    return response


def _is_resource(kind: type, name: str) -> bool:
    return type(inspect.getattr_static(kind, name, None)).__name__ == "cached_property"


@lru_cache(maxsize=1)
def _loop() -> Loop:
    return Loop()
