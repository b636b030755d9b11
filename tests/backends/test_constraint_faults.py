"""Faults of other libraries, one by one, each with an input that shows it.

The numbers are those of the list that the design keeps. Not here: 31, 32, 39 and 44 (batches, the
limit of tokens, the order of keys, whitespace and arrays) need a model and are tested with the
decode loop; 40 and 42 (lm-format-enforcer, torch.compile) cannot happen, as neither is used.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from headrace.backends.decoding.automaton import Compiler, Matcher, forced_token, unpack
from headrace.middleware.check import violation
from headrace.middleware.errors import InvalidRequest, UnsupportedConstraint
from headrace.middleware.types import Constraint

pytestmark = pytest.mark.model


def schema(value: Any) -> Constraint:
    return Constraint("json_schema", json.dumps(value))


def regex(pattern: str) -> Constraint:
    return Constraint("regex", pattern)


def choice(*options: str) -> Constraint:
    return Constraint("choice", options)


def written(compiler: Compiler, constraint: Constraint, text: str | bytes) -> Matcher | None:
    """Write a text token by token; None where the mask forbids one."""
    matcher = compiler.matcher(constraint)
    data = text.encode() if isinstance(text, str) else text
    for token in compiler.tokens_of(data):
        if not unpack(matcher.mask(), compiler.width)[token]:
            return None
        matcher.advance(token)
    return matcher


def accepts(compiler: Compiler, constraint: Constraint, text: str) -> bool:
    matcher = written(compiler, constraint, text)
    return matcher is not None and matcher.is_complete


STRING = {"type": "string"}
CASES: list[tuple[str, Constraint, str, bool]] = [
    ("1-choice", choice("New", "New York City"), "New York City", True),
    ("1-enum", schema({"enum": [1, 10, 100]}), "100", True),
    ("2-tail", regex(r"[0-9]+(\.[0-9]+)?"), "12.75", True),
    ("3-lazy", regex("a+?"), "aaa", True),
    ("4-anchors", regex("^ab$"), "ab", True),
    ("4-anchored-branches", regex("^a$|^b$"), "b", True),
    ("6-case", regex("(?i)yes"), "YeS", True),
    ("6-dot", regex("a.b"), "a\nb", False),
    ("6-dot-in-a-schema", schema({"type": "string", "pattern": "^.$"}), '"\\r"', False),
    ("6-digits-in-a-schema", schema({"type": "string", "pattern": r"^\d$"}), '"३"', False),
    ("7-bytes", regex("[一-龥]{2}"), "汉字", True),
    ("7-emoji", regex("[😀-😏]+"), "😀😃", True),
    ("9-quote", schema({"type": "string", "pattern": "^[^x]+$"}), '"a\\"b"', True),
    ("9-backslash", schema({"type": "string", "pattern": "^.*$"}), '"\\"', False),
    ("9-control", schema({"type": "string", "pattern": "^[^x]+$"}), '"\x01"', False),
    ("10-search", schema({"type": "string", "pattern": "b"}), '"abc"', True),
    ("11-both", schema({"type": "string", "pattern": "^a+$", "maxLength": 2}), '"aaa"', False),
    ("11-both-hold", schema({"type": "string", "pattern": "^a+$", "maxLength": 2}), '"aa"', True),
    ("12-escapes", schema({"type": "string", "maxLength": 2}), '"\\n\\n"', True),
    ("12-characters", schema({"type": "string", "maxLength": 2}), '"éé"', True),
    ("13-quotes", schema({"enum": ['a"b\\c\né']}), '"a\\"b\\\\c\\né"', True),
    ("13-name", schema({"type": "object", "properties": {'a"b': {}}}), '{"a\\"b": 1}', True),
    ("13-const-key", schema({"const": {"a.b": 1}}), '{"aXb": 1}', False),
    ("14-negative", schema({"type": "number"}), "-0.5", True),
    ("14-exponent", schema({"type": "number"}), "1E-3", True),
    ("14-zero", schema({"type": "number"}), "01", False),
    ("14-dot", schema({"type": "number"}), "1.", False),
    ("14-const-float", schema({"const": 1.0}), "1", True),
    ("15-minimum", schema({"type": "integer", "minimum": 3}), "2", False),
    ("15-maximum", schema({"type": "number", "maximum": 3.5}), "3.6", False),
    ("15-multiple", schema({"type": "integer", "multipleOf": 7}), "15", False),
    ("16-any", schema({"type": "object", "properties": {"a": {}}}), "null", False),
    ("16-any-value", schema({"type": "object", "properties": {"a": {}}}), '{"a": null}', True),
    ("17-open", schema({"type": "object", "properties": {"a": {}}}), '{"b": 1}', True),
    ("17-undeclared", schema({"type": "object", "required": ["b"]}), "{}", False),
    ("17-escaped-name", schema({"properties": {"a": STRING}}), '{"\\u0061": 1}', False),
    ("18-allOf", schema({"allOf": [{"type": "integer"}, {"minimum": 5}]}), "4", False),
    (
        "18-anyOf-beside",
        schema({"properties": {"a": STRING}, "anyOf": [{"required": ["a"]}], "type": "object"}),
        '{"a": 1}',
        False,
    ),
    (
        "18-ref-siblings",
        schema({"$ref": "#/$defs/s", "maxLength": 1, "$defs": {"s": STRING}}),
        '"ab"',
        False,
    ),
    (
        "18-ref-siblings-draft-7",
        schema(
            {
                "$schema": "http://json-schema.org/draft-07/schema#",
                "$ref": "#/definitions/s",
                "maxLength": 1,
                "definitions": {"s": STRING},
            }
        ),
        '"ab"',
        True,
    ),
    ("19-disjoint", schema({"oneOf": [{"type": "integer"}, STRING]}), '"a"', True),
    (
        "21-patterns",
        schema({"patternProperties": {"^n": {"type": "integer"}}, "additionalProperties": False}),
        '{"n1": 1}',
        True,
    ),
    (
        "21-pattern-value",
        schema({"patternProperties": {"^n": {"type": "integer"}}, "type": "object"}),
        '{"n1": "x"}',
        False,
    ),
    (
        "21-patterns-beside-anyOf",
        schema({"additionalProperties": False, "anyOf": [{}], "patternProperties": {"^x": True}}),
        '{"x": 1}',
        True,
    ),
    ("22-maxItems-0", schema({"type": "array", "maxItems": 0}), "[1]", False),
    ("22-between", schema({"type": "array", "minItems": 2, "maxItems": 3}), "[1, 2, 3]", True),
    ("22-prefix-tail", schema({"type": "array", "prefixItems": [STRING]}), '["a", 1]', True),
    ("22-draft-7-tuple", schema({"items": [STRING], "additionalItems": False}), '["a", 1]', False),
    ("24-escape", schema({"$defs": {"a/b": STRING}, "$ref": "#/$defs/a~1b"}), '"x"', True),
    (
        "24-anchor",
        schema({"$defs": {"a": {"$anchor": "x", **STRING}}, "$ref": "#x"}),
        "1",
        False,
    ),
    ("24-pointer", schema({"allOf": [STRING, {"$ref": "#/allOf/0"}]}), '"x"', True),
    (
        "24-id",
        schema(
            {"$defs": {"a": {"$id": "http://x.example/a", **STRING}}, "$ref": "http://x.example/a"}
        ),
        '"x"',
        True,
    ),
    ("26-date", schema({"type": "string", "format": "date"}), '"2024-13-01"', False),
    ("26-leap-day", schema({"type": "string", "format": "date"}), '"2024-02-29"', True),
    ("26-no-leap-day", schema({"type": "string", "format": "date"}), '"2023-02-29"', False),
    ("26-email", schema({"type": "string", "format": "email"}), '"a\\"b@x"', False),
    ("26-ipv6", schema({"type": "string", "format": "ipv6"}), '"::ffff:1.2.3.4"', True),
    ("28-blanks", schema({"type": "object"}), "{" + " " * 20 + "}", False),
    ("28-indented", schema({"type": "array"}), "[\n    1,\n    2\n]", True),
    ("29-leading-space", schema({"type": "object"}), " {}", False),
    ("29-trailing-newline", schema({"type": "object"}), "{}\n", False),
    ("41-surrogate", schema(STRING), '"\\ud83d"', False),
]


@pytest.mark.parametrize(
    ("constraint", "text", "is_accepted"),
    [case[1:] for case in CASES],
    ids=[f"fault-{case[0]}" for case in CASES],
)
def test_fault(constraint: Constraint, text: str, is_accepted: bool, compiler: Compiler) -> None:
    assert accepts(compiler, constraint, text) is is_accepted
    if is_accepted:
        assert violation(text, constraint) is None


@pytest.mark.parametrize(
    "pattern", ["(?=a)b", "(?<!a)b", r"(a)\1", r"\bfoo"], ids=lambda p: f"fault-5-{p}"
)
def test_what_is_not_regular_is_refused_and_in_a_schema_left(
    pattern: str, compiler: Compiler
) -> None:
    with pytest.raises(UnsupportedConstraint):
        compiler.matcher(regex(pattern))
    found = compiler.enforcement(schema({"type": "string", "pattern": pattern}))
    assert found.residual == ("/pattern",)


def test_fault_8_special_tokens_are_never_part_of_a_string(
    compiler: Compiler, tokenizer: Any
) -> None:
    matcher = written(compiler, schema(STRING), '"')
    assert matcher is not None
    special = [token for token in tokenizer.added_tokens_decoder if token != 2]
    assert not unpack(matcher.mask(), compiler.width)[special].any()


KEYWORDS: list[tuple[str, Any, str]] = [
    ("19-overlap", {"oneOf": [{"type": "integer"}, {"type": "number"}]}, "1"),
    ("20-unique", {"type": "array", "uniqueItems": True}, "[1, 1]"),
    ("20-contains", {"type": "array", "contains": {"type": "null"}}, "[1]"),
    ("20-not", {"type": "object", "not": {"properties": {"a": {"type": "null"}}}}, '{"a": null}'),
    (
        "20-if",
        {"if": {"properties": {"a": {"const": "x"}}}, "then": {"required": ["b"]}},
        '{"a": "x"}',
    ),
    (
        "21-overlap",
        {"patternProperties": {"score": {"type": "integer"}, "^score$": {"minimum": 5}}},
        '{"score": 1}',
    ),
    ("26-unknown-format", {"type": "string", "format": "hostname"}, '"xn--X"'),
]


@pytest.mark.parametrize(
    ("given", "text"), [case[1:] for case in KEYWORDS], ids=[f"fault-{c[0]}" for c in KEYWORDS]
)
def test_what_cannot_be_held_is_said_and_found_afterwards(
    given: Any, text: str, compiler: Compiler
) -> None:
    assert compiler.enforcement(schema(given)).level == "partial"
    assert violation(text, schema(given)) is not None


@pytest.mark.parametrize(
    "given",
    [
        {"type": "object", "dependentRequired": {"a": ["b"]}},
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "dependencies": {"a": ["b"]},
        },
    ],
    ids=["fault-20-dependentRequired", "fault-20-dependencies"],
)
def test_names_that_need_others_are_held(given: Any, compiler: Compiler) -> None:
    closed = schema({**given, "properties": {"a": {}, "b": {}}, "additionalProperties": False})
    assert not accepts(compiler, closed, '{"a": 1}')
    assert accepts(compiler, closed, '{"a": 1, "b": 1}')
    assert accepts(compiler, closed, '{"b": 1}')
    assert compiler.enforcement(closed).level == "full"


def test_fault_23_recursion_goes_as_deep_as_the_answer(compiler: Compiler) -> None:
    tree = schema(
        {
            "$defs": {"n": {"type": "object", "properties": {"v": {"$ref": "#/$defs/n"}}}},
            "$ref": "#/$defs/n",
        }
    )
    assert accepts(compiler, tree, '{"v": ' * 8 + "{}" + "}" * 8)
    assert not accepts(compiler, tree, '{"v": 1,}')


@pytest.mark.parametrize(
    "given",
    [
        {"$ref": "#"},
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        {"type": "array", "items": {"$ref": "#"}, "minItems": 1},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
    ],
    ids=["fault-25-self", "fault-23-object", "fault-23-array", "fault-25-pair"],
)
def test_recursion_without_an_end_is_an_error(given: Any, compiler: Compiler) -> None:
    with pytest.raises(InvalidRequest, match="no finite value"):
        compiler.matcher(schema(given))


def test_fault_23_an_endless_option_is_never_begun(compiler: Compiler) -> None:
    endless = {"type": "object", "properties": {"x": {"$ref": "#/$defs/e"}}, "required": ["x"]}
    given = schema(
        {"$defs": {"e": endless}, "type": "object", "properties": {"a": {"$ref": "#/$defs/e"}}}
    )
    assert not written(compiler, given, '{"a": {')
    assert accepts(compiler, given, "{}")


def test_a_definition_that_nothing_fits_is_never_begun(compiler: Compiler) -> None:
    nothing = {"type": "string", "minLength": 3, "maxLength": 2}
    given = {
        "$defs": {
            "n": nothing,
            "m": {"type": "object", "properties": {"x": {"$ref": "#/$defs/n"}}},
        },
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/n"}, "b": {"$ref": "#/$defs/m"}},
    }
    assert accepts(compiler, schema(given), '{"b": {}}')
    assert written(compiler, schema(given), '{"a": "') is None
    with pytest.raises(InvalidRequest):
        compiler.matcher(schema({**given, "required": ["a"]}))


def test_two_patterns_that_are_one_both_hold(compiler: Compiler) -> None:
    given = {"patternProperties": {r"^\d$": {"minimum": 2}, "^[0-9]$": {"maximum": 3}}}
    assert accepts(compiler, schema(given), '{"1": 3}')
    assert not accepts(compiler, schema(given), '{"1": 1}')
    assert not accepts(compiler, schema(given), '{"1": 4}')


def test_a_keyword_that_the_draft_does_not_know_says_nothing(compiler: Compiler) -> None:
    draft = "http://json-schema.org/draft-07/schema#"
    given = {"$schema": draft, "type": "object", "unevaluatedProperties": False}
    assert accepts(compiler, schema(given), '{"a": 1}')


def test_fault_30_the_end_is_allowed_exactly_when_the_answer_is_complete(
    compiler: Compiler,
) -> None:
    matcher = compiler.matcher(choice("New", "New York City"))
    for token in compiler.tokens_of(b"New York City"):
        assert unpack(matcher.mask(), compiler.width)[2] == matcher.is_complete
        matcher.advance(token)
    assert matcher.is_complete
    matcher.advance(2)
    assert matcher.is_finished
    assert forced_token(matcher.mask()) == 2


def test_fault_30_every_id_that_ends_is_allowed_at_the_end(tokenizer: Any) -> None:
    matcher = Compiler(tokenizer, 49152, [0, 2]).matcher(regex("a"))
    matcher.advance(tokenizer("a")["input_ids"][0])
    assert unpack(matcher.mask(), 49152).nonzero()[0].tolist() == [0, 2]


def test_fault_33_logits_that_no_token_has_are_forbidden(tokenizer: Any) -> None:
    wide = Compiler(tokenizer, 49152 + 257, [2])
    assert not unpack(wide.matcher(regex(".*")).mask(), wide.width)[49152:].any()


def test_fault_34_a_leading_space_belongs_to_the_text(compiler: Compiler) -> None:
    assert accepts(compiler, regex(" a b"), " a b")
    assert not accepts(compiler, regex("a b"), " a b")


def test_fault_35_a_copy_is_a_place_to_come_back_to(compiler: Compiler) -> None:
    matcher = compiler.matcher(schema({"type": "object", "properties": {"a": STRING}}))
    for token in compiler.tokens_of('{"a": "字\\n"}'.encode()):
        before, saved = matcher.mask(), matcher.copy()
        matcher.advance(token)
        assert saved.mask() == before
        saved.advance(token)
        assert saved.mask() == matcher.mask()


def test_fault_36_what_is_cached_is_told_apart_by_everything(compiler: Compiler) -> None:
    as_schema = Constraint("json_schema", '{"type": "null"}')
    as_regex = Constraint("regex", '\\{"type": "null"\\}')
    assert accepts(compiler, as_schema, "null")
    assert accepts(compiler, as_regex, '{"type": "null"}')
    other = compiler.with_engine("xgrammar")
    assert other.enforcement(as_schema).by == "xgrammar"
    assert compiler.enforcement(as_schema).by == "llguidance"


def test_fault_37_a_schema_cannot_bring_its_own_separators(compiler: Compiler) -> None:
    given = {"x-guidance": {"key_separator": "\\s{0,10}:"}, "type": "object"}
    assert not accepts(compiler, schema(given), "{\"a\"'': 1}")
    assert not accepts(compiler, schema(given), '{"a"         : 1}')


def test_fault_38_every_kind_is_enforced_or_refused(compiler: Compiler) -> None:
    lark = Constraint("grammar", 'start: "a" b\nb: "b"+')
    assert accepts(compiler, lark, "abb")
    assert not accepts(compiler, lark, "b")
    with pytest.raises(InvalidRequest, match="line 1"):
        compiler.matcher(Constraint("grammar", 'start: "a" (\nb: "b"'))
    with pytest.raises(UnsupportedConstraint, match="grammar"):
        compiler.with_engine("outlines_core").matcher(lark)


def test_fault_42_nothing_compiles_code_on_the_way_to_a_mask() -> None:
    code = (
        "import sys\n"
        "from headrace.backends.decoding.masks import apply_mask\n"
        "import torch\n"
        "apply_mask(bytes([3]), torch.zeros(20))\n"
        "print('torch._inductor' in sys.modules, 'triton' in sys.modules)\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["False", "False"]
