"""The way back to the caller: whole answers, streams, and comments while nothing comes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress

from starlette.types import Send

Headers = Sequence[tuple[bytes, bytes]]
COMMENT = b": keep-alive\n\n"
STREAM_HEADERS: Headers = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)


class Sending:
    """One answer. ``status`` is what was sent; ``is_over`` once the last byte is on its way."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._quiet_since = time.monotonic()
        self.status = 0
        self.is_over = False
        self.is_events = False
        self.first_at: float | None = None  # when the first byte of the body was sent
        self.extra: list[tuple[bytes, bytes]] = []  # headers of ours

    async def start(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Send status and headers."""
        self.status = status
        own = {name for name, _ in self.extra}
        named = [(name, value) for name, value in headers if name not in own]
        kinds = [value for name, value in named if name == b"content-type"]
        self.is_events = any(kind.startswith(b"text/event-stream") for kind in kinds)
        await self._send(
            {"type": "http.response.start", "status": status, "headers": [*named, *self.extra]}
        )

    async def write(self, data: bytes) -> None:
        """Send some of the body."""
        if self.first_at is None:
            self.first_at = time.monotonic()
        await self._push(data)

    async def end(self, data: bytes = b"") -> None:
        """Send the rest of the body."""
        if self.first_at is None:
            self.first_at = time.monotonic()
        self.is_over = True
        await self._send({"type": "http.response.body", "body": data})

    async def whole(self, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> None:
        """Send an answer at once."""
        length = (b"content-length", str(len(body)).encode())
        await self.start(status, [*headers, length])
        await self.end(body)

    @asynccontextmanager
    async def kept_alive(self, seconds: float) -> AsyncGenerator[None]:
        """Send a comment after each ``seconds`` of silence; the first one begins a stream."""
        if not seconds:
            yield
            return
        task = asyncio.create_task(self._comment(seconds))
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _comment(self, seconds: float) -> None:
        while not self.is_over:
            left = seconds - (time.monotonic() - self._quiet_since)
            if left > 0:
                await asyncio.sleep(left)
                continue
            if not self.status:
                await self.start(200, STREAM_HEADERS)
            await self._push(COMMENT)

    async def _push(self, data: bytes) -> None:
        self._quiet_since = time.monotonic()
        await self._send({"type": "http.response.body", "body": data, "more_body": True})
