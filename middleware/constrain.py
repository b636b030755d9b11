"""The stage that makes the format of the answer certain."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace

from .errors import InvalidRequest
from .outcome import Rejected, decision, details, parsed
from .report import StageReport
from .types import Constraint, Event, Finished, Handler, Message, Request, Response, Usage

UNCHECKED = "unchecked"
"""A request with this tag is passed on as it comes: who asks reads what breaks the constraint."""


@dataclass(frozen=True)
class Constrain:
    """Put a constraint on the request; check and parse the finished text.

    ``constraint`` is for requests that have none of their own. What the engine did is never taken
    on trust: the text is validated against the original constraint. ``response.parsed`` is the
    value. Output that was cut by ``max_tokens`` raises Truncated, output that breaks the constraint
    BackendError with the place (``/items/3/price: ...``); neither is parsed. A model that calls a
    tool instead of answering is passed on unparsed.

    An answer that breaks the constraint, or that the caller's own type refuses, is asked for again
    up to ``retries`` times, with what was wrong; ``usage`` is that of all tries. Not where the
    engine enforces the constraint in full: then the same would come again. What has been passed
    on cannot be taken back, so with ``retries`` the text is held until it is known to be valid;
    ``Constrain(retries=0)`` passes it on as it comes.
    """

    constraint: Constraint | None = None
    retries: int = 1

    def __post_init__(self) -> None:
        if type(self.retries) is not int or self.retries < 0:
            raise InvalidRequest(f"retries is a whole number from 0, got {self.retries!r:.40}")

    async def __call__(
        self, request: Request, call_next: Handler, /
    ) -> AsyncGenerator[Event, None]:
        """Yield the answer's events; the last one has the parsed value."""
        constraint = request.constraint or self.constraint
        if constraint is None or UNCHECKED in request.tags:
            async with aclosing(call_next(request)) as events:
                async for event in events:
                    yield event
            return
        started = time.monotonic()
        asked = request = replace(request, constraint=constraint)
        spent, problems = Usage(num_calls=0), list[str]()
        while True:
            held: list[Event] = []
            response: Response | None = None
            async with aclosing(call_next(asked)) as events:
                async for event in events:
                    if isinstance(event, Finished):
                        response = event.response
                    elif self.retries:
                        held.append(event)
                    else:
                        yield event
            if response is None:
                return
            response = replace(response, usage=response.usage + spent)
            try:
                # In a thread: a hostile schema must not stop the other requests.
                response = await asyncio.to_thread(_checked, response, constraint, problems)
            except Rejected as error:
                left = _left(request, started)
                is_late = left is not None and left <= 0
                if len(problems) >= self.retries or not error.is_worth_retrying or is_late:
                    raise
                problems.append(error.problem)
                spent = response.usage
                asked = replace(_again(request, response.text, error.problem), deadline=left)
                continue
            for event in held:
                yield event
            yield Finished(response)
            return


def _checked(response: Response, constraint: Constraint, problems: list[str]) -> Response:
    started = time.perf_counter()
    if response.tool_calls and not response.text.strip():
        row = StageReport("constrain", "the model called a tool: nothing to check")
        return replace(response, report=response.report.add(row))
    value = parsed(response, constraint)
    row = StageReport(
        "constrain",
        decision(constraint, response, problems),
        time.perf_counter() - started,
        details=details(constraint, response, problems),
    )
    return replace(response, parsed=value, report=response.report.add(row))


def _left(request: Request, started: float) -> float | None:
    """Return the seconds that are left of the request's deadline, None without one."""
    if request.deadline is None:
        return None
    return request.deadline - (time.monotonic() - started)


def _again(request: Request, text: str, problem: str) -> Request:
    """Return the request that shows the model its answer and what is wrong with it."""
    complaint = (
        f"That answer breaks the required format: {problem}. Write the whole answer again with "
        "that corrected, and nothing else."
    )
    request = request.with_documents_inline()
    said = (Message.assistant(text),) if text else ()
    return replace(request, messages=(*request.messages, *said, Message.user(complaint)))
