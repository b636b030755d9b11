from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.planners import fitting_nodes
from headrace.planners.budget import MIN_DIVIDED, PART_TOKENS, Budget, wanted_tokens


def test_a_part_gets_room_above_its_prediction() -> None:
    assert wanted_tokens(80) == 188
    assert Budget(None).grant(188, 5) == 188


@given(st.integers(48, 5000), st.lists(st.integers(1, 1000), min_size=1, max_size=8))
def test_all_grants_together_keep_the_limit(limit: int, wanted: list[int]) -> None:
    budget = Budget(limit)
    granted = [budget.grant(w, len(wanted) - i) for i, w in enumerate(wanted)]
    assert sum(granted) <= limit
    assert all(0 < g <= w for g, w in zip(granted, wanted, strict=True))


def test_what_is_not_used_can_be_granted_again() -> None:
    budget = Budget(100)
    assert budget.grant(500, 1) == 100
    assert budget.grant(10, 1) == 0
    budget.refund(40)
    assert budget.grant(500, 2) == 20


def test_only_parts_of_a_useful_size_count() -> None:
    assert fitting_nodes(None, 8) == 8
    assert fitting_nodes(PART_TOKENS * 3, 8) == 3
    assert fitting_nodes(MIN_DIVIDED - 1, 8) == fitting_nodes(10, 8) == 0


def test_what_is_kept_for_others_is_not_granted() -> None:
    budget = Budget(100)
    assert budget.grant(500, 1, kept=80) == 20
    assert budget.grant(500, 1, kept=81) == 0
    assert not budget.take(81)
    assert budget.take(80)
    assert budget.grant(1, 1) == 0
