from __future__ import annotations

import enum
import importlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import outlines
import outlines.types as ot
import pytest
from outlines.types.dsl import Sequence, String
from pydantic import BaseModel
from typing_extensions import TypedDict

from headrace import Constraint, InvalidRequest, constraint, grammar, template
from headrace.middleware.outcome import broken, parsed
from headrace.middleware.types import Response

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


class Wheel(BaseModel):
    n: int


@dataclass
class Mill:
    n: int


class Weir(TypedDict):
    n: int


class City(enum.Enum):
    NEW_YORK = "New York"
    ROME = "Rome"


@pytest.mark.parametrize(
    "spec", [Wheel, Mill, Weir, SCHEMA, outlines.json_schema(json.dumps(SCHEMA))]
)
def test_everything_with_a_schema_is_a_json_constraint(spec: Any) -> None:
    made = constraint(spec)
    assert made.kind == "json_schema"
    assert isinstance(made.spec, str)
    assert json.loads(made.spec)["properties"]["n"]["type"] == "integer"


def test_a_type_parses_to_itself() -> None:
    parse = constraint(Wheel).parse
    assert parse is not None
    assert parse('{"n": 3}') == Wheel(n=3)


def test_choices_in_all_their_forms() -> None:
    assert constraint(["a", "b", "a"]) == Constraint("choice", ("a", "b"))
    assert constraint(Literal["a", "b"]) == Constraint("choice", ("a", "b"))
    cities = constraint(City)
    assert cities.spec == ("New York", "Rome")
    assert cities.parse is not None
    assert cities.parse("Rome") is City.ROME


def test_patterns_in_all_their_forms() -> None:
    assert constraint(re.compile("a+")) == Constraint("regex", "a+")
    made = constraint(outlines.regex("[0-9]{3}"))
    assert made.kind == "regex"
    assert re.fullmatch(str(made.spec), "123")


def test_a_schema_file(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(SCHEMA))
    assert constraint(path) == constraint(SCHEMA)


def test_equal_constraints_are_equal_keys() -> None:
    assert hash(constraint(SCHEMA)) == hash(constraint(dict(SCHEMA)))


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("a+", "bare text"),
        ([], "choices"),
        (["a", ""], "choices"),
        ([1, 2], "choices"),
        ({"type": "objekt"}, "objekt"),
        ({"type": "object", "properties": 5}, "properties"),
        ({"const": {1, 2}}, "no JSON"),
        (42, "no constraint"),
        (Path("no/such/schema.json"), "cannot read"),
        (Path(__file__), "no JSON"),
        (re.compile(""), "empty"),
    ],
)
def test_what_is_no_constraint_is_refused_with_the_reason(spec: Any, says: str) -> None:
    with pytest.raises(InvalidRequest, match=says) as caught:
        constraint(spec)
    assert "\n" not in str(caught.value)


def test_a_json_file_that_is_no_object_is_no_schema(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text("[1, 2]")
    with pytest.raises(InvalidRequest, match="list"):
        constraint(path)


def test_an_endless_schema_is_refused() -> None:
    schema: dict[str, Any] = {}
    schema["not"] = schema
    with pytest.raises(InvalidRequest):
        constraint(schema)


# More kinds, as people have them.


class Gate(NamedTuple):
    n: int
    name: str = "x"


class Level(enum.Enum):
    LOW = 1
    HIGH = "high"


def open_gate(n: int, name: str = "x", *, tags: list[str]) -> None:
    """Do something."""


def read(made: Constraint, text: str) -> Any:
    return parsed(Response(text), made)


@pytest.mark.parametrize(
    ("spec", "text", "value"),
    [
        (Gate, '[1, "a"]', Gate(1, "a")),
        (Gate, "[1]", Gate(1)),
        (Level, '"high"', Level.HIGH),
        (Level, "1", Level.LOW),
        (Literal[1, "a", None], "null", None),
        (Wheel | Mill, '{"n": 3}', Wheel(n=3)),
        (int | None, "null", None),
        (list[Wheel], '[{"n": 3}]', [Wheel(n=3)]),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (tuple[int, str], '[1, "a"]', (1, "a")),
        (int, "12", 12),
        (bool, "true", True),
        (open_gate, '{"n": 1, "tags": ["a"]}', {"n": 1, "name": "x", "tags": ["a"]}),
    ],
)
def test_types_and_signatures_come_back_as_themselves(spec: Any, text: str, value: Any) -> None:
    assert read(constraint(spec), text) == value


def test_a_functions_arguments_are_passed_by_name() -> None:
    arguments = read(constraint(open_gate), '{"n": 1, "name": "b", "tags": []}')
    open_gate(**arguments)
    assert broken('{"n": 1, "tags": [], "more": 1}', constraint(open_gate))


def test_an_argument_may_have_any_name() -> None:
    def odd(_hidden: int, model_config: str, schema: bool) -> None: ...

    text = '{"_hidden": 1, "model_config": "a", "schema": true}'
    expected = {"_hidden": 1, "model_config": "a", "schema": True}
    assert read(constraint(odd), text) == expected


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda n: n, "needs a type for its argument 'n'"),
        (lambda *rest: rest, "cannot be passed by its name"),
        (lambda **rest: rest, "cannot be passed by its name"),
        (len, "by its name"),
    ],
)
def test_a_function_whose_arguments_are_unclear_is_refused(function: Any, says: str) -> None:
    with pytest.raises(InvalidRequest, match=says):
        constraint(function)


