"""Templates: how they are written, and how a text is taken apart again."""

from __future__ import annotations

import json
import re
from typing import Any, Literal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from headrace import Constraint, InvalidRequest, grammar, template
from headrace.middleware.outcome import broken, parsed
from headrace.middleware.partial_template import PartialTemplate
from headrace.middleware.template import Template
from headrace.middleware.types import Response


class Item(BaseModel):
    name: str
    price: float = Field(gt=0)


def read(made: Constraint, text: str) -> Any:
    return parsed(Response(text), made)


def test_fields_come_back_as_their_types() -> None:
    made = template(
        "{{{name}}} is {age:int}, {height:float} m, {tall:bool}; {mood:happy|sad}; {item}; {code}.",
        item=Item,
        code=re.compile("[A-Z]{2}"),
    )
    text = '{Ann} is 42, 1.75 m, true; sad; {"name": "cup", "price": 2}; AB.'
    assert read(made, text) == {
        "name": "Ann",
        "age": 42,
        "height": 1.75,
        "tall": True,
        "mood": "sad",
        "item": Item(name="cup", price=2),
        "code": "AB",
    }


def test_equal_templates_are_equal_keys_and_travel_as_json() -> None:
    def make() -> Constraint:
        return template("A: {a:int}\nB: {b}", b=Literal["x", "y"])

    assert make() == make()
    assert hash(make()) == hash(make())
    again = Constraint.from_dict(json.loads(json.dumps(make().to_dict())))
    assert again == make()
    assert read(again, "A: 7\nB: y") == {"a": 7, "b": "y"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{a}\nB: {b}", {"a": "one", "b": "two\nthree"}),
        ("{a}\n\nB: {b}", None),
    ],
)
def test_free_text_ends_at_the_line_break_behind_it_or_at_the_end(text: str, expected: Any) -> None:
    made = template(text)
    problem = broken("one\nB: two\nthree", made)
    assert (problem is None) == (expected is not None)
    if expected:
        assert read(made, "one\nB: two\nthree") == expected


def test_free_text_may_have_paragraphs_before_an_empty_line() -> None:
    made = template("{a}\n\nEnd: {b}")
    assert read(made, "one\ntwo\n\nEnd: three") == {"a": "one\ntwo", "b": "three"}


def test_a_field_gives_back_what_the_text_behind_it_needs() -> None:
    made = template("{a} and {b}", a=re.compile("[a-z ]+"), b=re.compile("[a-z ]+"))
    assert read(made, "x and y and z") == {"a": "x and y", "b": "z"}
    cities = template("{city} York!", city=["New", "New York"])
    assert read(cities, "New York!") == {"city": "New"}
    assert read(cities, "New York York!") == {"city": "New York"}
    assert read(template("{n:float}."), "1.5.") == {"n": 1.5}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Name: Ann\nAge: x", "/age: no full match of '-?(?:"),
        ("Nam: Ann\nAge: 1", "'Name: ' should stand at character 0"),
        ("Name: Ann\nAge: 1\n", "at character 15, but '1\\n'"),
        ("Name: Ann\nAge: 01", "at character 15, but '01'"),
        ("Name: Ann", "/name: no text at character 6, but 'Ann'"),
    ],
)
def test_what_does_not_fit_is_said_with_its_place(text: str, says: str) -> None:
    problem = broken(text, template("Name: {name}\nAge: {age:int}"))
    assert problem is not None
    assert says in problem


def test_a_fields_own_schema_and_type_are_checked_with_their_path() -> None:
    made = template("Item: {item}.", item=Item)
    problem = str(broken('Item: {"name": "cup", "price": "2"}.', made))
    assert problem.startswith("/item/price: ")
    checked = template("Item: {item}.", item={"type": "object", "required": ["name"]})
    assert "/item: 'name' is a required" in str(broken("Item: {}.", checked))


