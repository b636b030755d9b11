"""A ``Plan`` stage around a simulated engine: what its reader sees, and what the report says."""

from __future__ import annotations

import asyncio

from headrace.middleware.plan import Plan
from headrace.middleware.report import StageReport
from headrace.middleware.types import Event, Finished, Request, Response, TextDelta

from .clock import run_virtual
from .simulated import SimulatedEngine, handler

LIST = "What are the benefits of regular exercise?"


def answer(
    engine: SimulatedEngine, stage: Plan, request: Request | None = None
) -> tuple[list[str], Response]:
    """Return the pieces that the reader saw and the final response, checking the stream's form."""
    asked = request or Request.of(LIST)

    async def main() -> list[Event]:
        return [event async for event in stage(asked, handler(engine))]

    # Checking a constraint happens in a thread, which a virtual clock does not know.
    run = asyncio.run if asked.constraint is not None else run_virtual
    *deltas, last = run(main())
    pieces = [event.text for event in deltas if isinstance(event, TextDelta)]
    assert len(pieces) == len(deltas)
    assert isinstance(last, Finished)
    assert "".join(pieces) == last.response.text
    return pieces, last.response


def row(response: Response) -> StageReport:
    """Return the one row of the stage."""
    [found] = [one for one in response.report.stages if one.stage == "plan"]
    return found
