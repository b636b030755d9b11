from __future__ import annotations

from typing import Any

import pytest

from headrace.middleware.types import Constraint, Document, Message, Request, Sampling
from headrace.planners import forbidden, route
from headrace.planners.classifier import questions
from headrace.planners.router import GAIN, LONGEST, LOSS, SURE, UNSURE

LIST = "What are the benefits of regular exercise?"


@pytest.mark.parametrize(
    "question",
    [
        LIST,
        "How can I improve my time management skills?",
        "What are the most effective ways to deal with stress?",
        "What are the main differences between Python and cobras?".replace("Python", "pythons"),
        "Can you explain the main causes of the French Revolution?",
        "What if the Internet had been invented during the Renaissance period?",
        "List the pros and cons of remote work.",
        "What are the short-term effects of caffeine?",
        "有哪些学习英语的方法？",
    ],
)
def test_list_like_questions_are_planned(question: str) -> None:
    assert route(Request.of(question)).is_planned


@pytest.mark.parametrize(
    ("question", "why"),
    [
        ("Who wrote Hamlet?", "does not look"),
        ("Hi!", "does not look"),
        ("Write a Python function that lists the ways to sort.", "code"),
        ("```\nx = 1\n```\nWhat are the effects?", "code"),
        ("How many ways are there to order 5 books?", "maths"),
        ("Solve 3x + 5 = 20 and list the steps", "maths"),
        ("Compare the risks briefly.", "short"),
        ("What are the causes of rain, in one sentence?", "short"),
        ("Name the benefits of tea in under 50 words.", "short"),
        ("Which of the following are advantages? A) x B) y", "short"),
        ("Write an essay about the benefits of tea.", "writing"),
        ("Compose an engaging travel blog post about Hawaii with tips.", "writing"),
        ("Pretend you are Elon Musk and list reasons to go to Mars.", "writing"),
        ("Summarize the reasons given here: ...", "given text"),
        ("Translate the list of tips to French.", "given text"),
        ("Explain the stages of mitosis step by step.", "one step"),
        ("List the benefits of tea as JSON.", "format"),
        ("What are the benefits? " + "Text. " * 400, "long"),
        ("  ", "no question"),
    ],
)
def test_other_questions_are_not_planned(question: str, why: str) -> None:
    found = route(Request.of(question))
    assert not found.is_planned
    assert why in found.why


@pytest.mark.parametrize(
    "fields",
    [
        {"constraint": Constraint("regex", "a+")},
        {"sampling": Sampling(extra={"tools": [{"type": "function"}]})},
        {"sampling": Sampling(extra={"response_format": {"type": "json_object"}})},
        {"sampling": Sampling(extra={"n": 2})},
        {"sampling": Sampling(extra={"logprobs": True})},
        {"sampling": Sampling(stop=("END",))},
    ],
)
def test_what_needs_one_call_is_never_planned(fields: dict[str, Any]) -> None:
    request = Request.of(LIST, **fields)
    assert forbidden(request)
    assert not route(request).is_planned


def test_only_a_user_message_can_be_planned() -> None:
    asked = Message.user(LIST)
    assert forbidden(Request((asked, Message.assistant("They are"))))
    assert forbidden(Request((Message("tool", (), {"tool_call_id": "1"}), asked)))
    assert not forbidden(Request((asked,)))


@pytest.mark.parametrize(("limit", "is_planned"), [(149, False), (150, True), (None, True)])
def test_a_short_answer_is_not_worth_a_plan(limit: int | None, is_planned: bool) -> None:
    request = Request.of(LIST, sampling=Sampling(max_tokens=limit))
    assert route(request).is_planned is is_planned


def test_a_fact_is_not_planned_where_there_are_documents() -> None:
    documents = (Document("..."),)
    assert not route(Request.of("Which factors matter?", documents=documents)).is_planned
    assert route(Request.of(LIST, documents=documents)).is_planned


def test_pictures_are_not_planned() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:"}}
    content = [{"type": "text", "text": LIST}, picture]
    message = Message.from_dict({"role": "user", "content": content})
    assert not route(Request((message,))).is_planned


@pytest.mark.parametrize("question", ["How do heat pumps work?", "How does music affect mood?"])
def test_an_unsure_question_is_left_to_the_model(question: str) -> None:
    found = route(Request.of(question))
    assert not found.is_planned
    assert found.is_unsure
    assert found.share is not None
    assert UNSURE <= found.share < SURE
    assert not route(Request.of(question, documents=(Document("..."),))).is_unsure


def test_a_question_longer_than_all_labels_is_never_sure() -> None:
    longest = max(len(text.split()) for text, _ in questions())
    assert longest < LONGEST
    found = route(Request.of(LIST + " I ask since my aunt likes tea." * 6))
    assert (found.is_planned, found.is_unsure) == (False, True)


def test_a_wrong_yes_is_dearer_than_a_wrong_no() -> None:
    assert abs(SURE * GAIN - (1 - SURE) * LOSS) < 1e-9
    assert LOSS >= 2 * GAIN


def test_rules_say_no_before_the_classifier_is_asked() -> None:
    found = route(Request.of("List the benefits of tea as JSON."))
    assert found.share is None
    assert not found.is_unsure


def test_the_constraint_of_a_divided_answer_is_no_reason() -> None:
    request = Request.of(LIST, constraint=Constraint("choice", ("a", "b")))
    assert forbidden(request)
    assert not forbidden(request, constrained=True)
