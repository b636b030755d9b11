"""How one server is asked for constraints: down the ladder until something holds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import replace

from ..middleware.errors import Truncated, UnsupportedConstraint
from ..middleware.types import (
    Constraint,
    Enforcement,
    Event,
    Finished,
    Request,
    Response,
    TextDelta,
)
from .remote.dialects import Dialect, dialect
from .remote.fits import keeps, strict_json
from .remote.flights import Flights
from .remote.identify import Ask, Server, identify
from .remote.ladder import Rung, asking_rungs, native_rungs, reader
from .remote.probe import Probe, Send
from .remote.words import said

Refusal = tuple[str, str, Constraint, bool]  # model, rung, constraint, with tools

MAX_REFUSALS = 4096  # remembered; the oldest go first
MAX_BLANKS = 256  # white space in a row inside of JSON


class Constraints:
    """What is known about one server, and the way from a constraint to an answer.

    ``send`` sends a request with fields added to its body; ``ask`` gets a page of the server.
    ``named`` is the dialect that the user named, else the server is asked which it is; without
    ``is_probing`` its fields are used without a look at whether they hold.
    """

    def __init__(
        self, send: Send, ask: Ask, *, host: str, named: str | None, is_probing: bool
    ) -> None:
        self._send = send
        self._ask = ask
        self._host = host
        self._named = dialect(named) if named else None
        self._is_probing = is_probing
        self._probe = Probe(send)
        self._servers: Flights[Server] = Flights()
        self._refused: dict[Refusal, None] = {}
        self.server: Server | None = None

    def close(self) -> None:
        """Give up on questions in flight."""
        self._probe.close()
        self._servers.close()

    async def events(
        self, request: Request, constraint: Constraint, model: str, owner: str
    ) -> AsyncGenerator[Event, None]:
        """Yield the answer's events. The response says which rung ran, in ``enforced``.

        A rung that the server refuses is not tried again with the same constraint; the last one,
        words, is never refused. ``owner`` is what the server's list of models says.
        """
        request = replace(request, constraint=None)
        has_tools = bool(request.sampling.extra.get("tools"))
        speaks = await self._dialect(owner)
        async for rung in self._rungs(speaks, constraint, model, has_tools):
            key = (model, rung.name, constraint, has_tools)
            if key in self._refused:
                continue
            is_started = False
            try:
                async with aclosing(self._try(rung, request, constraint)) as events:
                    async for event in events:
                        if isinstance(event, Finished):
                            event = Finished(await self._judged(event.response, rung, key))
                        is_started = True
                        yield event
                return
            except UnsupportedConstraint:
                if is_started or not rung.fields:
                    raise
                self._remember(key)

    async def _dialect(self, owner: str) -> Dialect:
        if self._named is not None:
            return self._named
        if not self._is_probing:
            return dialect("openai")
        self.server = await self._servers.get(
            self._host, lambda: identify(self._ask, owner, self._host)
        )
        return dialect(self.server.dialect)

    async def _rungs(
        self, speaks: Dialect, constraint: Constraint, model: str, has_tools: bool
    ) -> AsyncIterator[Rung]:
        fields = speaks.fields.get(constraint.kind, ())
        for field in fields if speaks.with_tools or not has_tools else ():
            is_verified = False
            if not any(native_rungs(speaks, field, constraint, is_verified=True)):
                continue  # the field cannot say it: no reason to ask whether it would hold
            if self._is_probing:
                verdict = await self._probe.verdict(model, field, constraint.kind)
                if verdict in ("ignored", "refused"):
                    continue
                is_verified = verdict == "holds"
            for rung in native_rungs(speaks, field, constraint, is_verified=is_verified):
                yield rung
        for rung in asking_rungs(speaks, constraint):
            yield rung

    async def _try(
        self, rung: Rung, request: Request, constraint: Constraint
    ) -> AsyncGenerator[Event, None]:
        """Yield one rung's events; a rung that reads its answer gives it out at the end."""
        asked = said(request, constraint) if rung.in_words else request
        is_json = rung.native is not None and constraint.kind == "json_schema"
        events = self._send(asked, rung.fields)
        async with aclosing(_without_runaway(events) if is_json else events) as sent:
            async for event in sent:
                if rung.read is None or not isinstance(event, (TextDelta, Finished)):
                    yield event
                elif isinstance(event, Finished):
                    # In a thread: a hostile pattern must not stop the other requests.
                    found = await asyncio.to_thread(_found, event.response, rung, constraint)
                    if found.text:
                        yield TextDelta(found.text)
                    yield Finished(found)

    async def _judged(self, response: Response, rung: Rung, key: Refusal) -> Response:
        """Return the response with what was enforced; a field that did not hold is remembered."""
        if response.finish_reason == "content_filter":
            by = f"{rung.name}, refused by the model"
            return replace(response, enforced=Enforcement("none", by=by))
        constraint = key[2]
        if rung.native is None or response.finish_reason != "stop":
            return replace(response, enforced=rung.enforced)
        if await asyncio.to_thread(_did_hold, response.text, rung, constraint):
            return replace(response, enforced=rung.enforced)
        self._remember(key)
        self._probe.forget(key[0], rung.native, constraint.kind)
        by = f"{rung.name}, which did not hold"
        return replace(response, enforced=Enforcement("none", by=by))

    def _remember(self, key: Refusal) -> None:
        self._refused[key] = None
        if len(self._refused) > MAX_REFUSALS:
            del self._refused[next(iter(self._refused))]


def _found(response: Response, rung: Rung, constraint: Constraint) -> Response:
    """Return the response with the answer that was asked for, if it is in the text.

    A text that was cut, a refusal and a tool call stay as they are.
    """
    if response.finish_reason != "stop" or response.tool_calls or rung.read is None:
        return response
    text = rung.read(response.text)
    if text is None and rung.native is not None:  # ignored: perhaps the model did it by itself
        text = reader(constraint)(response.text)
    return response if text is None else replace(response, text=text)


def _did_hold(text: str, rung: Rung, constraint: Constraint) -> bool:
    """Whether the text shows no sign that the server left the constraint aside."""
    if rung.enforced.level == "full" or constraint.kind == "choice":
        return keeps(text, constraint) is not False
    if constraint.kind != "json_schema":
        return True
    try:
        strict_json(text)
    except (ValueError, RecursionError):
        return False
    return True


async def _without_runaway(
    events: AsyncGenerator[Event, None],
) -> AsyncGenerator[Event, None]:
    """Pass the events on; white space without end, which JSON allows, is cut short.

    Raises Truncated with the text so far. White space at the end is held until more comes.
    """
    text = held = ""
    async with aclosing(events):
        async for event in events:
            if not isinstance(event, TextDelta):
                if held and isinstance(event, Finished):
                    yield TextDelta(held)
                yield event
                continue
            whole = held + event.text
            bare = whole.rstrip()
            held = whole[len(bare) :]
            if bare:
                text += bare
                yield TextDelta(bare)
            if len(held) > MAX_BLANKS:
                raise Truncated(
                    f"the engine wrote {MAX_BLANKS} signs of white space in a row inside the JSON;"
                    " ask for fewer optional parts, or use an engine that bounds white space",
                    text=text,
                )
