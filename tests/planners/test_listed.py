from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.planners.listed import find_items

ABC = "1. red\n2. green\n3. blue"


@pytest.mark.parametrize(
    ("prompt", "items"),
    [
        ("Translate the following 3 sentences to French:\n1. Hi.\n2. Bye.\n3. She is tall.",
         ("Hi.", "Bye.", "She is tall.")),
        ("For each word below, give a synonym.\n\n- happy\n- sad\n- big", ("happy", "sad", "big")),
        ("Classify each review as good or bad:\na) nice\nb) awful\nc) okay",
         ("nice", "awful", "okay")),
        ("Define the following terms:\nentropy\nenthalpy\nheat", ("entropy", "enthalpy", "heat")),
        ("Write a line on each of the following animals: cat, dog, cow and hen.",
         ("cat", "dog", "cow", "hen")),
        ("Answer the following questions:\n1. Who wrote Faust?\n2. Where is Peru?\n3. What is tin?",
         ("Who wrote Faust?", "Where is Peru?", "What is tin?")),
        ("Please correct these sentences:\n\n(4) He go.\n\n(5) I is.\n\n(6) We am.\n\nThank you.",
         ("He go.", "I is.", "We am.")),
        ("Simplify each paragraph:\n1. First line\n   second line\n2. b\n3. c",
         ("First line\nsecond line", "b", "c")),
        ("Translate each line:\n1. same\n2. same\n3. same", ("same", "same", "same")),
    ],
)  # fmt: skip
def test_a_list_of_items_is_found(prompt: str, items: tuple[str, ...]) -> None:
    found = find_items(prompt)
    assert found is not None
    assert found.items == items


@pytest.mark.parametrize(
    "prompt",
    [
        f"Rank each of the following colours:\n{ABC}",
        f"Compare the following colours:\n{ABC}",
        f"Write a story with each of the following:\n{ABC}",
        "Write a story using each of the following words: cat, dog, hen",
        f"Which of the following colours is warm? Explain each.\n{ABC}",
        f"Translate the following 4 sentences:\n{ABC}",  # the number is another
        f"Translate this:\n{ABC}",
        f"Follow each of these steps:\n{ABC}",
        f"Summarize the following points in a paragraph:\n{ABC}",
        f"Translate each word and return a JSON array:\n{ABC}",
        "Answer these questions:\n1. Who was Bach?\n2. When was he born?\n3. Where did he live?",
        "Translate each:\n1. a\n2. b",  # two are not worth it
        "Translate each:\n1. a\n3. b\n4. c",
        "Translate each:\n1. a\n- b\n* c",
        "Translate each:\n1. a\n   - x\n2. b\n3. c",
        "Translate each:\n1. a\nBut then:\n2. b\n3. c",
        "Translate each:\n1. a\n2. b\n3. c\nReturn a list of all.",
        "Translate each:\n```\n1. a\n2. b\n3. c\n```",
        ABC,
        "",
        "What are the benefits of exercise?",
        "Each of us: you, me, them",
    ],
)
def test_where_there_is_doubt_there_is_no_list(prompt: str) -> None:
    assert find_items(prompt) is None


LINE = st.from_regex(r"[A-Za-z][A-Za-z ,']{0,30}[A-Za-z]", fullmatch=True)


@given(st.lists(LINE, min_size=3, max_size=40), st.sampled_from(["{n}. ", "{n}) ", "- ", "* ", ""]))
def test_no_item_is_lost_merged_or_changed(items: list[str], mark: str) -> None:
    lines = [mark.replace("{n}", str(at)) + item for at, item in enumerate(items, 1)]
    found = find_items("Translate each sentence to French:\n" + "\n".join(lines))
    assert found is not None
    assert found.items == tuple(items)
    assert [f"{m} {i}".strip() for m, i in zip(found.marks, items, strict=True)] == lines


@given(st.text(max_size=300))
def test_no_prompt_breaks_it(prompt: str) -> None:
    find_items(prompt)
    find_items("Translate each sentence:\n" + prompt)


@pytest.mark.parametrize(
    "piece", [".", " ", "each of the ", "1. ", "a: ", "\n- ", "\n", "1.\n", ","]
)
def test_a_long_prompt_takes_no_longer_than_reading_it(piece: str) -> None:
    start = time.process_time()
    find_items("Translate each of the words: " + piece * (100_000 // len(piece)) + "!")
    find_items("Translate each of the following:\n1. a\n2. b\n3. " + piece * 20_000)
    assert time.process_time() - start < 5
