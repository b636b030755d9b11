from __future__ import annotations

import enum
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import outlines
import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from headrace import Constraint, InvalidRequest, constraint

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
