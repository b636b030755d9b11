"""Any server that speaks OpenAI's chat completions, through the official client."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit, urlunsplit

from ..middleware.errors import (
    BackendError,
    HeadraceError,
    InvalidRequest,
    ModelUnavailable,
    UnsupportedConstraint,
)
from ..middleware.types import Event, Finished, Request
from .base import Capabilities, Job
from .openai_errors import translate
from .openai_stream import Collector

if TYPE_CHECKING:
    import openai

Outcome = tuple[int, Event | HeadraceError]

_POLL_SECONDS = 0.1  # how soon a cancelled job is noticed
_CONNECT_SECONDS = 5.0
_LEARNT = frozenset({"stream_options", "max_completion_tokens"})
_OURS = frozenset({"stream", "stream_options", "model", "messages"})


class OpenAIBackend:
    """A server at ``base_url``, with or without ``/v1``.

    ``model`` defaults to the first that the server lists. ``api_key`` defaults to the
    environment's OPENAI_API_KEY, and to a placeholder for servers that want none. ``timeout`` is
    the longest silence in seconds. Nothing is retried here: errors say whether to.

    JSON schemas are sent as ``response_format``; whether the server keeps to them has to be
    checked in the answer. Other constraints are refused.
    """

    def __init__(
        self,
        base_url: str,
        *,
        model: str | None = None,
        api_key: str | None = None,
        max_concurrency: int = 16,
        timeout: float = 600.0,
    ) -> None:
        self._base_url = normalize_base_url(base_url)
        self._url = shown_url(self._base_url)
        self._model = model
        self._key = api_key or os.environ.get("OPENAI_API_KEY") or "none"
        self._max_concurrency = max_concurrency
        self._timeout = timeout
        self._capabilities: Capabilities | None = None
        self._client: tuple[asyncio.AbstractEventLoop, openai.AsyncOpenAI] | None = None
        self._refused: set[str] = set()  # fields that this server does not take

    async def capabilities(self) -> Capabilities:
        """Ask the server once for its models.

        Raises BackendError when it cannot be reached, ModelUnavailable when it lists none and
        no model was named.
        """
        if self._capabilities is None:
            listed = await self._list_models()
            if self._model is None and not listed:
                raise ModelUnavailable(f"{self._url} lists no model; name one with model=")
            model = self._model or str(listed[0].id)
            entry = next((entry for entry in listed if entry.id == model), None)
            self._capabilities = Capabilities(
                name="openai",
                model=model,
                max_concurrency=self._max_concurrency,
                constraints=frozenset({"json_schema"}),
                context_length=_context_length(entry),
            )
        return self._capabilities

    async def generate(self, batch: Sequence[Job]) -> AsyncGenerator[Outcome, None]:
        """Answer each job with a request of its own; see ``Backend.generate``."""
        outcomes: asyncio.Queue[Outcome | None] = asyncio.Queue()
        tasks = [asyncio.create_task(self._answer(i, j, outcomes)) for i, j in enumerate(batch)]
        num_open = len(tasks)
        try:
            while num_open:
                for job, task in zip(batch, tasks, strict=True):
                    if job.cancelled:
                        task.cancel()
                try:
                    outcome = await asyncio.wait_for(outcomes.get(), _POLL_SECONDS)
                except TimeoutError:
                    continue
                if outcome is None:
                    num_open -= 1
                elif not batch[outcome[0]].cancelled:
                    yield outcome
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self) -> None:
        """Close the connections. Idempotent; a later call opens new ones."""
        client, self._client = self._client, None
        if client is not None and client[0] is asyncio.get_running_loop():
            await client[1].close()

    async def _answer(self, index: int, job: Job, outcomes: asyncio.Queue[Outcome | None]) -> None:
        """Put one job's outcomes into the queue, and None at the end."""
        try:
            async with aclosing(self._events(job.request)) as events:
                async for event in events:
                    outcomes.put_nowait((index, event))
        except HeadraceError as error:
            outcomes.put_nowait((index, error))
        except Exception as error:
            outcomes.put_nowait(
                (index, self._translated(error, job.request.constraint is not None, job.request))
            )
        finally:
            outcomes.put_nowait(None)

    async def _events(self, request: Request) -> AsyncGenerator[Event, None]:
        body = self._body(request, (await self.capabilities()).model)
        collector = Collector()
        constrained = request.constraint is not None
        try:
            stream = await self._open(body)
        except Exception as error:
            raise self._translated(error, constrained, request) from error
        try:
            async for chunk in stream:
                for event in collector.read(chunk):
                    yield event
        except HeadraceError:
            raise
        except Exception as error:
            if collector.finish_reason is None:
                raise self._translated(error, constrained, request) from error
        finally:
            await stream.close()
        if collector.finish_reason is None:
            raise self._cut(stream.response.headers.get("content-type", ""))
        yield Finished(collector.response(collector.finish_reason))

    def _body(self, request: Request, model: str) -> dict[str, Any]:
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
            "response_format": _response_format(request),
            "stream_options": {"include_usage": True},
            "extra_body": {k: v for k, v in sampling.extra.items() if k not in _OURS},
        }
        given = {name: value for name, value in wanted.items() if value is not None}
        messages = [message.to_dict() for message in request.messages]
        return {"model": model, "messages": messages, "stream": True, **given}

    async def _open(self, body: dict[str, Any]) -> openai.AsyncStream[Any]:
        """Send the request; fields that this server refuses are learnt and left out."""
        import openai

        create = cast("Any", (await self._connect()).chat.completions.create)
        while True:
            try:
                return cast("openai.AsyncStream[Any]", await create(**self._adapted(body)))
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                said = str(error.message)
                news = {name for name in _LEARNT - self._refused if name in said}
                if not news:
                    raise
                self._refused |= news

    def _adapted(self, body: dict[str, Any]) -> dict[str, Any]:
        body = dict(body)
        if "stream_options" in self._refused:
            body.pop("stream_options", None)
        if "max_completion_tokens" in self._refused and "max_tokens" in body:
            body["max_completion_tokens"] = body.pop("max_tokens")  # what OpenAI's newer models say
        return body

    async def _list_models(self) -> list[Any]:
        import openai

        try:
            page = await (await self._connect()).models.list()
        except openai.NotFoundError:  # not every server has this page
            return []
        except Exception as error:
            raise self._translated(error, False) from error
        return list(cast("Any", page).data or ())

    async def _connect(self) -> openai.AsyncOpenAI:
        """Return the client of the running event loop; connections belong to a loop."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._client[0] is not loop:
            import openai

            timeout = openai.Timeout(self._timeout, connect=_CONNECT_SECONDS)
            client = openai.AsyncOpenAI(
                base_url=self._base_url,
                api_key=self._key,
                max_retries=0,
                timeout=timeout,
                # The client's own would close itself when it is collected, on the wrong loop.
                # A redirect would carry the prompt to a host that nobody named.
                http_client=openai.DefaultAsyncHttpxClient(
                    base_url=self._base_url, timeout=timeout, follow_redirects=False
                ),
            )
            self._client = (loop, client)
        return self._client[1]

    def _translated(
        self, error: Exception, constrained: bool, request: Request | None = None
    ) -> HeadraceError:
        prompt = [m.text for m in request.messages] if request else []
        return translate(
            error, url=self._url, key=self._key, constrained=constrained, prompt=prompt
        )

    def _cut(self, content_type: str) -> BackendError:
        if "event-stream" not in content_type:
            return BackendError(
                f"{self._url} answered with {content_type or 'nothing'} instead of an event"
                " stream; check that the URL is the base of an OpenAI-compatible API"
            )
        return BackendError(f"the stream from {self._url} ended in mid-answer", retryable=True)


def normalize_base_url(url: str) -> str:
    """Return the base of the API: ``/v1`` is added to a bare host and to nothing else.

    Raises InvalidRequest when it is no http or https URL.

    >>> normalize_base_url("http://localhost:8000/")
    'http://localhost:8000/v1'
    """
    try:
        parts = urlsplit(url.strip())
        is_http = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a malformed address or port
        is_http, parts = False, urlsplit("")
    if not is_http:
        raise InvalidRequest(
            f"not an http(s) URL: {shown_url(url)!r:.100}; write http://host:port/v1"
        )
    path = parts.path.rstrip("/").removesuffix("/chat/completions").rstrip("/")
    return urlunsplit((parts.scheme, parts.netloc, path or "/v1", parts.query, ""))


def shown_url(url: str) -> str:
    """Return the URL as it may be shown: without user name, password and query.

    >>> shown_url("http://ann:secret@host:port/v1?key=secret")
    'http://host:port/v1'
    """
    return re.sub(r"//[^/@\s]*@", "//", re.split(r"[?#]", url.strip(), maxsplit=1)[0])


def _response_format(request: Request) -> dict[str, Any] | None:
    constraint = request.constraint
    if constraint is None:
        return None
    if constraint.kind != "json_schema" or not isinstance(constraint.spec, str):
        raise UnsupportedConstraint(
            f"a server is asked for json_schema only, not for {constraint.kind};"
            " use the transformers backend, or write it as a JSON schema"
        )
    schema = {"name": "answer", "strict": True, "schema": json.loads(constraint.spec)}
    return {"type": "json_schema", "json_schema": schema}


def _context_length(entry: Any) -> int | None:
    """Return what vLLM and SGLang (max_model_len) or llama.cpp (meta.n_ctx) say, else None."""
    fields: dict[str, Any] = getattr(entry, "model_extra", None) or {}
    meta: dict[str, Any] = fields.get("meta") or {}
    length = fields.get("max_model_len") or meta.get("n_ctx")
    return length if isinstance(length, int) else None
