"""An OpenAI-compatible server over real HTTP, in a thread, whose answers a test scripts."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request as HTTPRequest
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from headrace.backends import Backend, Job
from headrace.middleware.errors import HeadraceError
from headrace.middleware.types import (
    Constraint,
    Finished,
    Message,
    Request,
    Sampling,
    TextDelta,
)

Answering = Callable[[dict[str, Any]], Awaitable[Response]]
DONE = b"data: [DONE]\n\n"
KEY = "sk-very-secret-1234567890"


@dataclass
class Server:
    """A server in a thread. ``script`` answers chat completions; bodies are kept.

    ``pages`` are what else it has, by path; ``asked`` are the paths that were asked for, and
    ``page_status`` what it answers for the others. ``headers`` are those of its list of models,
    ``connections`` what each completion's header of that name said.
    """

    url: str
    script: Answering | None = None
    models: list[dict[str, Any]] = field(
        default_factory=lambda: [{"id": "tiny", "object": "model"}]
    )
    bodies: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    keys: list[str] = field(default_factory=list[str])
    pages: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    asked: list[str] = field(default_factory=list[str])
    page_status: int = 404
    headers: dict[str, str] = field(default_factory=dict[str, str])
    connections: list[str] = field(default_factory=list[str])
    num_aborted: int = 0

    async def list_models(self, request: HTTPRequest) -> Response:
        return JSONResponse({"object": "list", "data": self.models}, headers=self.headers)

    async def page(self, request: HTTPRequest) -> Response:
        self.asked.append(request.url.path)
        if request.url.path in self.pages:
            return JSONResponse(self.pages[request.url.path])
        return JSONResponse({"detail": "Not Found"}, self.page_status)

    async def complete(self, request: HTTPRequest) -> Response:
        self.bodies.append(await request.json())
        self.keys.append(request.headers["authorization"])
        self.connections.append(request.headers["connection"])
        assert self.script is not None
        return await self.script(self.bodies[-1])


@contextmanager
def serving() -> Iterator[Server]:
    """Run a server on a free port of the loopback for as long as the block lasts."""
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    state = Server(f"http://127.0.0.1:{sock.getsockname()[1]}")
    routes = [
        Route("/v1/models", state.list_models),
        Route("/v1/chat/completions", state.complete, methods=["POST"]),
        Route("/{path:path}", state.page),
    ]
    config = uvicorn.Config(
        Starlette(routes=routes),
        log_level="critical",
        lifespan="off",
        ws="none",
        server_header=False,
    )
    runner = uvicorn.Server(config)
    thread = threading.Thread(target=runner.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    yield state
    runner.should_exit = runner.force_exit = True
    thread.join(10)
    sock.close()


def chunk(delta: dict[str, Any] | None = None, reason: str | None = None, **fields: Any) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": reason}]
    data = {"id": "c", "object": "chat.completion.chunk", "choices": choices, **fields}
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def _constraint(body: dict[str, Any]) -> Constraint | None:
    """Read response_format and vLLM's structured_outputs, and as servers do nothing else."""
    wanted: dict[str, Any] = body.get("structured_outputs") or {}
    if (body.get("response_format") or {}).get("type") == "json_schema":
        wanted = {"json": body["response_format"]["json_schema"]["schema"]}
    if "json" in wanted:
        return Constraint("json_schema", json.dumps(wanted["json"]))
    if "regex" in wanted:
        return Constraint("regex", wanted["regex"])
    return Constraint("choice", tuple(wanted["choice"])) if "choice" in wanted else None


def serves(engine: Backend) -> Answering:
    """Serve an engine as /v1/chat/completions, streamed or whole."""

    async def script(body: dict[str, Any]) -> Response:
        constraint = _constraint(body)
        messages = tuple(Message.from_dict(message) for message in body["messages"])
        sampling = Sampling(max_tokens=body.get("max_tokens"))
        request = Request(messages, constraint=constraint, sampling=sampling)

        async def stream() -> AsyncIterator[bytes]:
            async for _, event in engine.generate([Job(request)]):
                if isinstance(event, TextDelta):
                    yield chunk({"content": event.text})
                    continue
                assert isinstance(event, Finished)
                usage = event.response.usage
                counts = {
                    "prompt_tokens": usage.prompt_tokens,
                    "completion_tokens": usage.completion_tokens,
                }
                yield chunk({}, event.response.finish_reason) + chunk(usage=counts) + DONE

        async def whole() -> dict[str, Any]:
            async for _, event in engine.generate([Job(request)]):
                assert not isinstance(event, HeadraceError)
                if isinstance(event, Finished):
                    message = {"role": "assistant", "content": event.response.text}
                    reason = event.response.finish_reason
                    choice = {"index": 0, "message": message, "finish_reason": reason}
                    return {"id": "c", "object": "chat.completion", "choices": [choice]}
            raise AssertionError("the engine did not finish")

        if body.get("stream"):
            return StreamingResponse(stream(), media_type="text/event-stream")
        return JSONResponse(await whole())

    return script


HELLO = [
    chunk({"role": "assistant", "content": ""}),
    chunk({"content": "Hello"}),
    chunk({}, "stop"),
]


def sends(*pieces: bytes, pause: float = 0.0, content_type: str = "text/event-stream") -> Answering:
    async def script(body: dict[str, Any]) -> Response:
        async def stream() -> AsyncIterator[bytes]:
            for piece in pieces:
                yield piece
                await asyncio.sleep(pause)

        return StreamingResponse(stream(), media_type=content_type)

    return script


def fails(
    status: int, message: str = "no", headers: dict[str, str] | None = None, **error: Any
) -> Answering:
    async def script(body: dict[str, Any]) -> Response:
        return JSONResponse({"error": {"message": message, **error}}, status, headers)

    return script
