from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.planners.overlap import Overlap

BEFORE = "Heat pumps move heat from the cold air outside into the warm house"


def continued(before: str, text: str, size: int = 3) -> str:
    overlap = Overlap(before)
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    return before + "".join(overlap.feed(piece) for piece in pieces) + overlap.flush()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" and save money.", BEFORE + " and save money."),
        ("and save money.", BEFORE + " and save money."),
        (", quietly.", BEFORE + ", quietly."),
        ("into the warm house and save.", BEFORE + " and save."),
        (BEFORE + " and save.", BEFORE + " and save."),
        (BEFORE, BEFORE),
        ("", BEFORE),
        ("Heat", BEFORE + " Heat"),
        ("Heat pumps move heat from the cold air into rooms.", BEFORE + " into rooms."),
    ],
)
def test_a_continuation_says_nothing_twice(text: str, expected: str) -> None:
    assert continued(BEFORE, text) == expected


def test_a_text_that_ends_in_white_space_needs_no_gap() -> None:
    assert continued("one two ", "three") == "one two three"
    assert continued("Exercise helps the heart ", "Exercise helps the heart and") == (
        "Exercise helps the heart and"
    )


@given(st.text(alphabet="ab ", max_size=60), st.text(alphabet="cd ", max_size=60))
def test_nothing_new_is_lost(before: str, text: str) -> None:
    assert continued(before, text).replace(" ", "") == (before + text).replace(" ", "")


@given(st.text(alphabet="ab c", max_size=60), st.text(alphabet="ab c", max_size=60), st.data())
def test_how_the_text_is_cut_does_not_matter(before: str, text: str, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 30))
    whole = continued(before, text, 1000)
    assert continued(before, text, size) == whole


def test_a_text_of_one_word_that_begins_again_is_not_doubled() -> None:
    overlap = Overlap("Sleep")
    assert overlap.feed("Sleep ") + overlap.feed("gets deeper.") == " gets deeper."
