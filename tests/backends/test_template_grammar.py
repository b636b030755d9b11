"""Templates as grammars: exactly the texts that can be taken apart again, told byte by byte."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from headrace import InvalidRequest, UnsupportedConstraint, template
from headrace.backends.decoding.lark import template_grammar
from headrace.middleware.grammars import num_valid
from headrace.middleware.outcome import broken
from headrace.middleware.types import Constraint

PERSON = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}


def accepts(made: Constraint, text: str) -> bool:
    return num_valid(template_grammar(str(made.spec)), text)[1]


@pytest.mark.parametrize(
    ("pattern", "fields", "text", "is_accepted"),
    [
        ("N: {n}\nA: {a:int}", {}, "N: Ann\nA: 4", True),
        ("N: {n}\nA: {a:int}", {}, "N: An\nn\nA: 4", False),
        ("N: {n}\nA: {a:int}", {}, "N: Ann\nA: 04", False),
        ("{a}\n\nE: {b}", {}, "x\ny\n\nE: z", True),
        ("{a}\n\nE: {b}", {}, "x\n\n\nE: z", False),
        ("{a} is {b}.", {}, "this is his.", True),
        ("{a}aa{b:int}", {}, "aa1", True),
        ("{a}aa{b:int}", {}, "aaa1", False),  # the first "aa" ends the text
        ('{a} "q\\/{{}}~#\n{b:bool}', {}, 'x "q\\/{}~#\ntrue', True),
        ("{c} York!", {"c": ["New", "New York"]}, "New York!", True),
        ("{c} York!", {"c": ["New", "New York"]}, "New York York!", True),
        ("{c} York!", {"c": ["New", "New York"]}, "New York", False),
        ("{c}/x", {"c": re.compile(r"a/b\/|\\/")}, "a/b//x", True),
        ("{c}.", {"c": re.compile("(?i)^ab$")}, "AB.", True),
        ("{j}\nEnd", {"j": PERSON}, '{"n": 1}\nEnd', True),
        ("{j}\nEnd", {"j": PERSON}, '{"n": 1} \nEnd', False),
        ("{j} {k}", {"j": PERSON, "k": list[int]}, '{"n": 1} [1, 2]', True),
        ("{a}: {j}", {"j": PERSON, "a": re.compile(".+")}, 'a b: {"n": 1}', True),
        ("{a}: {j}", {"j": PERSON, "a": ["a", "a: b"]}, 'a: b: {"n": 1}', True),
        ("{a}: {j}", {"j": PERSON}, 'a b: {"n": 1}', True),
        ("{j}, {a}", {"j": PERSON}, '{"n": 1}, any\nthing {', True),
        ("{n:float}.", {}, "1.5.", True),
        ("汉{a}é", {}, "汉字é", True),
    ],
)
def test_a_grammar_lets_through_what_is_read_back(
    pattern: str, fields: dict[str, Any], text: str, is_accepted: bool
) -> None:
    made = template(pattern, **fields)
    assert accepts(made, text) is is_accepted
    if is_accepted:
        assert broken(text, made) is None


TEXTS = st.text(st.sampled_from("ab:\n ,"), min_size=1, max_size=3)


@settings(max_examples=200)
@given(TEXTS, TEXTS, TEXTS, st.text(st.sampled_from("ab:\n ,1"), max_size=12))
def test_grammar_and_reader_agree_about_every_text(
    first: str, second: str, third: str, rest: str
) -> None:
    made = template(f"{first}{{a}}{second}{{b:int}}{third}{{c}}", c=re.compile("[ab ]*"))
    text = first + rest
    assert accepts(made, text) is (broken(text, made) is None)


@settings(max_examples=200)
@given(TEXTS, st.text(st.sampled_from("ab:\n ,"), max_size=6), st.integers())
def test_what_is_put_together_is_accepted(behind: str, free: str, number: int) -> None:
    made = template(f"{{a}}{behind}{{j}}{behind}{{b}}", j=PERSON)
    until = json.loads(str(made.spec))[0]["until"]
    assume(until not in free + until[:-1])
    text = f'{free}{behind}{{"n": {number}}}{behind}{free}'
    assert accepts(made, text)
    assert broken(text, made) is None


def test_a_schema_can_be_prepared_by_the_caller() -> None:
    spec = str(template("{j}", j=PERSON).spec)
    assert "j0: %json {}" in template_grammar(spec, lambda _: "{}")


def test_what_a_fields_schema_leaves_unenforced_is_refused_by_name() -> None:
    made = template("{j}", j={"type": "array", "uniqueItems": True, "items": {"type": "integer"}})
    with pytest.raises(UnsupportedConstraint, match="uniqueItems"):
        template_grammar(str(made.spec))


@pytest.mark.parametrize("spec", ["", "5", "[]", "[5]", '[{"kind": "grammar", "name": "x"}]'])
def test_what_are_no_parts_is_refused(spec: str) -> None:
    with pytest.raises(InvalidRequest):
        template_grammar(spec)
