"""Three libraries behind one shape, the cache before them, and the limits around them."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from headrace.backends.decoding import worker
from headrace.backends.decoding.automaton import Compiler, Matcher, apply_mask, unpack
from headrace.backends.decoding.engines.llguidance import LLGuidance
from headrace.backends.decoding.engines.xgrammar import trusted
from headrace.middleware.errors import InvalidRequest, UnsupportedConstraint
from headrace.middleware.types import Constraint, Enforcement

pytestmark = pytest.mark.model

CITIES = Constraint("choice", ("New", "New York City", "汉字", 'a"b'))
NUMBER = Constraint("regex", r"[0-9]+(\.[0-9]+)?")
MAP = {
    "type": "object",
    "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "string"}},
    "additionalProperties": False,
}


def schema(value: Any) -> Constraint:
    return Constraint("json_schema", json.dumps(value))


def written(compiler: Compiler, constraint: Constraint, text: str) -> Matcher | None:
    matcher = compiler.matcher(constraint)
    for token in compiler.tokens_of(text.encode()):
        if not unpack(matcher.mask(), compiler.width)[token]:
            return None
        matcher.advance(token)
    return matcher


@pytest.fixture(scope="module", params=["llguidance", "xgrammar", "outlines_core"])
def engine(request: pytest.FixtureRequest, compiler: Compiler) -> Compiler:
    return compiler.with_engine(request.param)


@pytest.mark.parametrize(
    ("constraint", "text", "is_accepted"),
    [
        (CITIES, "New", True),
        (CITIES, "New York City", True),
        (CITIES, "New York", False),
        (CITIES, "汉字", True),
        (CITIES, 'a"b', True),
        (NUMBER, "12", True),
        (NUMBER, "12.75", True),
        (NUMBER, "12.", False),
    ],
)
def test_every_engine_accepts_the_same_texts(
    constraint: Constraint, text: str, is_accepted: bool, engine: Compiler
) -> None:
    matcher = written(engine, constraint, text)
    assert (matcher is not None and matcher.is_complete) is is_accepted


def test_every_engine_keeps_the_promises_of_a_matcher(engine: Compiler) -> None:
    matcher = engine.matcher(CITIES)
    tokens = engine.tokens_of(b"New York City")
    assert not matcher.is_complete
    assert not unpack(matcher.mask(), engine.width)[2]
    matcher.advance(tokens[0])
    other = matcher.copy()
    assert matcher.is_complete
    assert not matcher.is_finished
    assert unpack(matcher.mask(), engine.width)[2]
    for token in tokens[1:]:
        matcher.advance(token)
    assert matcher.is_finished
    assert unpack(matcher.mask(), engine.width).nonzero()[0].tolist() == [2]
    assert other.is_complete
    assert not other.is_finished
    other.advance(2)
    assert other.is_finished
    with pytest.raises(UnsupportedConstraint):
        engine.matcher(CITIES).advance(tokens[-1])


@pytest.mark.parametrize("name", ["llguidance", "xgrammar"])
def test_forced_tokens_are_the_models_own(name: Any, compiler: Compiler) -> None:
    text = "The population of the city of Paris is exactly 2.1 million people!"
    matcher = compiler.with_engine(name).matcher(Constraint("choice", (text,)))
    forced = matcher.forced()
    own = compiler.tokens_of(text.encode())
    assert len(forced) > 8
    assert forced == own[: len(forced)]


def test_forced_tokens_leave_out_what_could_be_part_of_a_longer_one(compiler: Compiler) -> None:
    constraint = Constraint("choice", ("order id", "order identifier"))
    for name in ("llguidance", "xgrammar"):
        forced = compiler.with_engine(name).matcher(constraint).forced()
        assert b"".join(map(compiler.bytes_of, forced)) in (b"order", b"order ")


def test_only_a_schema_that_llguidance_cannot_hold_goes_to_xgrammar(compiler: Compiler) -> None:
    assert compiler.enforcement(schema(MAP)).by == "llguidance"
    counted = schema({**MAP, "minProperties": 2})
    assert compiler.enforcement(counted) == Enforcement("full", (), "xgrammar")
    assert written(compiler, counted, '{"a": "x"}') is None
    assert written(compiler, counted, '{"a": "x", "c": "y"}') is not None
    assert compiler.with_engine("llguidance").enforcement(counted).residual == ("/minProperties",)


@pytest.mark.parametrize(
    "given",
    [
        {"type": "object", "properties": {"a": True}},
        {"type": "array", "uniqueItems": True, "contains": True},
        {"type": "string", "pattern": "^.$"},
        {"type": "string", "maxLength": 3},
        {"oneOf": [{"type": "integer"}, {"type": "number"}]},
        {"type": "object", "anyOf": [{"$ref": "#/$defs/a"}], "properties": {}},
        {"enum": [{"a": 1}]},
        {"maxItems": 2},
        {"type": ["array", "null"], "maxItems": 2},
        {"additionalProperties": False, "maxProperties": 1},
    ],
)
def test_xgrammar_is_not_trusted_with_what_it_ignores(given: Any) -> None:
    assert not trusted(given)


def test_without_xgrammar_it_says_how_to_get_it(
    compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "xgrammar", None)
    fresh = compiler.with_engine("xgrammar")
    monkeypatch.setattr(fresh, "_engines", {})
    with pytest.raises(UnsupportedConstraint, match=r"pip install 'headrace\[xgrammar\]'"):
        fresh.matcher(CITIES)


@pytest.mark.parametrize(
    ("name", "constraint"),
    [
        ("outlines_core", schema({"type": "null"})),
        ("xgrammar", Constraint("grammar", 'start: "a"')),
    ],
)
def test_an_engine_refuses_what_it_does_not_read(
    name: Any, constraint: Constraint, compiler: Compiler
) -> None:
    with pytest.raises(UnsupportedConstraint, match=constraint.kind):
        compiler.with_engine(name).matcher(constraint)


def test_an_engine_that_there_is_not_is_named(compiler: Compiler) -> None:
    with pytest.raises(InvalidRequest, match="one of auto, llguidance, xgrammar, outlines_core"):
        compiler.with_engine("lmfe")  # type: ignore[arg-type]


def test_a_template_is_enforced_and_says_what_its_fields_leave(compiler: Compiler) -> None:
    parts = ["Age: ", {"name": "age", "kind": "regex", "spec": "[0-9]{1,3}"}]
    template = Constraint("template", json.dumps(parts))
    assert compiler.enforcement(template).level == "full"
    assert written(compiler, template, "Age: 41") is not None
    assert written(compiler, template, "Age: x") is None
    field = {"name": "tags", "kind": "json_schema", "spec": '{"type":"array","uniqueItems":true}'}
    left = compiler.enforcement(Constraint("template", json.dumps(["Tags: ", field])))
    assert left.residual == ("/uniqueItems",)


def test_many_threads_compile_a_constraint_once(
    compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[Constraint] = []
    original = LLGuidance.compile

    def counted(self: LLGuidance, constraint: Constraint) -> Any:
        compiled.append(constraint)
        return original(self, constraint)

    monkeypatch.setattr(LLGuidance, "compile", counted)
    fresh = compiler.with_engine("auto")
    constraints = [Constraint("regex", f"[0-9]{{{n}}}x") for n in range(1, 5)]
    gate = threading.Barrier(8)

    def work(at: int) -> list[bytes]:
        gate.wait()
        masks: list[bytes] = []
        for constraint in constraints:
            matcher = fresh.matcher(constraint)
            for token in fresh.tokens_of(b"1"):
                matcher.advance(token)
            masks.append(matcher.mask())
        return masks

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(work, range(8)))
    assert all(masks == found[0] for masks in found)
    assert sorted(one.spec for one in compiled) == sorted(one.spec for one in constraints)


def test_a_refusal_is_remembered_and_is_an_error_of_ones_own(compiler: Compiler) -> None:
    bad = Constraint("regex", "(unclosed")
    errors: list[InvalidRequest] = []
    for _ in range(2):
        with pytest.raises(InvalidRequest) as caught:
            compiler.matcher(bad)
        errors.append(caught.value)
    assert str(errors[0]) == str(errors[1])
    assert errors[0] is not errors[1]


def test_a_mask_is_applied_to_any_logits(compiler: Compiler) -> None:
    import torch

    for constraint, dtype in [(CITIES, torch.float32), (Constraint("regex", ".*"), torch.bfloat16)]:
        logits = torch.randn(compiler.width + 70).to(dtype)
        kept = logits.clone()
        mask = compiler.matcher(constraint).mask()
        allowed = torch.from_numpy(unpack(mask, logits.shape[0]))
        expected = logits.masked_fill(~allowed, float("-inf"))
        assert torch.equal(apply_mask(mask, logits), expected)
        assert torch.equal(logits, kept)
        assert torch.equal(apply_mask(mask, logits[:100]), expected[:100])


@pytest.mark.slow
def test_a_compilation_of_its_own_ends_at_its_limits(compiler: Compiler) -> None:
    pieces = {bytes([byte]).hex(): [byte] for byte in range(1, 128)}
    assert worker.compile_index("[ab]c", pieces, 300)
    with pytest.raises(UnsupportedConstraint, match="longer than 3 s"):
        worker.compile_index("[ab]*a[ab]{24}", pieces, 300, seconds=3)
    with pytest.raises(UnsupportedConstraint, match="more than 300 MB"):
        worker.compile_index("[ab]*a[ab]{24}", pieces, 300, seconds=60, megabytes=300)
    with pytest.raises(InvalidRequest):
        worker.compile_index("(", pieces, 300)


def test_xgrammar_names_places_of_the_callers_schema(compiler: Compiler) -> None:
    pytest.importorskip("xgrammar")
    person = {"type": "object", "properties": {"name": {"type": "string"}}}
    schema = {
        "definitions": {"person": person},
        "type": "array",
        "items": {"$ref": "#/definitions/person"},
    }
    held = compiler.with_engine("xgrammar").enforcement(
        Constraint("json_schema", json.dumps(schema))
    )
    assert held.residual == ("/definitions/person/additionalProperties",)
