"""The stage that makes the format of the answer certain."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace

from .check import violation
from .errors import BackendError, Truncated
from .report import StageReport
from .types import Constraint, Event, Finished, Handler, Request, Response


@dataclass(frozen=True)
class Constrain:
    """Put a constraint on the request; check and parse the finished text.

    ``constraint`` is for requests that have none of their own. What the engine did is never taken
    on trust: the text is validated against the original constraint. Output that was cut by
    ``max_tokens`` raises Truncated, output that breaks the constraint BackendError; neither is
    parsed. ``response.parsed`` is the value.
    """

    constraint: Constraint | None = None

    async def __call__(
        self, request: Request, call_next: Handler, /
    ) -> AsyncGenerator[Event, None]:
        """Pass the events through; the last one has the parsed value."""
        constraint = request.constraint or self.constraint
        if constraint is not None:
            request = replace(request, constraint=constraint)
        async with aclosing(call_next(request)) as events:
            async for event in events:
                if isinstance(event, Finished) and constraint is not None:
                    # In a thread: a hostile schema must not stop the other requests.
                    checked = await asyncio.to_thread(_checked, event.response, constraint)
                    yield Finished(checked)
                else:
                    yield event


def _checked(response: Response, constraint: Constraint) -> Response:
    started = time.perf_counter()
    text = response.text
    if response.finish_reason == "length":
        hint = ""
        if constraint.kind == "json_schema" and "additionalProperties" not in constraint.spec:
            hint = ', or close the schema with "additionalProperties": false'
        raise Truncated(
            f"the output was cut after {response.usage.completion_tokens} tokens, before the "
            f"{constraint.kind} was complete; raise max_tokens{hint} (what there is of the text is "
            "in the error's .text)",
            text=text,
        )
    try:
        problem = violation(text, constraint)
    except TimeoutError:
        problem = "its pattern takes too long to check; write it without nested repeats"
    except RecursionError:
        problem = "nested too deeply to be checked"
    if problem:
        raise BackendError(
            f"the engine's output breaks the {constraint.kind} constraint: {problem}; "
            f"it wrote {text!r:.80}"
        )
    try:
        parsed = constraint.parse(text) if constraint.parse else text
    except Exception as error:  # a type's own validators know more than its schema, and raise any
        first = " ".join(str(error).split()) or type(error).__name__
        raise BackendError(f"the output fits the schema but not the type: {first:.200}") from error
    row = StageReport(
        "constrain",
        f"{constraint.kind} enforced while decoding, output validated",
        time.perf_counter() - started,
        details={"kind": constraint.kind},
    )
    return replace(response, parsed=parsed, report=response.report.add(row))
