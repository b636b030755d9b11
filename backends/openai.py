"""Any server that speaks OpenAI's chat completions, through the official client."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, get_args
from urllib.parse import urlsplit

from ..middleware.errors import BackendError, HeadraceError, InvalidRequest, ModelUnavailable
from ..middleware.types import ConstraintKind, Event, Finished, Request
from .base import Capabilities, Job
from .fan import Outcome, each
from .openai_client import Client
from .openai_constraints import Constraints
from .openai_stream import Collector
from .openai_urls import normalize_base_url, shown_url

_SHARES_PREFIXES = ("vllm", "sglang")  # in blocks for all requests
_CACHES_ROWS = ("llama.cpp", "llamacpp")  # as the dialect and as the owner of its models
_OURS = frozenset({"stream", "stream_options", "model", "messages"})


class OpenAIBackend:
    """A server at ``base_url``, with or without ``/v1``.

    ``model`` defaults to the first that the server lists. ``api_key`` defaults to the
    environment's OPENAI_API_KEY, and to a placeholder for servers that want none. ``timeout`` is
    the longest silence in seconds. Nothing is retried here: errors say whether to.

    A constraint is sent in the field that this server is found to keep, else in words; which it
    was is in the response's ``enforced`` (docs/servers.md). ``constraints`` names the dialect
    ("vllm", "vllm-guided", "sglang", "llama.cpp", "tgi", "ollama", "openai") of a server that
    does not say what it is; ``probe=False`` sends it nothing but the requests themselves.
    """

    def __init__(
        self,
        base_url: str,
        *,
        model: str | None = None,
        api_key: str | None = None,
        max_concurrency: int = 16,
        timeout: float = 600.0,
        constraints: str | None = None,
        probe: bool = True,
    ) -> None:
        self._base_url = normalize_base_url(base_url)
        self._url = shown_url(self._base_url)
        self._model = model
        key = api_key or os.environ.get("OPENAI_API_KEY") or "none"
        self._client = Client(self._base_url, key, timeout)
        self._max_concurrency = max_concurrency
        self._capabilities: Capabilities | None = None
        self._owner = ""  # of the model, as the server lists it
        self._constraints = Constraints(
            self._send,
            self._client.page,
            host=urlsplit(self._base_url).hostname or "",
            named=constraints,
            is_probing=probe,
        )

    async def capabilities(self) -> Capabilities:
        """Ask the server once for its models.

        Raises BackendError when it cannot be reached, ModelUnavailable when it lists none and
        no model was named.
        """
        if self._capabilities is None:
            listed = await self._client.models()
            if self._model is None and not listed:
                raise ModelUnavailable(f"{self._url} lists no model; name one with model=")
            model = self._model or str(listed[0].id)
            entry = next((entry for entry in listed if entry.id == model), None)
            self._owner = str(getattr(entry, "owned_by", None) or "")
            self._capabilities = Capabilities(
                name="openai",
                model=model,
                max_concurrency=self._max_concurrency,
                constraints=frozenset(get_args(ConstraintKind)),
                context_length=_context_length(entry),
                has_prefix_cache=self._owner in _SHARES_PREFIXES,
                has_row_caches=self._owner in _CACHES_ROWS,
            )
        server = self._constraints.server
        if server is not None and not self._capabilities.engine:
            self._capabilities = replace(
                self._capabilities,
                engine=f"{server.dialect} {server.version}".rstrip(),
                context_length=self._capabilities.context_length or server.context_length,
                has_prefix_cache=server.dialect in _SHARES_PREFIXES,
                has_row_caches=server.dialect in _CACHES_ROWS,
            )
        return self._capabilities

    async def generate(self, batch: Sequence[Job]) -> AsyncGenerator[Outcome, None]:
        """Answer each job with a request of its own; see ``Backend.generate``."""

        def explain(error: Exception, request: Request) -> HeadraceError:
            return self._client.translated(error, False, request)

        async with aclosing(each(batch, self._events, explain)) as outcomes:
            async for outcome in outcomes:
                yield outcome

    async def close(self) -> None:
        """Close the connections. Idempotent; a later call opens new ones."""
        self._constraints.close()
        await self._client.close()

    def _events(self, request: Request) -> AsyncGenerator[Event, None]:
        return self._send(request, {}) if request.constraint is None else self._held(request)

    async def _held(self, request: Request) -> AsyncGenerator[Event, None]:
        assert request.constraint is not None
        model = (await self.capabilities()).model
        events = self._constraints.events(request, request.constraint, model, self._owner)
        async with aclosing(events):
            async for event in events:
                yield event

    async def _send(
        self, request: Request, fields: Mapping[str, Any]
    ) -> AsyncGenerator[Event, None]:
        """Send one request with ``fields``, which carry a constraint, added to its body."""
        body = self._body(request, (await self.capabilities()).model, fields)
        collector = Collector()
        constrained = bool(fields)
        try:
            stream = await self._client.stream(body)
        except Exception as error:
            raise self._client.translated(error, constrained, request) from error
        try:
            async for chunk in stream:
                for event in collector.read(chunk):
                    yield event
        except HeadraceError:
            raise
        except Exception as error:
            if collector.finish_reason is None:
                raise self._client.translated(error, constrained, request) from error
        finally:
            await stream.close()
        if collector.finish_reason is None:
            raise self._cut(stream.response.headers.get("content-type", ""))
        yield Finished(collector.response(collector.finish_reason))

    def _body(self, request: Request, model: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of the request, in the client's names."""
        sampling = request.sampling
        if sampling.extra.get("n") not in (None, 1):
            raise InvalidRequest(f"one answer a request, got n={sampling.extra['n']!r}")
        wanted: dict[str, Any] = {
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": sampling.seed,
            "stop": list(sampling.stop) or None,
            "stream_options": {"include_usage": True},
            "extra_body": {k: v for k, v in sampling.extra.items() if k not in _OURS} | {**fields},
        }
        given = {name: value for name, value in wanted.items() if value is not None}
        messages = [message.to_dict() for message in request.messages]
        return {"model": model, "messages": messages, "stream": True, **given}

    def _cut(self, content_type: str) -> BackendError:
        if "event-stream" not in content_type:
            return BackendError(
                f"{self._url} answered with {content_type or 'nothing'} instead of an event"
                " stream; check that the URL is the base of an OpenAI-compatible API"
            )
        return BackendError(f"the stream from {self._url} ended in mid-answer", retryable=True)


def _context_length(entry: Any) -> int | None:
    """Return what vLLM and SGLang (max_model_len) or llama.cpp (meta.n_ctx) say, else None."""
    fields: dict[str, Any] = getattr(entry, "model_extra", None) or {}
    meta: dict[str, Any] = fields.get("meta") or {}
    length = fields.get("max_model_len") or meta.get("n_ctx")
    return length if isinstance(length, int) else None
