"""How tokens are counted where engines say nothing of them, or nothing that can be true."""

from __future__ import annotations

import pytest

from headrace.planners.counting import Count, believed_tokens

PLAN = "1. Alpha one\n2. Beta two\n3. Gamma three\n4. Delta four\n"


@pytest.mark.parametrize("said", [10**6, 2000, -(10**6), 0, 1])
def test_an_odd_number_is_not_believed(said: int) -> None:
    assert 10 <= believed_tokens(said, PLAN, max_tokens=224) <= 20


def test_reasoning_that_was_not_shown_is_believed_where_there_was_time_for_it() -> None:
    assert believed_tokens(200, PLAN, max_tokens=224, most_written=250) == 200
    assert believed_tokens(200, PLAN, max_tokens=224, most_written=30) < 20


@pytest.mark.parametrize("said", [0, -5, 10**6, 1])
def test_big_pieces_are_not_a_token_each(said: int) -> None:
    count = Count(900)
    count.piece("word " * 300)
    assert 300 <= count.end(said) <= 900


def test_a_usage_that_can_be_is_taken() -> None:
    count = Count(900)
    count.piece("word " * 300)
    assert count.end(300) == 300


def test_a_call_that_was_cut_has_used_its_limit() -> None:
    count = Count(50)
    count.piece("word ")
    assert count.end(is_cut=True) == 50
