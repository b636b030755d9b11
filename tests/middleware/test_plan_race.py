"""Where a plain answer runs beside the planner without being asked for, and what that is worth."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest
from engine import Cost, Reply, SimulatedEngine, run_virtual

from headrace.backends.base import Capabilities
from headrace.middleware.constrain import Constrain
from headrace.middleware.dispatcher import Dispatcher
from headrace.middleware.pipeline import Pipeline
from headrace.middleware.plan import Plan
from headrace.middleware.types import Request, Response
from headrace.planners.graph import Node
from headrace.planners.predictor import Situation, forecast
from headrace.planners.prospect import LEARNT
from headrace.planners.scheduler import Schedule
from headrace.planners.speed import StepCost

LIST = "What are the benefits of regular exercise?"


def billed(engine: SimulatedEngine) -> SimulatedEngine:
    """Make it a server that does not say what it is."""

    async def capabilities() -> Capabilities:
        return Capabilities("openai", max_concurrency=64)

    engine.capabilities = capabilities
    return engine


def chain(lengths: list[int]) -> Callable[[Request], Reply]:
    """Return what an engine says that plans a chain of parts with these lengths."""
    texts = [" ".join(f"n{i}w{k}" for k in range(n)) for i, n in enumerate(lengths, 1)]
    lines = [
        f"{i}|{' '.join(f't{i}x{k}' for k in range(12))}{f'|<{i - 1}' if i > 1 else ''}|~{n // 13}"
        for i, n in enumerate(lengths, 1)
    ]

    def reply(request: Request) -> Reply:
        last = request.messages[-1].text
        if "Do not answer yet" in last:
            return Reply("\n".join(["@plan", *lines, "@end"]), 0.06)
        if asked := re.search(r'about point (\d+), "', last):
            return Reply(texts[int(asked[1]) - 1], 0.06)
        rest = re.search(r"Write points? (\d+)", last)
        return Reply("\n\n".join(texts[int(rest[1]) - 1 if rest else 0 :]), 0.06)

    return reply


def answer(engine: SimulatedEngine, stage: Plan) -> tuple[float, Response]:
    """Return how long an answer takes, and the answer."""

    async def main() -> Response:
        pipeline = Pipeline([stage, Constrain()], Dispatcher(engine, window=0.0))
        return await pipeline.run(Request.of(LIST))

    response = run_virtual(main())
    return max(record.ended or 0.0 for record in engine.log), response


def is_raced(engine: SimulatedEngine) -> bool:
    return any(record.request.messages[-1].text == LIST for record in engine.log)


def test_a_chain_is_not_slower_than_a_plain_answer() -> None:
    chance, stage = random.Random(3), Plan("graph", max_nodes=10)
    cost = Cost(step=0.010, row=0.00005, prefill=0.0001)
    for number in range(40):
        lengths = [round(80 * chance.lognormvariate(0, 0.5)) + 5 for _ in range(7)]
        plain, _ = answer(SimulatedEngine(chain(lengths), cost=cost), Plan("off"))
        engine = SimulatedEngine(chain(lengths), cost=cost)
        seconds, response = answer(engine, stage)
        assert is_raced(engine) == (number > 0)  # the first answer shows what a step takes
        assert number == 0 or plain / seconds >= 0.98, f"chain {number}"
        row = response.report.stage("plan")
        assert row is not None
        assert number == 0 or row.decision.startswith("one plain call"), row


@pytest.mark.parametrize(
    ("engine", "stage"),
    [
        (billed(SimulatedEngine(chain([80] * 4))), Plan("graph")),
        (SimulatedEngine(chain([80] * 4), max_concurrency=8), Plan("graph")),
        (SimulatedEngine(chain([80] * 4), cost=Cost(step=0.01, row=0.002)), Plan("graph")),
        (SimulatedEngine(chain([80] * 4)), Plan("graph", race=False)),
        (SimulatedEngine(chain([80] * 4)), Plan("graph", when="always")),
    ],
    ids=["billed", "full", "rows cost", "switched off", "always divided"],
)
def test_what_is_not_free_is_not_raced(engine: SimulatedEngine, stage: Plan) -> None:
    for _ in range(LEARNT):  # after that, a chain is not planned any more
        answer(engine, stage)
    assert not is_raced(engine)


def test_costs_that_were_given_race_the_first_answer() -> None:
    engine = SimulatedEngine(chain([80] * 4))
    answer(engine, Plan("graph", cost=StepCost()))
    assert is_raced(engine)


def test_a_raced_answer_still_has_to_write_what_the_parts_have_written() -> None:
    schedule = Schedule(8)
    for id in (1, 2, 3):
        schedule.add(Node(id, f"Part {id}", length=100))
    schedule.take(1)
    schedule.end(1)
    now = Situation(StepCost(step=0.01), written={2: 50, 3: 50})
    found = forecast(schedule, now, width=8, ahead=100)
    assert found.sequential == pytest.approx(200 * 0.01, rel=0.05)
    assert found.gain > 3
