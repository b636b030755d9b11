"""The automaton alone: which texts it lets through, told token by token."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from headrace.backends.decoding.automaton import Compiler, forced_token, unpack
from headrace.backends.decoding.schema import prepare
from headrace.middleware.errors import InvalidRequest, UnsupportedConstraint
from headrace.middleware.types import Constraint

pytestmark = pytest.mark.model


def schema(value: Any) -> Constraint:
    return Constraint("json_schema", json.dumps(value))


def regex(pattern: str) -> Constraint:
    return Constraint("regex", pattern)


def accepts(compiler: Compiler, tokenizer: Any, constraint: Constraint, text: str) -> bool:
    """Whether decoding could write exactly this text, each token allowed by the mask."""
    matcher = compiler.matcher(constraint)
    for token in tokenizer(text)["input_ids"]:
        if not unpack(matcher.mask(), 49152)[token]:
            return False
        matcher.advance(token)
    return matcher.is_complete


CITIES = Constraint("choice", ("New", "New York City", 'a"b\\c\n#&~-<>', "汉字", "(x|y)*"))


@pytest.mark.parametrize(
    ("constraint", "text", "is_accepted"),
    [
        (CITIES, "New", True),
        (CITIES, "New York City", True),
        (CITIES, "New York", False),
        (CITIES, 'a"b\\c\n#&~-<>', True),
        (CITIES, "汉字", True),
        (CITIES, "(x|y)*", True),
        (CITIES, "xy", False),
        (regex(r"[0-9]+(\.[0-9]+)?"), "12", True),
        (regex(r"[0-9]+(\.[0-9]+)?"), "12.75", True),
        (regex(r"[0-9]+(\.[0-9]+)?"), "12.", False),
        (regex("a+?"), "aaa", True),
        (regex("^ab$"), "ab", True),
        (regex("^a$|^b$"), "b", True),
        (regex("a/b"), "a/b", True),
        (regex("[一-龥]{2}"), "汉字", True),
        (regex("[一-龥]{2}"), "汉", False),
        (regex(".{3}"), "a🙂é", True),
        (schema({"enum": [1, 10, 100]}), "100", True),
        (schema({"type": "object", "properties": {"a": {"type": "integer"}}}), '{"a": 1}', True),
        (schema({"type": "object", "properties": {"a": {"type": "integer"}}}), '{"a": x', False),
        (schema({"type": "array", "items": {"type": "integer"}}), "[1,\n    2]", True),
        (schema({"type": "array", "items": {"type": "integer"}}), "[" + " " * 9 + "1]", False),
        (schema({"type": "string", "maxLength": 2}), '"éé"', True),
        (schema({"type": "string", "maxLength": 2}), '"ééé"', False),
        (schema(True), '{"any": [1, null]}', True),
    ],
)
def test_exactly_the_right_texts_are_accepted(
    constraint: Constraint, text: str, is_accepted: bool, compiler: Compiler, tokenizer: Any
) -> None:
    assert accepts(compiler, tokenizer, constraint, text) is is_accepted


@pytest.mark.parametrize("constraint", [regex(".*"), schema({"type": "string"})])
def test_special_tokens_are_never_part_of_a_text(
    constraint: Constraint, compiler: Compiler, tokenizer: Any
) -> None:
    matcher = compiler.matcher(constraint)
    if constraint.kind == "json_schema":
        matcher.advance(tokenizer('"')["input_ids"][0])
    allowed = unpack(matcher.mask(), 49152)
    special = [t for t in tokenizer.added_tokens_decoder if t not in (2,)]
    assert len(special) > 10
    assert not allowed[special].any()
    assert allowed.sum() > 40_000


def test_the_end_is_allowed_exactly_when_the_answer_is_complete(
    compiler: Compiler, tokenizer: Any
) -> None:
    matcher = compiler.matcher(CITIES)
    seen: list[tuple[bool, bool]] = []
    for token in tokenizer("New York City")["input_ids"]:
        seen.append((bool(unpack(matcher.mask(), 49152)[2]), matcher.is_complete))
        matcher.advance(token)
    assert seen == [(False, False), (True, True), (False, False)]
    assert matcher.is_finished
    assert forced_token(matcher.mask()) == 2


def test_logits_wider_than_the_vocabulary_stay_forbidden(tokenizer: Any) -> None:
    matcher = Compiler(tokenizer, 49152 + 100, [2]).matcher(regex(".*"))
    assert not unpack(matcher.mask(), 49152 + 100)[49152:].any()
    assert unpack(matcher.mask(), 60_000).shape == (60_000,)


def test_copies_of_one_constraint_do_not_disturb_each_other(
    compiler: Compiler, tokenizer: Any
) -> None:
    first, second = compiler.matcher(CITIES), compiler.matcher(CITIES)
    before = second.mask()
    first.advance(tokenizer("New")["input_ids"][0])
    assert second.mask() == before != first.mask()


@pytest.mark.parametrize(
    ("given", "residual"),
    [
        ({"type": "array", "uniqueItems": True}, "/uniqueItems"),
        ({"type": "array", "contains": {"type": "null"}}, "/contains"),
        ({"properties": {"a": {"type": "string", "format": "wibble"}}}, "/properties/a/format"),
        ({"not": {"type": "object", "properties": {"a": True}}}, "/not"),
        ({"type": "string", "pattern": "^(?!x)"}, "/pattern"),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "/oneOf"),
        ({"type": "object", "minProperties": 3}, "/minProperties"),
        ({"$defs": {"a": {"uniqueItems": True}}, "$ref": "#/$defs/a"}, "/$defs/a/uniqueItems"),
        ({"type": "string", "maxLength": 200_000}, "/maxLength"),
        ({"type": "integer", "minimum": 2**60}, "/minimum"),
    ],
)
def test_what_the_automaton_cannot_hold_is_left_to_the_check_by_name(
    given: Any, residual: str, compiler: Compiler
) -> None:
    enforcement = compiler.enforcement(schema(given))
    assert enforcement.level == "partial"
    assert residual in enforcement.residual
    assert compiler.matcher(schema(given)).enforcement == enforcement


@pytest.mark.parametrize(
    "given",
    [
        {"not": {"type": "null"}},
        {"type": "array", "uniqueItems": False},
        {"type": "array", "uniqueItems": True, "maxItems": 1},
        {"type": "object", "dependentRequired": {"a": ["b"]}},
        {"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}},
        {"if": {"type": "string"}, "then": {"maxLength": 3}, "else": {"type": "null"}},
        {"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object"},
        {"type": "string", "format": "date"},
        {"type": "integer", "format": "int32"},
        {"type": "object", "unevaluatedProperties": False, "properties": {"a": True}},
    ],
)
def test_what_can_be_said_otherwise_is_enforced_in_full(given: Any, compiler: Compiler) -> None:
    enforcement = compiler.enforcement(schema(given))
    assert (enforcement.level, enforcement.residual) == ("full", ())


@pytest.mark.parametrize(
    ("constraint", "named"),
    [
        (schema({"type": "array", "minItems": 2**64 - 1}), "minItems"),
        (regex("(?=a)b"), "look-ahead"),
        (regex(r"(a)\1"), "backreference"),
        (regex(r"\bfoo"), "lookaround"),
        (regex("((a{1000}){1000}){1000}"), "too complex"),
    ],
)
def test_what_cannot_be_enforced_is_refused_by_name(
    constraint: Constraint, named: str, compiler: Compiler
) -> None:
    with pytest.raises(UnsupportedConstraint, match=named) as caught:
        compiler.matcher(constraint).mask()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "constraint",
    [
        schema({"type": "wibble"}),
        schema({"type": "object", "required": "a"}),
        schema(False),
        schema({"$ref": "#"}),
        schema({"x-guidance": {"lenient": True}, "not": {}}),
        schema([]),
        schema({"enum": []}),
        schema({"type": "integer", "minimum": 2, "maximum": 1}),
        Constraint("json_schema", "{"),
        regex("("),
        regex("[]"),
        Constraint("choice", ()),
        Constraint("choice", "abc"),
        Constraint("regex", ("a",)),
    ],
)
def test_what_makes_no_sense_is_an_invalid_request(
    constraint: Constraint, compiler: Compiler
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        compiler.matcher(constraint)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("bound", [2**63, 2**64 - 1, 2**64, 10**400])
def test_hostile_bounds_end_neither_the_process_nor_the_day(
    bound: int, compiler: Compiler, tokenizer: Any
) -> None:
    started = time.monotonic()
    items = {"type": "string", "maxLength": bound}
    constraint = schema({"type": "array", "maxItems": bound, "items": items})
    assert accepts(compiler, tokenizer, constraint, '["a", "b"]')
    assert time.monotonic() - started < 10


def test_a_schema_nested_too_deep_is_refused(compiler: Compiler) -> None:
    spec = '{"items":' * 5000 + "{}" + "}" * 5000
    with pytest.raises(UnsupportedConstraint, match="nested deeper"):
        compiler.matcher(Constraint("json_schema", spec))


def test_only_keywords_are_cut_from_a_schema_and_never_values() -> None:
    big = 10**9
    given = {
        "type": "object",
        "properties": {"maxItems": {"const": {"maxItems": big}}, "const": {"enum": [big]}},
        "default": {"maxLength": big},
        "additionalProperties": {"type": "string", "maxLength": big, "minLength": 1},
    }
    assert prepare(json.dumps(given)) == {
        "type": ["object"],
        "properties": {
            "maxItems": {"type": ["object"], "enum": [{"maxItems": big}]},
            "const": {"type": ["number"], "enum": [big]},
        },
        "additionalProperties": {"type": ["string"], "minLength": 1},
        "$defs": {},
    }
