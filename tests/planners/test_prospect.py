"""What is expected of asking for a plan."""

from __future__ import annotations

import pytest

from headrace.planners.prospect import LEARNT, Habits, Prospect, prospect
from headrace.planners.speed import StepCost

SERIAL = StepCost(step=0.0, row=0.01, context=0.0, prefill=0.0, call=0.0)


def expected(cost: StepCost, habits: Habits | None = None, **other: int) -> Prospect:
    said = {"prompt": 100, "shared": 0, "max_tokens": 400, "most": 8, "width": 8} | other
    return prospect(cost, habits or Habits(), **said)


def learnt(*plans: tuple[int, int, int]) -> Habits:
    habits = Habits()
    for plan in plans:
        habits.observe(*plan)
    return habits


def test_a_new_engine_is_expected_to_gain() -> None:
    assert expected(StepCost()).gain > 2


def test_an_engine_without_a_batch_is_not() -> None:
    assert expected(SERIAL).gain < 1


def test_prompts_that_each_row_reads_again_are_counted() -> None:
    cost = StepCost(step=0.01, row=0.001, context=0.0, prefill=0.001, call=0.0)
    assert expected(cost, prompt=2000, shared=2000).gain > 1.15 > expected(cost, prompt=2000).gain


def test_the_plan_is_counted() -> None:
    short, long = learnt((40, 400, 4), (40, 400, 4)), learnt((400, 400, 4), (400, 400, 4))
    assert expected(StepCost(), short).gain > 1.5
    assert expected(StepCost(), long).gain < 1.15


def test_plans_of_no_use_are_counted() -> None:
    good = learnt(*[(50, 400, 4)] * 8)
    bad = learnt(*[(50, 400, 4), (200, 0, 0), (200, 0, 0), (200, 0, 0)] * 2)
    assert good.usable > 0.9 > 0.5 > bad.usable
    assert expected(StepCost(), bad).gain < expected(StepCost(), good).gain


def test_one_plan_is_not_a_habit() -> None:
    assert LEARNT == 2
    assert expected(StepCost(), learnt((400, 400, 4))).gain > 1.15


def test_a_width_of_one_gains_nothing() -> None:
    assert expected(StepCost(), width=1).gain < 1


def test_free_rows_gain_what_the_plan_leaves() -> None:
    """One step for all rows: the plan's 80 steps, then what is left of the last part."""
    free = StepCost(step=0.01, row=0.0, context=0.0, prefill=0.0, call=0.0)
    found = expected(free, learnt(*[(80, 400, 4)] * 2))
    assert found.gain == pytest.approx(400 / 180, rel=0.15)
    assert (found.num_parts, found.answer_tokens, found.num_plans) == (4, 400, 2)


def test_answers_that_one_call_wrote_gain_nothing() -> None:
    divided, collapsed = Habits(), Habits()
    for _ in range(3):
        divided.observe(40, 400, 4, longest=0.25)
        collapsed.observe(40, 400, 4, longest=1.0)
    assert expected(StepCost(), divided).gain > 2
    assert expected(StepCost(), collapsed).gain < 1.15


def test_a_trial_counts_for_more_than_what_was_learnt_before() -> None:
    habits = learnt(*[(400, 20, 4)] * 8, *[(400, 0, 0)] * 8)
    assert expected(StepCost(), habits).gain < 1.15
    habits.observe(40, 400, 4, longest=0.25, is_trial=True)
    assert expected(StepCost(), habits).gain > 1.15


def test_a_trial_of_no_use_is_one_more_plan_of_no_use() -> None:
    habits = learnt(*[(40, 400, 4)] * 4)
    before = habits.answer_tokens
    habits.observe(40, 0, 0, is_trial=True)
    assert habits.usable < 1
    assert habits.answer_tokens == before
