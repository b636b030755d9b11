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


@pytest.mark.parametrize(
    ("before", "shown", "text", "expected"),
    [
        ("A heat pump transf", "A heat pump ", "transfers heat.", "A heat pump transfers heat."),
        ("A heat pump transf", "A heat pump ", "moves heat.", "A heat pump transf moves heat."),
        ("A heat pump moves", "A heat pump ", "moves heat.", "A heat pump moves heat."),
        ("It costs 3,", "It costs ", "3,500 euros.", "It costs 3,500 euros."),
        ("See https://exam", "See ", "https://example.org.", "See https://example.org."),
        ("Use std::", "Use ", "std::vector here.", "Use std::vector here."),
        ("in the U.", "in the ", "U.S. and", "in the U.S. and"),
        ("It is well-kno", "It is ", "well-known.", "It is well-known."),
        ("So it is warm.", "So it is warm.", "Then it cools.", "So it is warm. Then it cools."),
        ("It is warm,", "It is warm,", "but wet.", "It is warm, but wet."),
        ("Open readme.", "Open readme.", "txt first.", "Open readme.txt first."),
        ("Wärmepu", "", "Wärmepumpen heizen.", "Wärmepumpen heizen."),
        ("热泵把热", "热泵把热", "量搬进屋里。", "热泵把热量搬进屋里。"),
        ("x" * 50, "x" * 50, "y = 1", "x" * 50 + "y = 1"),
        ("One two. ", "One two. ", " Three.", "One two. Three."),
        ("A list:\n", "A list:\n", "\n- one", "A list:\n\n- one"),
    ],
)
def test_nothing_is_put_into_a_word_that_was_torn(
    before: str, shown: str, text: str, expected: str
) -> None:
    assert Overlap(before).shown == shown
    assert continued(before, text) == expected
    assert continued(before, text, 1) == expected


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


TEXT = (
    "A heat pump (e.g. an air-source one) doesn't make heat; it moves it. Costs: 3,500.50 euros, "
    'or "more" — see https://example.org/a?b=1. Use `std::move` in v1.2.\n\n- First, the *cold* '
    "side.\n- Then the warm side: U.S. models reach 3.5 kW!\n"
)


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_a_text_that_is_cut_anywhere_is_itself_again(size: int) -> None:
    for cut in range(1, len(TEXT)):
        before = TEXT[:cut]
        shown = Overlap(before).shown
        assert before.startswith(shown)
        assert continued(before, TEXT[len(shown) :], size) == TEXT, before
        if len(before) >= 12:
            assert continued(before, TEXT, size) == TEXT, before  # it begins again
