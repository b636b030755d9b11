"""Values while they are written: never more than what is certain."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import template
from headrace.middleware.partial import PartialJson
from headrace.middleware.partial_template import PartialTemplate

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def is_beginning(part: Any, whole: Any, *, grow: bool) -> bool:
    """Whether the whole can become of the part by writing on."""
    if isinstance(whole, dict) and isinstance(part, dict):
        same = [*whole][: len(part)] == [*part]
        return same and all(is_beginning(part[key], whole[key], grow=grow) for key in part)
    if isinstance(whole, list) and isinstance(part, list):
        *done, last = part or [None]
        if part and done != whole[: len(done)]:
            return False
        is_last = last == whole[len(done)] if part else True
        return is_last or (grow and is_beginning(last, whole[len(done)], grow=True))
    if grow and isinstance(whole, str) and isinstance(part, str):
        return whole.startswith(part)
    return type(part) is type(whole) and part == whole


@given(JSON, st.booleans(), st.booleans(), st.sampled_from([None, 1]))
def test_every_prefix_of_a_json_text_gives_the_beginning_of_its_value(
    value: Any, grow: bool, is_ascii: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii, indent=indent)
    whole = json.loads(text)
    reader = PartialJson(grow=grow)
    for c in text:
        has_changed = reader.push(c)
        assert has_changed <= reader.has_value
        if reader.has_value:
            assert is_beginning(reader.value, whole, grow=grow), (reader.text, reader.value)
    reader.finish()
    assert reader.value == whole
    assert reader.is_done
    assert not reader.is_broken
    assert reader.num_valid == len(text)
    assert reader.open == ""


@given(JSON, st.integers(1, 9), st.booleans())
def test_the_size_of_the_pieces_does_not_matter(value: Any, size: int, grow: bool) -> None:
    text = json.dumps(value)
    whole, pieces = PartialJson(grow=grow), PartialJson(grow=grow)
    for start in range(0, len(text), size):
        for c in text[start : start + size]:
            whole.push(c)
        pieces.push(text[start : start + size])
        assert (whole.has_value, whole.value) == (pieces.has_value, pieces.value)


@pytest.mark.parametrize(
    ("text", "certain", "growing"),
    [
        ('{"n": 12', {}, {}),
        ('{"n": 12,', {"n": 12}, {"n": 12}),
        ('{"n": -', {}, {}),
        ('{"n": 1.', {}, {}),
        ('{"b": true', {}, {}),
        ('{"b": true}', {"b": True}, {"b": True}),
        ('{"s": "half', {}, {"s": "half"}),
        (r'{"s": "a\ud83d', {}, {"s": "a"}),
        (r'{"s": "a\ud83d\ude00', {}, {"s": "a😀"}),
        (r'{"s": "a\u00', {}, {"s": "a"}),
        ('{"ke', {}, {}),
        ("[1, 2", [1], [1]),
        ('[{"a": 1, "b', [], [{"a": 1}]),
        ('[{"a": 1}', [{"a": 1}], [{"a": 1}]),
        ('{"o": {"a": 1, ', {"o": {"a": 1}}, {"o": {"a": 1}}),
        ("[[1, ", [], [[1]]),
    ],
)
def test_only_what_is_certain_is_there(text: str, certain: Any, growing: Any) -> None:
    for grow, expected in ((False, certain), (True, growing)):
        reader = PartialJson(grow=grow)
        reader.push(text)
        assert reader.value == expected


@pytest.mark.parametrize(
    ("text", "num_valid"),
    [
        ("Sure! Here", 0),
        ('{"a": 1} and', 9),
        ("[1,]", 3),
        ("[01]", 2),
        ("[1 2]", 3),
        ('{"a" 1}', 5),
        ("{1: 2}", 1),
        ('"a\nb"', 2),
        (r'"a\qb"', 3),
        ("NaN", 0),
        ("[}", 1),
        ("nulll", 4),
        ("[-]", 2),
    ],
)
def test_reading_stops_where_the_text_is_no_json(text: str, num_valid: int) -> None:
    reader = PartialJson(grow=True)
    reader.push(text)
    assert reader.is_broken
    assert reader.num_valid == num_valid
    assert not reader.push("[1, 2]")


def test_a_text_of_forty_kilobytes_is_read_once_not_once_a_piece() -> None:
    reader = PartialJson()
    text = json.dumps({"items": [{"name": "x" * 50, "n": n} for n in range(500)]})
    num_changes = sum(reader.push(text[at : at + 4]) for at in range(0, len(text), 4))
    assert num_changes == 502  # the object, its list, and an item at a time


FORM = template(
    "Name: {name}\nAge: {age:int}\nTags: {tags}\nCity: {city}.",
    tags=list[str],
    city=["New", "New York", "York"],
)
TEXT = 'Name: Ann\nAge: 42\nTags: ["a", "b"]\nCity: New York.'


@pytest.mark.parametrize(
    ("upto", "certain"),
    [
        ("Name: An", {}),
        ("Name: Ann\n", {"name": "Ann"}),
        ("Name: Ann\nAge: 4", {"name": "Ann"}),
        ("Name: Ann\nAge: 42\n", {"name": "Ann", "age": 42}),
        ('["a", "b"', {"name": "Ann", "age": 42}),
        ('["a", "b"]', {"name": "Ann", "age": 42, "tags": ["a", "b"]}),
        ("City: New", {"name": "Ann", "age": 42, "tags": ["a", "b"]}),
        ("New York.", {"name": "Ann", "age": 42, "tags": ["a", "b"], "city": "New York"}),
    ],
)
def test_fields_of_a_template_are_there_once_they_are_certain(upto: str, certain: Any) -> None:
    reader = PartialTemplate(str(FORM.spec))
    for c in TEXT[: TEXT.index(upto) + len(upto)]:
        reader.push(c)
    assert reader.value == certain


def test_the_field_that_is_being_written_grows_when_asked_for() -> None:
    reader = PartialTemplate(str(FORM.spec), grow=True)
    seen: list[Any] = []
    for c in TEXT:
        if reader.push(c):
            seen.append(reader.value)
    assert seen[:4] == [{"name": ""}, {"name": "A"}, {"name": "An"}, {"name": "Ann"}]
    assert {"name": "Ann", "age": 42, "tags": ["a"]} in seen
    assert not any(one.get("age") == 4 for one in seen)
    assert seen[-1] == FORM.parse(TEXT) if FORM.parse else False
