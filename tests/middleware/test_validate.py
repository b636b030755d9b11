"""The validator behind every constrained answer: right, and bounded in time."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from headrace.middleware.check import violation
from headrace.middleware.types import Constraint
from headrace.middleware.validate import problem

DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def is_valid(value: Any, schema: Any) -> bool:
    return problem(value, schema, seconds=5, pattern_seconds=1) is None


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"multipleOf": 0.01}, 0.07, True),
        ({"multipleOf": 0.01}, 0.075, False),
        ({"multipleOf": 1e-7}, 3e-7, True),
        ({"multipleOf": 3}, 10**40 + 2, True),
        ({"multipleOf": 0.5}, float("1e308"), True),
        ({"pattern": "^a$"}, "a\n", False),
        ({"pattern": r"^\d$"}, "३", False),
        ({"pattern": "^.$"}, "\r", False),
        ({"pattern": r"^\p{L}+$"}, "Ünïcode", True),
        ({"pattern": "^[^]$"}, "\n", True),
        ({"pattern": r"^\cC$"}, "\x03", True),
        ({"pattern": r"^[\w.-]+$"}, "a-b.c", True),
        ({"patternProperties": {"^a$": False}}, {"a\n": 1}, True),
        ({"patternProperties": {"^x": True}, "additionalProperties": False}, {"x1": 1}, True),
        ({"patternProperties": {"^x": True}, "additionalProperties": False}, {"y": 1}, False),
        ({"format": "date"}, "2023-02-29", False),
        ({"format": "date"}, "2000-02-29", True),
        ({"format": "date-time"}, "1998-12-31T15:59:60.123-08:00", True),
        ({"format": "date-time"}, "1998-12-31T22:59:60Z", False),
        ({"format": "time"}, "01:29:60+01:30", True),
        ({"format": "uri"}, "http://foo.example/?q=a b", False),
        ({"format": "uri"}, "mailto:a@b.example", True),
        ({"format": "email"}, '"joe bloggs"@example.com', True),
        ({"format": "email"}, "joe.@example.com", False),
        ({"format": "ipv6"}, "::ffff:1.2.3.256", False),
        ({"format": "hostname"}, "xn--X", False),
        ({"format": "regex"}, "^(abc]", False),
        ({"format": "duration"}, "P1Y2D", False),
        ({"format": "no such format"}, "anything", True),
        ({"const": 1}, 1.0, True),
        ({"const": 1}, True, False),
        ({"type": "integer"}, 1.0, True),
        ({"$schema": DRAFT_4, "type": "integer"}, 1.0, False),
        ({"$schema": DRAFT_4, "minimum": 1, "exclusiveMinimum": True}, 1, False),
        ({"minimum": 1, "exclusiveMinimum": True}, 1, False),
        ({"items": [{"type": "null"}], "additionalItems": False}, [None, 1], False),
        ({"$schema": DRAFT_7, "$ref": "#/definitions/a", "definitions": {"a": True}}, 1, True),
        ({"$defs": {"a/b": {"type": "null"}}, "$ref": "#/$defs/a~1b"}, 1, False),
    ],
)
def test_the_rules_are_those_of_json_schema(schema: Any, value: Any, expected: bool) -> None:
    assert is_valid(value, schema) is expected


def test_the_place_of_what_is_wrong_is_said() -> None:
    schema = {"properties": {"a": {"items": {"type": "integer"}}}}
    found = violation('{"a": [1, "x"]}', Constraint("json_schema", json.dumps(schema)))
    assert found == "/a/1: 'x' is not of type 'integer'"


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": "^(a|a)*$"}, "a" * 60 + "b"),
        ({"pattern": "^((a{1000}){1000}){1000}$"}, "a"),
        ({"patternProperties": {"^(a|a)*$": True}}, {"a" * 60 + "b": 1}),
        (
            {"patternProperties": {"^(a+)+$": True}, "unevaluatedProperties": False},
            {"a" * 60 + "b": 1},
        ),
        (
            {
                "$defs": {
                    f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)
                }
                | {"d40": {"type": "null"}},
                "$ref": "#/$defs/d0",
            },
            None,
        ),
    ],
    ids=["pattern", "counts", "names", "unevaluated", "references"],
)
def test_a_schema_that_takes_for_ever_is_given_up(schema: Any, value: Any) -> None:
    started = time.process_time()
    with pytest.raises(TimeoutError):
        problem(value, schema, seconds=1, pattern_seconds=1)
    assert time.process_time() - started < 30


def test_a_pattern_whose_counts_would_take_gigabytes_is_not_compiled() -> None:
    with pytest.raises(TimeoutError, match="counts of repeats"):
        violation("a", Constraint("regex", "((a{1000}){1000}){1000}"))


def test_nothing_is_fetched() -> None:
    found = problem(1, {"$ref": "http://example.com/schema"}, seconds=1, pattern_seconds=1)
    assert found is not None
    assert "leads nowhere" in found
