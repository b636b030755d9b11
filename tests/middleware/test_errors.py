"""What an error says in Python, and what it says over HTTP."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from headrace.middleware.errors import (
    BackendError,
    DeadlineExceeded,
    HeadraceError,
    InvalidRequest,
    Overloaded,
    Truncated,
)
from headrace.middleware.shown import shown


@pytest.mark.parametrize(
    "kind", [HeadraceError, InvalidRequest, DeadlineExceeded, BackendError, Overloaded]
)
def test_a_hint_is_for_python_only_and_survives_another_process(kind: Any) -> None:
    error = pickle.loads(pickle.dumps(kind("the queue is full", hint=", raise max_queue")))
    assert str(error) == "the queue is full, raise max_queue"
    assert error.said == "the queue is full"
    assert kind("no hint").said == "no hint"


def test_a_cut_answer_names_its_text_only_where_there_is_one() -> None:
    error = pickle.loads(pickle.dumps(Truncated("it was cut", text="The mi")))
    assert str(error) == "it was cut (.text of this error is what there is)"
    assert (error.said, error.text) == ("it was cut", "The mi")
    assert str(Truncated("it was cut")) == "it was cut"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((True, "true"), (None, "null"), ([None, 1.5], "[null, 1.5]"), ("it's", '"it\'s"')),
        *((float("nan"), "nan"), ({(1, 2): 3}, "{(1, 2): 3}"), ("x" * 99, "'" + "x" * 59)),
    ],
)
def test_values_are_shown_as_json(value: Any, text: str) -> None:
    assert shown(value) == text