def test_a_genson_builder_is_a_schema() -> None:
    builder: Any = importlib.import_module("genson").SchemaBuilder()
    builder.add_object({"n": 1})
    assert json.loads(str(constraint(builder).spec))["properties"]["n"]["type"] == "integer"


@pytest.mark.parametrize(
    ("term", "kind", "accepted", "refused"),
    [
        (ot.integer, "regex", "-12", "1.5"),
        (ot.email, "regex", "a@b.org", "a@@b"),
        (ot.ipv4, "regex", "10.0.0.1", "10.0.0.256"),
        (ot.date, "regex", "2024-02-01", "2024-13-01"),
        (ot.sentence, "regex", "A b c.", "a b c"),
        (ot.either("New", "New York City"), "choice", "New York City", "New York"),
        (ot.Choice(["a", "b"]), "choice", "b", "c"),
        (ot.Choice([1, 2.5]), "regex", "2.5", "2x5"),
        (Sequence([String("a.b#"), ot.digit]), "regex", "a.b#7", "axb#7"),
        (ot.digit.exactly(3), "regex", "123", "12"),
        (ot.digit.at_least(2), "regex", "123", "1"),
        (ot.digit.at_most(2), "regex", "", "123"),
        (ot.digit.between(1, 2), "regex", "12", "123"),
        (ot.optional("x") + ot.one_or_more("ab"), "regex", "xabab", "x"),
        (ot.zero_or_more(ot.either("a", ot.digit)), "regex", "a1a", "b"),
        (ot.regex("a|b") + "c", "regex", "ac", "a"),
        (ot.cfg('start: "a" start "b" | "c"'), "grammar", "aacbb", "accb"),
        (ot.either(ot.json_schema(SCHEMA), "none"), "grammar", '{"n": 1}', '{"n": "x"}'),
        (ot.either(ot.json_schema(SCHEMA), "none"), "grammar", "none", "no"),
        (
            Sequence([String("Answer: "), ot.json_schema(SCHEMA)]),
            "grammar",
            'Answer: {"n": 1}',
            '{"n": 1}',
        ),
        (ot.exactly(2, ot.json_schema(SCHEMA)), "grammar", '{"n": 1}{"n": 2}', '{"n": 1}'),
    ],
)
def test_every_outlines_term_is_taken(term: Any, kind: str, accepted: str, refused: str) -> None:
    made = constraint(term)
    assert made.kind == kind
    assert broken(accepted, made) is None
    assert broken(refused, made) is not None


def test_an_outlines_term_as_a_fields_type_holds_the_whole_string() -> None:
    integer: Any = ot.integer

    class Person(BaseModel):
        age: integer
        digits: list[integer] = []

    made = constraint(Person)
    assert broken('{"age": "42", "digits": ["1"]}', made) is None
    assert broken('{"age": "a42"}', made) is not None
    assert broken('{"age": "42", "digits": ["1a"]}', made) is not None
    assert read(made, '{"age": "42"}').age == "42"


@pytest.mark.parametrize("name", ["json", "arithmetic"])
def test_outlines_own_grammars_are_read(name: str) -> None:
    made = constraint(outlines.cfg(getattr(outlines.grammars, name)))
    text = {"json": '{"a": [1, 2]}', "arithmetic": "1+2*(3)"}[name]
    assert broken(text, made) is None
    assert broken(text[:-1], made) is not None


