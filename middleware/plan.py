"""The stage that plans an answer and writes its parts at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from ..planners import Mode, PlannedAnswer, edges, fitting_nodes, forbidden, route
from .errors import InvalidRequest
from .report import StageReport
from .types import Event, Finished, Handler, Request, Response, TextDelta, Usage

Strategy = Literal["auto", "skeleton", "graph", "off"]


@dataclass(frozen=True, slots=True)
class Plan:
    """Plans the answer first, then writes its parts in parallel, streamed in order.

    ``strategy`` is ``skeleton`` (a list of independent points: Skeleton-of-Thought, arXiv
    2307.15337), ``graph`` (parts that may need others' text: SGD and Plato, arXiv 2402.12280),
    ``auto`` (``skeleton`` where rules say that the answer is a list of independent parts, else no
    plan) or ``off``. ``max_nodes`` is the most parts of an answer (the tail of a longer plan is
    merged) and ``width`` how many of them may be written at a time.

    Without a plan (the rules say no, a constraint or tools forbid it, the plan cannot be used) the
    request is passed on as it is; the report says why. The answer's ``finish_reason`` is
    ``length`` when a part was cut or could not be written, and its ``max_tokens`` holds for all
    parts together. The report of a planned answer has one row for all calls behind it.
    """

    strategy: Strategy = "auto"
    max_nodes: int = 8
    width: int = 8

    def __post_init__(self) -> None:
        if self.strategy not in get_args(Strategy):
            names = ", ".join(get_args(Strategy))
            raise InvalidRequest(f"strategy must be one of {names}, got {self.strategy!r}")
        if not 2 <= self.max_nodes <= 99:
            raise InvalidRequest(f"max_nodes must be from 2 to 99, got {self.max_nodes}")
        if self.width < 1:
            raise InvalidRequest(f"width must be at least 1, got {self.width}")

    async def __call__(
        self, request: Request, call_next: Handler, /
    ) -> AsyncGenerator[Event, None]:
        """Answer the request; see ``Middleware``."""
        loop = asyncio.get_running_loop()
        start = loop.time()
        mode, why = self._choose(request)
        if mode is None:
            row = StageReport("plan", f"no plan: {why}", 0.0, details=self._details(why))
            async with aclosing(_plain(request, call_next, row)) as events:
                async for event in events:
                    yield event
            return
        answer = PlannedAnswer(
            request.with_documents_inline(),
            call_next,
            mode=mode,
            max_nodes=fitting_nodes(request.sampling.max_tokens, self.max_nodes),
            width=self.width,
        )
        async with aclosing(answer.stream()) as pieces:
            async for piece in pieces:
                yield TextDelta(piece)
        details = self._details(why) | _facts(answer)
        if not answer.unusable:
            row = StageReport("plan", _decision(answer), loop.time() - start, details=details)
            yield Finished(
                Response(
                    answer.text,
                    finish_reason=answer.finish_reason,
                    usage=answer.usage,
                    report=request.report.add(row),
                )
            )
            return
        await answer.calls.cool_down()
        decision = f"no plan: {answer.unusable}"
        row = StageReport("plan", decision, loop.time() - start, details=details)
        again = replace(request, deadline=answer.calls.remaining())
        async with aclosing(_plain(again, call_next, row, answer.usage)) as events:
            async for event in events:
                yield event

    def _choose(self, request: Request) -> tuple[Mode | None, str]:
        if self.strategy == "off":
            return None, "switched off"
        if self.strategy == "auto":
            found = route(request)
            return ("skeleton" if found.is_planned else None), found.why
        if why := forbidden(request):
            return None, why
        if fitting_nodes(request.sampling.max_tokens, self.max_nodes) < 2:
            return None, f"max_tokens of {request.sampling.max_tokens} is too small to divide"
        return self.strategy, "asked for"

    def _details(self, why: str) -> dict[str, Any]:
        return {"strategy": self.strategy, "why": why}


async def _plain(
    request: Request, call_next: Handler, row: StageReport, spent: Usage | None = None
) -> AsyncGenerator[Event, None]:
    """Pass the request on with our row; add what a useless plan cost to the response."""
    request = replace(request, report=request.report.add(row))
    async with aclosing(call_next(request)) as events:
        async for event in events:
            if isinstance(event, Finished) and spent:
                response = event.response
                event = Finished(replace(response, usage=response.usage + spent))
            yield event


def _decision(answer: PlannedAnswer) -> str:
    missing = answer.missing
    rest = f", without part {', '.join(map(str, missing))}" if missing else ""
    return f"wrote {len(answer.plan.nodes) - len(missing)} parts at the same time{rest}"


def _facts(answer: PlannedAnswer) -> dict[str, Any]:
    """Return what happened, as plain values; times are seconds since the request began."""
    return {
        "nodes": [
            {
                "id": work.node.id,
                "title": work.node.title,
                "start": work.start,
                "end": work.end,
                "tokens": work.num_tokens,
                "retries": work.num_retries,
                "continued": work.is_continued,
                "finish_reason": work.finish_reason,
                "error": str(work.error) if work.error else None,
            }
            for work in sorted(answer.works, key=lambda work: work.node.id)
        ],
        "edges": edges(answer.plan),
        "dropped_edges": list(answer.plan.dropped),
        "merged": answer.plan.num_merged,
        "missing": answer.missing,
        "retries": answer.num_retries,
        "critical_path": answer.plan.critical_path,
        "plan_tokens": answer.plan_tokens,
        "plan_seconds": answer.plan_seconds,
        "plan_error": str(answer.plan_error) if answer.plan_error else None,
    }
