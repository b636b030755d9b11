from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import Plan, Request
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


@pytest.mark.parametrize(
    "prompt",
    [
        "Translate each sentence to French:\n1. Hi.\n2. Good night.\n3. Bye.",
        "Please define the following terms:\n- entropy\n- heat\n- work",
        "Correct each of these sentences:\n\n(1) He go.\n\n(2) I is.\n\n(3) We am.",
    ],
)
def test_a_plain_order_is_mapped_without_being_told(prompt: str) -> None:
    assert Plan().choose(Request.of(prompt)).how == "slots"


@pytest.mark.parametrize(
    "prompt",
    [
        "Classify each review below as:\n- positive\n- negative\n- neutral\n\nReview: Great.",
        "For each word I send, do this:\n1. Define it\n2. Use it\n3. Spell it\n\nWord: dog",
        "I go to the gym every day. Why am I tired? My habits:\n- coffee\n- no sleep\n- no food",
        "Each of these facts is true:\n1. A > B\n2. B > C\n3. C > D\n\nWho is tallest?",
        "Translate every word that I send. Examples:\n- cat -> chat\n- dog -> chien\n- a -> un",
        "Give each of my dogs a different name:\n- the black one\n- the old one\n- the small one",
        "Solve the following equations:\n1. x + y = 3\n2. x - y = 1\n3. z = x",
        "Explain each line:\nx = 1\nx += 2\nprint(x)",
        "Translate each row to French:\n| name | colour |\n|---|---|\n| car | red |",
        "Translate each word and return a Python list:\n- a\n- b\n- c",
        "Translate each word, on one line, separated by semicolons:\n- a\n- b\n- c",
        "Convert each of the following amounts to euros: $1,000, $2,500, $3,000",
        "Answer the question and explain every option.\nWhat is red?\nA) Rose\nB) Sea\nC) Leaf",
    ],
)
def test_where_a_list_may_be_something_else_it_is_not_mapped_by_itself(prompt: str) -> None:
    assert Plan().choose(Request.of(prompt)).how != "slots"


def test_another_message_may_say_what_the_answer_is_like() -> None:
    order = {"role": "user", "content": "Translate each word to French:\n1. a\n2. b\n3. c"}
    system = {"role": "system", "content": "Answer with one JSON object and nothing else."}
    assert Plan().choose(Request.of([order])).how == "slots"
    assert Plan().choose(Request.of([system, order])).how != "slots"


@pytest.mark.parametrize(
    "items",
    [
        "$1,000, $2,500, $3,000",
        "(1, 2), (3, 4), (5, 6)",
        '"Hello, world", "Good night", "Bye"',
        "Paris, France, Rome, Italy",
        "France, Peru, Trinidad and Tobago",
    ],
)
def test_a_comma_that_may_be_within_an_item_divides_nothing(items: str) -> None:
    assert find_items(f"Say a word on each of the following things: {items}") is None


def test_indented_paragraphs_belong_to_their_item() -> None:
    found = find_items(
        "Translate each review:\n\n1. Good.\n\n   It broke.\n\n2. Bad.\n\n3. Fine.\n\n"
        "   Again!\n\nThanks."
    )
    assert found is not None
    assert found.items == ("Good.\nIt broke.", "Bad.", "Fine.\nAgain!")
    assert found.task.endswith("Thanks.")
