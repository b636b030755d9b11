from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.middleware.errors import InvalidRequest
from headrace.planners.speed import KEPT, Speed, StepCost
from headrace.planners.width import allowed_width


def observed(truth: StepCost, loads: list[tuple[int, int]], noise: float = 0.0) -> StepCost:
    speed, chance = Speed(), random.Random(1)
    for rows, context in loads:
        factor = 1 + noise * chance.uniform(-1, 1)
        speed.observe_step(rows, context, truth.seconds(rows, context) * factor)
    return speed.cost


def test_without_observations_the_prior_holds() -> None:
    assert Speed().cost == StepCost()


def test_a_few_steps_tell_an_engines_size() -> None:
    found = observed(StepCost(step=0.1), [(1, 100)] * 3)
    assert found.seconds(1, 100) == pytest.approx(0.1, rel=0.01)
    grows = found.seconds(8, 800) / found.seconds(1, 100)
    prior = StepCost().seconds(8, 800) / StepCost().seconds(1, 100)
    assert grows == pytest.approx(prior, rel=0.01)


@pytest.mark.parametrize(
    "truth",
    [
        StepCost(step=0.03, row=0.002, context=1e-6),
        StepCost(step=0.001, row=0.02, context=0.0),
        StepCost(step=0.02, row=0.0, context=5e-6),
    ],
)
def test_the_three_costs_are_found_from_mixed_loads(truth: StepCost) -> None:
    """TAPER reports a mean error of 1.8 %; here each step is off by up to 5 %."""
    chance = random.Random(7)
    loads = [(n := chance.randint(1, 16), n * chance.randint(50, 2000)) for _ in range(KEPT)]
    found = observed(truth, loads, noise=0.05)
    for rows in (1, 4, 16):
        assert found.seconds(rows, rows * 500) == pytest.approx(
            truth.seconds(rows, rows * 500), rel=0.05
        )


def test_what_is_older_than_the_last_200_steps_is_forgotten() -> None:
    speed = Speed()
    for seconds in [1.0] * 50 + [0.01] * KEPT:
        speed.observe_step(1, 100, seconds)
    assert speed.cost.seconds(1, 100) == pytest.approx(0.01, rel=0.01)


def test_a_batch_that_became_free_is_known_at_once() -> None:
    speed, free = Speed(), StepCost(step=0.02, row=0.0)
    for _ in range(KEPT):
        speed.observe_step(1, 100, 0.02)
        speed.observe_step(5, 500, 0.1)
    assert speed.cost.seconds(5, 500) == pytest.approx(0.1, rel=0.1)
    for _ in range(10):
        speed.observe_step(5, 500, free.seconds(5, 500))
    assert speed.cost.seconds(5, 500) == pytest.approx(0.02, rel=0.1)


def test_one_pause_of_many_rows_is_no_other_engine() -> None:
    speed = Speed()
    for _ in range(40):
        speed.observe_step(5, 500, 0.02)
    before = speed.cost.seconds(5, 500)
    for seconds in [*[0.02] * 6, 5.0, 9.0]:
        speed.observe_step(5, 500, seconds)
    assert speed.num_steps == 48
    assert speed.cost.seconds(5, 500) == pytest.approx(before, rel=0.02)


def test_a_pause_of_the_engine_is_no_step() -> None:
    found = observed(StepCost(step=0.02), [(1, 100)] * 20)
    speed = Speed()
    for seconds in [*[0.02] * 20, 5.0, 9.0]:
        speed.observe_step(1, 100, seconds)
    assert speed.cost.seconds(1, 100) == pytest.approx(found.seconds(1, 100), rel=0.02)


def test_the_first_token_tells_what_a_call_and_a_prompt_token_cost() -> None:
    speed = Speed()
    for new in (50, 100, 400, 2000) * 5:
        speed.observe_first(new, 0.2 + 0.001 * new)
    assert speed.cost.first(1000) == pytest.approx(1.2, rel=0.02)


@given(
    st.lists(
        st.tuples(st.integers(1, 64), st.integers(0, 10**6), st.floats(1e-6, 100)), max_size=60
    )
)
def test_no_cost_is_ever_negative(seen: list[tuple[int, int, float]]) -> None:
    speed = Speed()
    for rows, context, seconds in seen:
        speed.observe_step(rows, context, seconds)
    cost = speed.cost
    assert min(cost.step, cost.row, cost.context) >= 0
    assert cost.seconds(1, 100) > 0


def test_steps_that_only_depend_on_the_context_are_not_free() -> None:
    speed = Speed()
    for context in range(100, 2000, 10):
        speed.observe_step(1, context, 1e-3 * context)
    assert speed.cost.step > 0
    assert speed.cost.seconds(1, 1000) == pytest.approx(1.0, rel=0.05)


def test_senseless_costs_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="row"):
        StepCost(row=-1)
    with pytest.raises(InvalidRequest, match="more than 0"):
        StepCost(step=0, row=0)


@given(
    st.floats(0, 0.1),
    st.floats(0, 1e-5),
    st.integers(1, 64),
    st.integers(0, 500),
    st.floats(0, 10**5),
)
def test_the_width_is_at_least_one_and_never_above_the_limit(
    row: float, per_token: float, limit: int, others: int, context: float
) -> None:
    cost = StepCost(row=row, context=per_token)
    width = allowed_width(cost, limit=limit, others=others, context=context)
    assert 1 <= width <= limit
    assert allowed_width(cost, limit=limit, others=others + 50, context=context) <= width


def test_an_engine_alone_gives_all_of_the_width() -> None:
    assert allowed_width(StepCost(row=1.0), limit=8, others=0, context=100) == 8