def test_a_grammar_inside_another_outlines_term_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="write all as one grammar"):
        constraint(Sequence([String("x"), ot.cfg('start: "a"')]))


# Grammars.

# As JSON and back.


@pytest.mark.parametrize(
    ("spec", "text", "value"),
    [
        (Wheel, '{"n": 3}', {"n": 3}),
        (["a", "b"], "b", "b"),
        (re.compile("(?i)a+"), "AA", "AA"),
        (grammar('start: "yes" | "no" WS?\nWS: / +/\n'), "yes", "yes"),
        (template("{n:int}: {w}", w=Wheel), '3: {"n": 3}', {"n": 3, "w": {"n": 3}}),
    ],
)
def test_a_constraint_travels_as_json_and_parses_to_plain_values(
    spec: Any, text: str, value: Any
) -> None:
    made = constraint(spec)
    again = Constraint.from_dict(json.loads(json.dumps(made.to_dict())))
    assert again == made
    assert hash(again) == hash(made)
    assert read(again, text) == value


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"kind": "wish", "spec": "x"},
        {"kind": "regex"},
        {"kind": "regex", "spec": ["a"]},
        {"kind": "choice", "spec": "ab"},
        {"kind": "choice", "spec": []},
        {"kind": "choice", "spec": [1]},
    ],
)
def test_what_is_no_constraint_as_json_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        Constraint.from_dict(data)


# Faults of others, by their number in the list that the tests were written from.


def test_fault_17_a_type_is_closed_and_a_schema_is_as_open_as_it_says() -> None:
    assert broken('{"n": 1, "more": 2}', constraint(Wheel)) is not None
    assert broken('{"n": 1, "more": 2}', constraint(SCHEMA)) is None
    assert broken("{}", constraint({"type": "object", "required": ["undeclared"]})) is not None


def test_fault_19_overlapping_one_of_is_not_any_of() -> None:
    made = constraint({"oneOf": [{"type": "integer"}, {"type": "number"}]})
    assert broken("1", made) is not None
    assert broken("1.5", made) is None


def test_fault_26_a_format_is_checked_whoever_wrote_the_text() -> None:
    made = constraint({"type": "string", "format": "date"})
    assert broken('"2024-13-01"', made) is not None
    assert broken('"2024-12-01"', made) is None


def test_fault_39_properties_stay_in_the_order_in_which_they_are_written() -> None:
    class Answer(BaseModel):
        reasoning: str
        answer: bool

    for made in (constraint(Answer), constraint(Answer.model_json_schema())):
        assert [*json.loads(str(made.spec))["properties"]] == ["reasoning", "answer"]


@pytest.mark.parametrize("text", [' {"n": 1}', '{"n": 1}\n', '\n{"n": 1} '])
def test_fault_29_blanks_around_a_value_are_read_but_never_asked_for(text: str) -> None:
    assert broken(text, constraint(SCHEMA)) is None


def test_fault_41_a_lone_half_of_a_character_is_no_text_for_a_type() -> None:
    made = constraint(list[str])
    assert read(made, r'["\u00e9 \ud83d\ude00"]') == ["é 😀"]


def test_ascii_only_patterns_are_refused_instead_of_meaning_something_else() -> None:
    with pytest.raises(InvalidRequest, match=r"\[0-9\]"):
        constraint(re.compile(r"\d+", re.ASCII))
    assert constraint(re.compile("[0-9]+", re.ASCII)).spec == "[0-9]+"


@pytest.mark.parametrize("pattern", ["[", "(", "a)", "*a", "[z-a]", "(?P<n>"])
def test_a_pattern_that_is_none_is_one_line(pattern: str) -> None:
    from headrace.middleware.constraints import regex

    with pytest.raises(InvalidRequest) as caught:
        regex(pattern)
    assert "\n" not in str(caught.value)


def test_half_a_character_is_refused_when_the_constraint_is_made() -> None:
    for spec in (re.compile("\ud800"), ["\ud800"], {"enum": ["\ud800"]}):
        with pytest.raises(InvalidRequest, match="surrogate"):
            constraint(spec)
    wrong: list[Any] = [None, [], "x"]
    for data in wrong:
        with pytest.raises(InvalidRequest):
            Constraint.from_dict(data)
