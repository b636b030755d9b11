"""Schemas for strict mode, the way back, and what an engine is known to keep."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headrace.backends.remote.coverage import CORE, LLAMA, residual
from headrace.backends.remote.nulls import pruned, without_nulls
from headrace.backends.remote.strict import relaxed, strict
from headrace.middleware.errors import UnsupportedConstraint

TREE: dict[str, Any] = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
            },
            "required": ["name"],
        }
    },
    "$ref": "#/$defs/node",
}


def test_every_object_is_closed_and_optional_properties_may_be_null() -> None:
    schema = {
        "type": "object",
        "title": "Pet",
        "properties": {
            "kind": {"enum": ["cat", "dog"]},
            "tag": {"const": "x"},
            "owner": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
            "id": {"type": "string", "minLength": 3, "pattern": "^[a-z]+$", "default": "abc"},
        },
        "required": ["id"],
    }
    assert strict(schema) == {
        "type": "object",
        "title": "Pet",
        "properties": {
            "kind": {"type": ["string", "null"], "enum": ["cat", "dog", None]},
            "tag": {"type": ["string", "null"], "enum": ["x", None]},
            "owner": {
                "anyOf": [{"anyOf": [{"type": "string"}, {"type": "integer"}]}, {"type": "null"}]
            },
            "id": {"type": "string", "pattern": "^[a-z]+$", "description": "(minLength: 3)"},
        },
        "required": ["kind", "tag", "owner", "id"],
        "additionalProperties": False,
    }


def test_what_is_no_object_becomes_a_property_of_one() -> None:
    rewritten = strict(TREE)
    assert rewritten["properties"] == {"answer": {"$ref": "#/$defs/node"}}
    node = rewritten["$defs"]["node"]
    assert node["required"] == ["name", "children"]
    assert node["properties"]["children"]["type"] == ["array", "null"]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "patternProperties": {"a": {"type": "string"}}},
        {"type": "object", "properties": {"a": {}}},
        {"type": "object", "properties": {"a": True}},
        {"type": "object", "properties": {"a": {"type": "array"}}},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]},
        {"allOf": [{"type": "object"}, {"type": "object"}]},
        {"type": "array", "items": {"$ref": "#"}},
    ],
)
def test_what_strict_mode_cannot_say_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedConstraint):
        strict(schema)


@pytest.mark.parametrize(
    ("schema", "value", "wanted"),
    [
        (TREE, {"name": "a", "children": [{"name": "b", "children": None}]},
         {"name": "a", "children": [{"name": "b"}]}),
        ({"type": "object", "properties": {"a": {"type": ["string", "null"]}}},
         {"a": None}, {"a": None}),
        ({"type": "object", "properties": {"a": {"enum": [1, None]}}}, {"a": None}, {"a": None}),
        ({"type": "object", "properties": {"a": {}}}, {"a": None}, {"a": None}),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
         {"a": None}, {"a": None}),
        ({"anyOf": [{"type": "object", "properties": {"a": {"type": "string"}, "b": {"const": 1}}},
                    {"type": "array"}]}, {"a": None, "b": 1}, {"b": 1}),
        ({"type": "object", "properties": {"~/": {"type": "string"}}}, {"~/": None}, {}),
    ],
)  # fmt: skip
def test_only_nulls_that_stand_for_nothing_go(schema: Any, value: Any, wanted: Any) -> None:
    assert without_nulls(value, schema) == wanted
    text = pruned(json.dumps(value), schema)
    assert text is not None
    assert json.loads(text) == wanted


def test_what_is_no_json_is_not_pruned() -> None:
    assert pruned("Hello", TREE) is None


def test_keywords_that_are_not_enforced_are_said_in_words() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer", "multipleOf": 3, "description": "A count"}},
        "$defs": {"b": {"type": "array", "items": {"type": "string", "format": "uri"}}},
        "minProperties": 1,
    }
    assert relaxed(schema, CORE) == {
        "type": "object",
        "properties": {"a": {"type": "integer", "description": "A count (multipleOf: 3)"}},
        "$defs": {
            "b": {"type": "array", "items": {"type": "string", "description": '(format: "uri")'}}
        },
        "description": "(minProperties: 1)",
    }


@pytest.mark.parametrize(
    ("schema", "left"),
    [
        (TREE, ()),
        ({"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}},
         ("/properties/a/minimum",)),
        ({"type": "object", "properties": {"a/b": {"not": {}}}}, ("/properties/a~1b/not",)),
        ({"type": "object", "required": ["ghost"]}, ("/required",)),
        ({"type": "object", "additionalProperties": {"type": "string"}},
         ("/additionalProperties",)),
        ({"anyOf": [{"type": "string", "format": "uri"}]}, ("/anyOf/0/format",)),
        ({"anyOf": [{"type": "object"}], "properties": {"a": {}}}, ("/properties",)),
        ({"$ref": "#/$defs/a", "minItems": 2, "$defs": {"a": {"type": "array"}}}, ("/minItems",)),
        ({"enum": ["a", 1], "type": "string"}, ()),
        ({"allOf": [{"type": "object"}]}, ("/allOf",)),
        ({"type": "array", "items": [{"type": "string"}]}, ("/items",)),
        ({"type": "array", "items": False}, ("/items",)),
        ({"type": "array", "prefixItems": [{}], "items": True}, ("/prefixItems",)),
        ({"type": "object", "properties": {"a": False}}, ("/properties/a",)),
        ({"type": "string", "maxLength": 3}, ("/maxLength",)),
    ],
)  # fmt: skip
def test_what_is_left_to_check_has_its_place(schema: Any, left: tuple[str, ...]) -> None:
    assert residual(schema, CORE) == left


def test_llama_cpp_counts_characters() -> None:
    assert residual({"type": "string", "maxLength": 3}, LLAMA) == ()