@pytest.mark.parametrize(
    ("text", "fields", "says"),
    [
        ("no field", {}, "1 to 100 fields"),
        ("{a}{b}", {}, "put a text between {a} and {b}"),
        ("{a} {a}", {}, "there twice"),
        ("{a", {}, "cannot be read"),
        ("a}", {}, "cannot be read"),
        ("{}", {}, "a field's name"),
        ("{a.b}", {}, "a field's name"),
        ("{a!r}", {}, "a field's name"),
        ("{a:date}", {}, "is none of str, int, float, bool and no choice"),
        ("{a:x|}", {}, "non-empty texts"),
        ("{a:int}", {"a": int}, "said twice"),
        ("{a}", {"b": int}, "has no field {b}"),
        ("{a}", {"a": 42}, "no constraint"),
        ("{a}", {"a": grammar('start: "x"')}, "cannot be a grammar"),
        ("{a}", {"a": template("{b}")}, "cannot be a template"),
        ("{a}5", {"a": {"type": ["integer", "null"]}}, "put a space there"),
        (" ".join(f"{{f{n}}}" for n in range(101)), {}, "1 to 100 fields"),
        (5, {}, "a template is a text"),
    ],
)
def test_what_is_no_template_is_refused(text: Any, fields: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(says)) as caught:
        template(text, **fields)
    assert "\n" not in str(caught.value)


MANY = json.dumps([{"name": "a", "kind": "text"}] * 101)


@pytest.mark.parametrize(
    "spec", ["", "5", "[5]", '[{"kind": "text"}]', "{}", MANY, json.dumps(["a"] * 5000)]
)
def test_a_spec_that_is_none_is_refused(spec: str) -> None:
    with pytest.raises(InvalidRequest):
        Template.from_spec(spec)


# A field's kind with texts that fit it; a fixed text holds no brace.
FIELDS: dict[str, tuple[Any, st.SearchStrategy[str]]] = {
    "text": (str, st.text(max_size=8)),
    "int": (int, st.integers(-(10**18) + 1, 10**18 - 1).map(str)),
    "float": (float, st.floats(allow_nan=False, allow_infinity=False).map(repr)),
    "bool": (bool, st.sampled_from(["true", "false"])),
    "choice": (["a", "a b", "b: c"], st.sampled_from(["a", "a b", "b: c"])),
    "pattern": (re.compile("[a-c :]+"), st.text("abc :", min_size=1, max_size=6)),
    "json": ({}, st.recursive(st.text() | st.integers(), st.lists, max_leaves=4).map(json.dumps)),
}
FIXED = st.text(st.sampled_from("ab: .\n,1"), min_size=1, max_size=4)


@st.composite
def filled(draw: st.DrawFn) -> tuple[Constraint, dict[str, str], str]:
    """Return a template, its fields' texts and the text that they make together."""
    kinds = draw(st.lists(st.sampled_from([*FIELDS]), min_size=1, max_size=4))
    fixed = [draw(FIXED) for _ in range(len(kinds) + 1)]
    values = {f"f{at}": draw(FIELDS[kind][1]) for at, kind in enumerate(kinds)}
    pattern, text = fixed[0], fixed[0]
    for (name, value), after in zip(values.items(), fixed[1:], strict=True):
        pattern += f"{{{name}}}{after}"
        text += value + after
    types = {f"f{at}": FIELDS[kind][0] for at, kind in enumerate(kinds)}
    try:
        return template(pattern, **types), values, text
    except InvalidRequest as error:
        assume("put a space" not in str(error))
        raise


@given(filled())
def test_taking_a_text_apart_and_joining_it_again_loses_nothing(
    made: tuple[Constraint, dict[str, str], str],
) -> None:
    constraint, values, text = made
    parts = Template.from_spec(str(constraint.spec))
    try:
        found = parts.split(text)
    except ValueError:
        # Only where a free text held what ends it.
        until = {one.name: one.until for one in parts.fields if one.kind == "text"}
        assert any(end and end in values[name] + end[:-1] for name, end in until.items())
        return
    joined = "".join(one if isinstance(one, str) else found[one.name] for one in parts.parts)
    assert joined == text
    for one in parts.fields:
        one.read(found[one.name])
    assert parts.split(joined) == found


@given(filled())
def test_a_field_that_is_certain_never_changes(
    made: tuple[Constraint, dict[str, str], str],
) -> None:
    constraint, _, text = made
    parts = Template.from_spec(str(constraint.spec))
    try:
        found = parts.split(text)
    except ValueError:
        assume(False)
        return
    whole = {one.name: one.read(found[one.name]) for one in parts.fields}
    reader = PartialTemplate(str(constraint.spec))
    for c in text:
        reader.push(c)
        for name, value in reader.value.items():
            assert value == whole[name], (reader.text, reader.value)
