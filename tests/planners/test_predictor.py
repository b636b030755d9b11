from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.planners import Node
from headrace.planners.gate import Gate
from headrace.planners.predictor import Situation, forecast, simulate
from headrace.planners.scheduler import Schedule
from headrace.planners.speed import StepCost

FLAT = StepCost(step=0.01, row=0, context=0, prefill=0, call=0)


def plan(*nodes: Node, width: int = 8) -> Schedule:
    schedule = Schedule(width)
    for node in nodes:
        schedule.add(node)
    return schedule


def flat(number: int, length: int = 100) -> list[Node]:
    return [Node(i, "x", length=length) for i in range(1, number + 1)]


def chain(number: int) -> list[Node]:
    return [Node(i, "x", (i - 1,) if i > 1 else (), length=100) for i in range(1, number + 1)]


def test_a_flat_plan_takes_as_long_as_its_longest_part() -> None:
    found = forecast(plan(*flat(4), Node(5, "y", length=300)), Situation(FLAT), width=8)
    assert found.parallel == pytest.approx(3.0)
    assert found.sequential == pytest.approx(7.0)
    assert found.chain == pytest.approx(3 / 7)


def test_the_width_bounds_what_is_simulated() -> None:
    found = forecast(plan(*flat(6)), Situation(FLAT), width=2)
    assert found.parallel == pytest.approx(3.0)


def test_a_chain_gains_nothing() -> None:
    found = forecast(plan(*chain(5)), Situation(StepCost()), width=8)
    assert found.gain < 1
    assert found.is_chain


def test_what_was_written_counts_as_done() -> None:
    schedule = plan(*flat(3))
    schedule.take(1)
    schedule.end(1)
    found = forecast(schedule, Situation(FLAT, written={2: 90, 3: 40}), width=8)
    assert found.parallel == pytest.approx(0.6)
    assert found.extra_prompt_tokens == 0


def test_a_forecast_changes_nothing() -> None:
    schedule = plan(*flat(4), width=2)
    forecast(schedule, Situation(), width=4)
    assert schedule.num_waiting == 4
    assert [node.id for node in schedule.take(1)] == [1, 2]


def test_an_engine_without_a_batch_gains_nothing() -> None:
    serial = StepCost(step=0.0, row=0.01, context=0, prefill=0, call=0)
    found = forecast(plan(*flat(4)), Situation(serial), width=8)
    assert found.gain == pytest.approx(1.0)


def test_prompts_that_are_read_again_cost_time() -> None:
    cost = StepCost(step=0.01, row=0, context=0, prefill=0.001, call=0)
    cold = forecast(plan(*flat(4)), Situation(cost, prompt=1000), width=8)
    warm = forecast(plan(*flat(4)), Situation(cost, 1000, 1000, 1000), width=8)
    rows = forecast(plan(*flat(4)), Situation(cost, 1000, 1000), width=8)
    assert cold.parallel - warm.parallel == pytest.approx(4.0)
    assert rows.parallel - warm.parallel == pytest.approx(3.0)  # each row but the first reads again
    assert cold.extra_prompt_tokens - warm.extra_prompt_tokens == 4000


@given(
    st.lists(st.tuples(st.integers(1, 300), st.sets(st.integers(1, 30))), min_size=1, max_size=30),
    st.integers(1, 9),
)
def test_every_part_is_simulated_once_and_after_what_it_needs(
    drawn: list[tuple[int, set[int]]], width: int
) -> None:
    nodes = [
        Node(i, "x", tuple(sorted(n for n in needs if n < i)), length=length)
        for i, (length, needs) in enumerate(drawn, 1)
    ]
    spans = {span.id: span for span in simulate(plan(*nodes, width=width), Situation())}
    assert sorted(spans) == [node.id for node in nodes]
    for node in nodes:
        assert all(spans[id].end <= spans[node.id].start + 1e-9 for id in node.needs)
    for span in spans.values():
        assert sum(one.start <= span.start < one.end for one in spans.values()) <= width


@pytest.mark.parametrize(
    ("nodes", "situation", "why"),
    [
        (flat(4), Situation(), ""),
        (chain(4), Situation(), "chain"),
        (flat(4), Situation(StepCost(step=0, row=0.01)), "predicted gain"),
        (flat(8), Situation(prompt=5000), "read again"),
        (flat(8), Situation(prompt=5000, cached=5000, shared=5000), ""),
    ],
)
def test_the_gate_says_why_one_call_is_better(
    nodes: list[Node], situation: Situation, why: str
) -> None:
    found = forecast(plan(*nodes), situation, width=8)
    said = Gate().refuses(found)
    assert why in said
    assert bool(said) == bool(why)
    assert Gate("always").refuses(found) == ""
