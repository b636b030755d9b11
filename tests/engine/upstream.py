"""A server over real HTTP that answers any path as a test scripts it, and notes who went away."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

Script = Callable[[Request], Awaitable[Response]]
DONE = b"data: [DONE]\n\n"
USAGE = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}


@dataclass(frozen=True)
class Seen:
    """A request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


@dataclass
class Upstream:
    """``url`` is the base of its API. ``script`` answers; ``aborted`` is set when a caller left."""

    url: str
    script: Script
    seen: list[Seen] = field(default_factory=list[Seen])
    aborted: threading.Event = field(default_factory=threading.Event)

    async def answer(self, request: Request) -> Response:
        raw = await request.body()
        self.seen.append(Seen(request.method, request.url.path, dict(request.headers), raw))
        request.state.upstream = self
        return await self.script(request)


@contextmanager
def running(script: Script) -> Iterator[Upstream]:
    """Run a server on a free port of the loopback for as long as the block lasts."""
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    sock.listen()
    state = Upstream(f"http://127.0.0.1:{sock.getsockname()[1]}/v1", script)
    methods = ["GET", "POST", "DELETE", "PUT", "PATCH"]
    app = Starlette(routes=[Route("/{path:path}", state.answer, methods=methods)])
    config = uvicorn.Config(
        app, log_level="critical", lifespan="off", ws="none", server_header=False, http="h11"
    )
    runner = uvicorn.Server(config)
    thread = threading.Thread(target=runner.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    yield state
    runner.should_exit = runner.force_exit = True
    thread.join(10)
    sock.close()


def says(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Script:
    """Answer every request with a JSON value."""

    async def script(request: Request) -> Response:
        return JSONResponse(body, status, dict(headers or {}))

    return script


def completion(text: str = "Hello", **fields: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "tiny",
        "choices": [choice],
        "usage": USAGE,
        **fields,
    }


def event(delta: Mapping[str, Any] | None = None, reason: str | None = None, **more: Any) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": reason}]
    data = {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "tiny",
        "choices": choices,
        **more,
    }
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


HELLO = (event({"role": "assistant", "content": "Hel"}), event({"content": "lo"}, "stop"))


def streams(*pieces: bytes, pause: float = 0.0, before: float = 0.0, cut: bool = False) -> Script:
    """Answer with a stream of bytes; ``cut`` resets the connection after them."""

    async def script(request: Request) -> Response:
        upstream: Upstream = request.state.upstream

        async def body() -> AsyncIterator[bytes]:
            try:
                await asyncio.sleep(before)
                for piece in pieces:
                    yield piece
                    await asyncio.sleep(pause)
            except asyncio.CancelledError:
                upstream.aborted.set()
                raise
            if cut:
                raise RuntimeError("cut")

        return StreamingResponse(body(), media_type="text/event-stream")

    return script


def hangs() -> Script:
    """Say nothing at all until the caller goes away."""

    async def script(request: Request) -> Response:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        request.state.upstream.aborted.set()
        return Response()

    return script


def in_turn(scripts: Sequence[Script]) -> Script:
    """Answer each request with the next script, and the last one for ever."""
    rest = list(scripts)

    async def script(request: Request) -> Response:
        return await (rest.pop(0) if len(rest) > 1 else rest[0])(request)

    return script


def posts(post: Script) -> Script:
    """List a model where one is asked for, and answer everything else with a script."""

    async def script(request: Request) -> Response:
        return await (openai_like() if request.method == "GET" else post)(request)

    return script


def openai_like() -> Script:
    """Answer as an OpenAI-compatible server does, streamed when asked, with usage when asked."""

    async def script(request: Request) -> Response:
        if request.method == "GET":
            return JSONResponse({"object": "list", "data": [{"id": "tiny", "object": "model"}]})
        body = await request.json()
        if not body.get("stream"):
            return JSONResponse(completion())
        pieces = [*HELLO]
        if (body.get("stream_options") or {}).get("include_usage"):
            pieces = [_null_usage(piece) for piece in pieces]
            pieces.append(event(usage=USAGE))
        return await streams(*pieces, DONE)(request)

    return script


def _null_usage(piece: bytes) -> bytes:
    return piece.replace(b"}\n\n", b', "usage": null}\n\n')
