"""Answers in the middle of prose. What is unclear stays what it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.backends.remote.extract import choice_text, fenced_text, json_text, regex_text


def has_n(value: Any) -> bool:
    return isinstance(value, dict) and "n" in value


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{"n": 1}', '{"n": 1}'),
        ('\n {"n": 1}\n\n', '{"n": 1}'),
        ('Here you are:\n```json\n{"n": 1}\n```\nBye!', '{"n": 1}'),
        ('```\n{"n": 1}```', '{"n": 1}'),
        ('The set {a, b} gives {"n": 1}. Also {"n": 2}.', '{"n": 1}'),
        ('{"m": 0} and then {"n": 1}', '{"n": 1}'),
        ('{"m": 0} only', '{"m": 0}'),
        ('[{"n": 1}] is it', '[{"n": 1}]'),
        ('{"n": "a } ] \\" {"}!', '{"n": "a } ] \\" {"}'),
        ('{"n": [1, 2,], }', '{"n": [1, 2] }'),
        ('{"n": ",]"}', '{"n": ",]"}'),
        ('{"n": [1, {"a": 2', '{"n": [1, {"a": 2}]}'),
        ('{"n": [1, 2,', '{"n": [1, 2]}'),
        ('<think>{"n": 0}?</think>{"n": 1}', '{"n": 1}'),
        ("true", "true"),
        (' "a" ', '"a"'),
    ],
)
def test_the_value_is_found_and_mended(text: str, wanted: str) -> None:
    assert json_text(text, has_n) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "", "No.", "{n: 1}", "{'n': 1}", '{"n": }', '{"n": "unfinished', '{"n"', '{"n":',
        '{"n": 1]', '{"n": NaN}', '{"n": tru', '{"n": 1 "m": 2}', "{" * 3000, "[1, 2}", "TRUE",
    ],
)  # fmt: skip
def test_nothing_is_invented(text: str) -> None:
    assert json_text(text, has_n) is None


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


_WRAPPINGS = st.sampled_from(["{}", "Sure: {} Bye.", "```json\n{}\n```"])


@given(st.dictionaries(st.text(max_size=4), _VALUES), _WRAPPINGS)
def test_any_object_survives_its_wrapping(value: dict[str, Any], wrapping: str) -> None:
    raw = json.dumps(value).replace("```", "\\u0060" * 3)
    found = json_text(wrapping.replace("{}", raw), lambda one: one == value)
    assert found is not None
    assert json.loads(found) == value


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("New York", "New York"),
        ("**New York**.", "New York"),
        ("'New'", "New"),
        ("I pick New York because it is new.", "New York"),
        ("i pick new york", "New York"),
        ("New or New York", None),
        ("Newer", None),
        ("Boston", None),
        ("", None),
        ("<think>New?</think> New York", "New York"),
    ],
)
def test_fault_1_a_choice_is_the_one_option_that_is_named(text: str, wanted: str | None) -> None:
    assert choice_text(text, ["New", "New York"]) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("AB-12", "AB-12"),
        ("The code is:\n`AB-12`\n", "AB-12"),
        ("AB-12\nAB-12", "AB-12"),
        ("AB-12\nCD-34", None),
        ("it is AB-12", None),
    ],
)
def test_a_pattern_takes_the_only_line_that_matches(text: str, wanted: str | None) -> None:
    assert regex_text(text, "[A-Z]{2}-[0-9]{2}") == wanted


def test_a_pattern_that_takes_for_ever_matches_nothing() -> None:
    assert regex_text("a" * 40, "(a|aa)+$b") is None


def test_a_pattern_of_many_lines_takes_the_text_as_it_is() -> None:
    assert regex_text("a\nb\n", r"(?:[a-z]\n)+") == "a\nb\n"


def test_a_text_of_a_grammar_leaves_its_only_fence() -> None:
    assert fenced_text("Here:\n```lark\n1 + 2\n```") == "1 + 2"
    assert fenced_text(" 1 + 2 ") == "1 + 2"
