"""What a plan can be told, by whom, and who closes what it holds."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from engine import SimulatedEngine, handler, planned

import headrace
from headrace import InvalidRequest, Pipeline, Request, template
from headrace.middleware import sdk
from headrace.middleware.cost import Predictor, Roofline, hardware, shape_of
from headrace.middleware.dispatcher import Dispatcher
from headrace.middleware.errors import BackendError
from headrace.middleware.plan import Plan
from headrace.planners.speed import StepCost

QUESTION = "What are the benefits of regular exercise?"
GRAPH = "@plan\n1|Alpha|~6\n2|Beta|~6|h1\n3|Gamma|~6\n@end\n"


def unclosable(reply: Any) -> SimulatedEngine:
    """Return an engine that raises when it is closed."""
    engine = SimulatedEngine(reply)

    async def close() -> None:
        engine.is_closed = True
        raise BackendError("cannot be closed")

    engine.close = close
    return engine


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"strategy": "best"}, "'best'"),
        ({"strategy": None}, "None"),
        ({"when": "sometimes"}, "'sometimes'"),
        ({"race": "no"}, "race is True, False or None (where free), got 'no'"),
        ({"seams": 1}, "seams is True or False, got 1"),
        ({"max_nodes": "8"}, "'8'"),
        ({"max_nodes": 1}, "got 1"),
        ({"width": 0}, "got 0"),
        ({"width": 2.5}, "2.5"),
        ({"width": True}, "True"),
        ({"cost": 0.01}, "got 0.01"),
        ({"small": "http://127.0.0.1:1"}, "'http://127.0.0.1:1'"),
        ({"outline": "Costs"}, "'Costs'"),
        ({"outline": 3}, "got 3"),
        ({"outline": ("Costs", 2)}, "got 2 in it"),
        ({"outline": ("Costs",)}, "got 1"),
    ],
)
def test_a_value_that_makes_no_sense_is_said_when_the_stage_is_made(
    options: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        Plan(**options)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_generate_takes_a_stage_with_everything_it_can_be_told() -> None:
    engine = SimulatedEngine(planned("1. Heart\n2. Mood\n3. Sleep\n", plain="Plain."))
    stage = Plan("skeleton", when="always", seams=True, cost=StepCost(step=0.01))
    response = headrace.generate(QUESTION, backend=engine, plan=stage)
    assert "2. **Mood**: Text of part 2." in response.text
    outlined = Plan(outline=("What it is", "What it costs"), when="always")
    response = headrace.generate("Write about pumps.", backend=engine, plan=outlined)
    assert "2. **What it costs**: " in response.text


def test_stages_takes_a_stage_as_it_is_and_gives_a_strategy_the_cost() -> None:
    cost = Predictor(Roofline(shape_of("llama-3.1-8b"), hardware("A100")))
    request, stage = Request.of(QUESTION), Plan(race=True)
    assert [one for one in sdk.stages(request, plan=stage) if isinstance(one, Plan)] == [stage]
    assert sdk.stages(request, plan=stage, cost=cost)[0] is stage
    [made] = [one for one in sdk.stages(request, cost=cost) if isinstance(one, Plan)]
    assert made.cost is cost


@pytest.mark.parametrize("plan", ["best", None, {"when": "always"}, Plan])
def test_a_plan_that_is_none_is_said_before_an_engine_is_asked_for(plan: Any) -> None:
    with pytest.raises(InvalidRequest, match="strategy must be one of"):
        headrace.generate(QUESTION, backend="http://no.such.host.invalid", plan=plan)
    with pytest.raises(InvalidRequest, match="strategy must be one of"):
        headrace.stream_objects(QUESTION, int, backend="http://no.such.host.invalid", plan=plan)


def test_the_fields_of_a_streamed_object_can_be_written_apart() -> None:
    made = template("A: {a}\nB: {b}")
    engine = SimulatedEngine(lambda request: "yes")
    *early, last = headrace.stream_objects("Q", made, backend=engine, plan="template")
    assert [one.value for one in early][:1] == [{"a": "yes"}]
    assert last.value == {"a": "yes", "b": "yes"}
    assert len(engine.log) == 2


def engines() -> tuple[SimulatedEngine, SimulatedEngine]:
    return SimulatedEngine(planned(GRAPH)), SimulatedEngine(planned(""))


def test_a_pipeline_closes_the_small_engine_of_its_plan() -> None:
    large, small = engines()
    with Pipeline([Plan("graph", when="always", small=small)], large) as pipeline:
        assert "**Beta**" in pipeline.run_sync(Request.of(QUESTION)).text
        assert len(small.log) == 1
        assert not small.is_closed
    assert small.is_closed
    assert large.is_closed


async def test_a_pipeline_closes_it_asynchronously_and_after_an_error_too() -> None:
    large, small = engines()

    async def use() -> None:
        async with Pipeline([Plan("graph", when="always", small=small)], large) as pipeline:
            await pipeline.run(Request.of(QUESTION))
            raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        await use()
    assert small.is_closed
    assert large.is_closed


def test_one_engine_that_cannot_be_closed_does_not_keep_the_others_open() -> None:
    large, small = engines()
    bad = unclosable(planned(GRAPH))
    for first, second in ((bad, small), (large, unclosable(planned("")))):
        pipeline = Pipeline([Plan("graph", small=second)], first)
        with pytest.raises(BackendError, match="cannot be closed"):
            pipeline.close()
        assert first.is_closed
        assert second.is_closed


async def test_an_engine_that_others_dispatch_to_is_left_to_them() -> None:
    _, small = engines()
    for given in (Dispatcher(small), handler(small)):
        await Plan("graph", small=given).aclose()
    assert not small.is_closed
    stage = Plan("graph", small=small)
    await stage.aclose()
    await stage.aclose()
    assert small.is_closed


def test_nothing_runs_any_more_when_a_blocking_pipeline_is_closed() -> None:
    ended: list[str] = []

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    async def start() -> asyncio.Task[None]:
        task = asyncio.create_task(hang())
        await asyncio.sleep(0)
        return task

    pipeline = Pipeline([], SimulatedEngine(lambda request: "Plain."))
    task = pipeline.blocking(start())
    pipeline.close()
    assert ended == ["cancelled"]
    assert task.cancelled()
