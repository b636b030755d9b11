"""Ways to ask a handler."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from headrace.middleware.errors import HeadraceError
from headrace.middleware.types import Event, Finished, Handler, Request, Response, TextDelta


async def collect(events: AsyncGenerator[Event, None]) -> Response:
    """Return the whole answer, which is what was streamed."""
    text = ""
    async with aclosing(events) as stream:
        async for event in stream:
            if isinstance(event, TextDelta):
                text += event.text
            if isinstance(event, Finished):
                assert event.response.text == text
                return event.response
    raise AssertionError("no Finished")


async def outcome(handler: Handler, request: Request) -> str:
    """Return the answer's text, or the name of the error."""
    try:
        return (await collect(handler(request))).text
    except HeadraceError as error:
        return type(error).__name__
