"""The stage that makes the format of the answer certain."""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, cast

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
                    yield Finished(_checked(event.response, constraint))
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
    problem = violation(text, constraint)
    if problem:
        raise BackendError(
            f"the engine's output breaks the {constraint.kind} constraint: {problem}; "
            f"it wrote {text!r:.80}"
        )
    try:
        parsed = constraint.parse(text) if constraint.parse else text
    except ValueError as error:  # a type's own validators know more than its schema
        first = str(error).replace("\n", " ")
        raise BackendError(f"the output fits the schema but not the type: {first:.200}") from error
    row = StageReport(
        "constrain",
        f"{constraint.kind} enforced while decoding, output validated",
        time.perf_counter() - started,
        details={"kind": constraint.kind},
    )
    return replace(response, parsed=parsed, report=response.report.add(row))


def violation(text: str, constraint: Constraint) -> str | None:
    """Return what is wrong with the text in a few words, None when it keeps the constraint."""
    if constraint.kind == "choice":
        return None if text in constraint.spec else f"not one of {list(constraint.spec)!r:.80}"
    if constraint.kind == "regex":
        pattern = cast("str", constraint.spec)
        return None if re.fullmatch(pattern, text) else f"no full match of {pattern!r:.80}"
    return _json_violation(text, json.loads(cast("str", constraint.spec)))


def _json_violation(text: str, schema: dict[str, Any]) -> str | None:
    from jsonschema.validators import validator_for

    try:
        value = json.loads(text)
    except ValueError as error:
        return f"no JSON ({error})"
    errors = validator_for(schema)(schema).iter_errors(value)
    return next((f"{error.message:.120}" for error in errors), None)
