from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.planners.endings import ended, whole_length
from headrace.planners.fences import closing_fence
from headrace.planners.graph import Node
from headrace.planners.join import Join

_TEXT = st.text(alphabet="ab. !\n-#`:*。3", max_size=60)


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("It pays. It is ready to", "It pays."),
        ("It pays.", "It pays."),
        ("It is ready to", "It is ready…"),
        ("Is it? (Yes.) And so", "Is it? (Yes.)"),
        ("He said “go.” Then he", "He said “go.”"),
        ("It works, e.g. with", "It works, e.g.…"),
        ("So it is. It costs 3.", "So it is."),
        ("Since 2020. Then it", "Since 2020."),
        ("Do:\n\n1. Heat it.\n2. Wait for the", "Do:\n\n1. Heat it."),
        ("Do:\n\n1. Heat it.\n2.", "Do:\n\n1. Heat it."),
        ("Take\n\n- two eggs\n- a cup of", "Take\n\n- two eggs"),
        ("It is so.\n\nAs follows:\n\n- a cup", "It is so."),
        ("It is so.\n\n### Costs\n\nThey are", "It is so."),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n| 3", "| a | b |\n|---|---|\n| 1 | 2 |"),
        ("So:\n```py\na = 1\nb = [", "So:\n```py\na = 1"),
        ("他来了。然后他", "他来了。"),
        ("他来了", "他来了…"),
    ],
)
def test_a_cut_text_ends_with_what_is_whole(text: str, end: str) -> None:
    assert ended(text, 0) == end


def test_what_was_sent_stays() -> None:
    assert ended("It pays. It is ready to", 11) == "It pays. It is ready…"
    assert ended("It pays. It is ready to", 23) == "It pays. It is ready to…"


@given(_TEXT, st.integers(0, 60))
def test_nothing_is_rewritten_and_nothing_added_but_an_ellipsis(text: str, at: int) -> None:
    text = text.rstrip()
    sent = len(text[:at].rstrip())
    found = ended(text, sent)
    assert found.startswith(text[:sent])
    assert text.startswith(found.removesuffix("…").rstrip())
    assert whole_length(text) <= len(text)


@given(_TEXT, _TEXT)
def test_two_parts_are_one_text_however_they_are_cut(one: str, other: str) -> None:
    join = Join()
    join.add(Node(1, "Alpha"))
    join.add(Node(2, "Beta"))
    out = "".join(join.feed(1, piece) for piece in one)
    out += join.end(1, is_cut=True)
    out += join.feed(2, f"x {other}") + join.end(2)
    assert out == join.text
    before, _, _ = out.partition("**Beta**")
    assert not closing_fence(before)


def test_near_its_cut_a_part_is_passed_on_by_sentences() -> None:
    join = Join()
    join.add(Node(1, "Alpha"))
    sent = join.feed(1, "It keeps the house warm in winter. It ")
    join.approach(1, is_near_end=True)
    sent += join.feed(1, "is cheap. And it is ready")
    assert sent.endswith("It is cheap.")
    assert join.end(1, is_cut=True) == ""
    join.add(Node(2, "Beta"))
    assert join.feed(2, "Something else is said in here.").startswith("\n\n2. **Beta**")
