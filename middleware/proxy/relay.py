"""The server's answer, passed on: to the byte, unless headrace has to say something."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .config import Config
from .errors import Failure
from .events import Counts, Cutter
from .sending import STREAM_HEADERS, Headers, Sending
from .upstream import HOP_BY_HOP, lost

if TYPE_CHECKING:
    import httpx

_OF_STREAMS = frozenset(name for name, _ in STREAM_HEADERS[1:])


async def pass_on(sending: Sending, response: httpx.Response, config: Config) -> None:
    """Pass an answer on that nobody reads, as it comes, in whatever encoding. Raises Failure."""
    import httpx

    await sending.start(response.status_code, kept(response))
    try:
        async for piece in response.aiter_raw():
            await sending.write(piece)
    except httpx.HTTPError as error:
        raise lost(config, error) from None
    await sending.end()


async def relay(sending: Sending, response: httpx.Response, config: Config, counts: Counts) -> None:
    """Pass an answer on, a stream event by event; ``counts`` reads it.

    Raises Failure when the server breaks off; a stream of which something was passed on then ends
    with the error as an event, and is never begun again.
    """
    import httpx

    if is_stream(response):
        try:
            await _stream(sending, response, counts)
        except httpx.HTTPError as error:
            raise lost(config, error) from None
        return
    try:
        body = await response.aread()
    except httpx.HTTPError as error:
        raise lost(config, error) from None
    if response.status_code < 300:
        body = counts.whole(body)
    if not sending.status:
        await sending.whole(response.status_code, kept(response, is_read=True), body)
    elif response.status_code < 300:
        raise Failure(502, "no_stream", "the server answered a stream with something else")
    else:  # comments were sent, so the status is gone
        await sending.end(b"data: " + b" ".join(body.splitlines()) + b"\n\n")


def is_stream(response: httpx.Response) -> bool:
    """Whether an answer is server-sent events."""
    return str(response.headers.get("content-type", "")).startswith("text/event-stream")


def kept(response: httpx.Response, *, is_read: bool = False) -> Headers:
    """Return the headers that are passed on; ``is_read``: the body was decoded and measured."""
    named = response.headers.get("connection", "").lower().replace(" ", "").encode().split(b",")
    drop = HOP_BY_HOP | set(named)
    if is_read:
        drop = drop | {b"content-length", b"content-encoding"}
    low = [(name.lower(), value) for name, value in response.headers.raw]
    return [(name, value) for name, value in low if name not in drop]


async def _stream(sending: Sending, response: httpx.Response, counts: Counts) -> None:
    if not sending.status:
        headers = [one for one in kept(response, is_read=True) if one[0] not in _OF_STREAMS]
        await sending.start(response.status_code, [*headers, *STREAM_HEADERS[1:]])
    cutter = Cutter()
    async for piece in response.aiter_bytes():
        events = b"".join([counts.event(event) for event in cutter.feed(piece)])
        if events:
            await sending.write(events)
    await sending.end(cutter.rest)
