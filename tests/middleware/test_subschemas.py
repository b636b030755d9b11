"""Whoever walks a schema: properties may be called like keywords, values may look like schemas."""

from __future__ import annotations

import json
from typing import Any

import pytest

import headrace
from headrace.backends.decoding.engines.llguidance import json_options
from headrace.backends.decoding.schema import lowered
from headrace.backends.decoding.weight import weight
from headrace.backends.remote.strict import strict
from headrace.middleware.check import dangling_reference
from headrace.middleware.errors import InvalidRequest, Truncated, UnsupportedConstraint
from headrace.middleware.subschemas import all_schemas, with_subschemas
from headrace.middleware.truncation import truncated
from headrace.middleware.types import Constraint, Response
from headrace.middleware.validate import problem

KEYWORDS = ("$defs", "enum", "const", "$ref", "properties", "required", "default", "allOf")


def _object(**properties: Any) -> dict[str, Any]:
    names = [*properties]
    return {
        "type": "object",
        "properties": properties,
        "required": names,
        "additionalProperties": False,
    }


@pytest.mark.parametrize("name", KEYWORDS)
def test_a_property_called_like_a_keyword_is_walked_and_a_value_is_not(name: str) -> None:
    inside: dict[str, Any] = {
        "type": "string",
        "const": {"properties": {"a": {}}},
        "default": [{"enum": []}],
    }
    schema = _object(**{name: inside})
    assert [*all_schemas(schema)] == [schema, inside]
    marked = with_subschemas(schema, lambda one: "here" if one is inside else one)
    assert marked == {**schema, "properties": {name: "here"}}


@pytest.mark.parametrize("name", KEYWORDS)
def test_a_chain_of_references_is_too_deep_under_any_name(name: str) -> None:
    links = {f"a{n}": _object(**{name: {"$ref": f"#/$defs/a{n + 1}"}}) for n in range(1500)}
    schema = {"$ref": "#/$defs/a0", "$defs": {**links, "a1500": {"type": "string"}}}
    with pytest.raises(UnsupportedConstraint, match="references lead"):
        lowered(json.dumps(schema))


@pytest.mark.parametrize("name", KEYWORDS)
def test_a_closed_object_has_no_open_names_and_an_open_one_has(name: str) -> None:
    text = {"type": "string"}
    closed = lowered(json.dumps(_object(**{name: text}))).schema
    assert "json_allowed_escapes" not in json_options(closed)
    open_ = lowered(json.dumps(_object(**{name: {"properties": {"a": text}}}))).schema
    assert "json_allowed_escapes" in json_options(open_)


def test_a_value_that_looks_like_a_reference_can_be_moved_into_an_object() -> None:
    schema = {"type": "array", "items": {"type": "string", "examples": [{"$ref": "#/x"}]}}
    assert strict(schema)["properties"]["answer"]["items"] == {"type": "string"}


def test_a_default_that_looks_like_a_schema_is_the_default() -> None:
    default: dict[str, Any] = {"type": "object", "properties": {"a": {}}}

    def call(shape: dict[str, Any] = default) -> None: ...

    made = json.loads(str(headrace.constraint(call).spec))
    assert made["properties"]["shape"]["default"] == default
    assert made["additionalProperties"] is False


def test_a_reference_leads_to_a_schema_and_not_to_a_value() -> None:
    for at in ("const", "default"):
        assert dangling_reference({"$ref": "x", at: {"$id": "x"}}) == "x"
        assert dangling_reference({"$ref": "#a", at: [{"$anchor": "a"}]}) == "#a"
    named = {"properties": {"const": {"$ref": "x"}, "enum": {"$id": "x", "type": "string"}}}
    assert dangling_reference(named) is None
    assert dangling_reference({"$ref": "#a", "definitions": {"b": {"$id": "#a"}}}) is None
    with pytest.raises(InvalidRequest, match="leads nowhere"):
        headrace.constraint({"$ref": "x", "const": {"$id": "x"}})


@pytest.mark.parametrize("inside", [True, {"type": "integer"}])
def test_a_property_called_pattern_properties_is_validated(inside: Any) -> None:
    schema = {"properties": {"patternProperties": inside}, "unevaluatedProperties": False}
    limits = {"seconds": 5.0, "pattern_seconds": 2.0}
    assert problem({"patternProperties": 1}, schema, **limits) is None
    assert problem({"other": 1}, schema, **limits) is not None


def test_values_that_look_like_schemas_weigh_nothing() -> None:
    many = {"allOf": [{"anyOf": [{"type": "string"}] * 9}] * 6}
    heavy = weight(Constraint("json_schema", json.dumps({"properties": {"const": many}})))
    assert heavy > 1000 > weight(Constraint("json_schema", json.dumps({"const": many})))


def test_a_property_called_additional_properties_closes_nothing() -> None:
    inside = {"additionalProperties": {"type": "string"}}
    spec = json.dumps({"type": "object", "properties": inside})
    error: Truncated = truncated(Response("{"), Constraint("json_schema", spec), fits=False)
    assert 'close the schema with "additionalProperties": false' in str(error)
