"""Numbers that JSON has and Python has not, where commands and answers meet them."""

from __future__ import annotations

import json
from typing import Any

import pytest

import headrace
from headrace import Constraint, InvalidRequest, Request
from headrace.backends.remote.dialects import DIALECTS
from headrace.backends.remote.ladder import native_rungs
from headrace.backends.remote.nulls import without_nulls
from headrace.middleware.check import strict_json
from headrace.middleware.outcome import broken
from headrace.middleware.plan_forms import form_of
from headrace.middleware.terminal import print_json

ODD = ["1.0", "1.10", "1E5", "12345678901234567890", "1e400", "-0"]


@pytest.mark.parametrize("number", ODD)
def test_an_object_that_is_written_in_parts_keeps_its_numbers(number: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}
    form = form_of(Request.of("Go", constraint=headrace.constraint(schema)))
    rest = form.rest(1, "{")  # from the first field on
    assert rest is not None
    assert rest.join(f'{{"b": {number}, "a": [{number}]}}') == f', "a": [{number}], "b": {number}}}'


@pytest.mark.parametrize("number", ODD)
def test_strict_modes_wrapped_answers_keep_their_numbers(number: str) -> None:
    items = {"type": "object", "properties": {"n": {"type": "number"}, "x": {"type": "string"}}}
    schema = {"type": "array", "items": items}
    made = Constraint("json_schema", json.dumps(schema))
    dialect = DIALECTS["openai"]
    [*_, rung] = native_rungs(dialect, dialect.fields["json_schema"][0], made, is_verified=True)
    assert rung.read is not None
    said = f'{{"answer": [{{"n": {number}, "x": null}}]}}'
    assert rung.read(said) == f'[{{"n": {number}}}]'


def printed(value: Any, capfdbinary: pytest.CaptureFixture[bytes]) -> str:
    print_json(value)
    return capfdbinary.readouterr().out.decode()


def test_what_a_command_prints_is_json(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    odd = [float("inf"), {"a": float("nan"), "b": 1.5}, -float("inf")]
    assert printed(odd, capfdbinary) == '[null, {"a": null, "b": 1.5}, null]\n'
    assert printed({"é": 1.0}, capfdbinary) == '{"é": 1.0}\n'
    assert printed(["\ud800", float("inf")], capfdbinary) == '["\\ud800", null]\n'


def test_a_number_that_is_too_long_is_said_with_its_length() -> None:
    assert strict_json('{"n": 12345678901234567890}') == {"n": 12345678901234567890}
    assert strict_json("[1E5, 1.0]") == [1e5, 1.0]
    with pytest.raises(ValueError, match="a number of 5000 digits is too long to be read"):
        strict_json("9" * 5000)
    constraint = headrace.constraint({"type": "integer"})
    assert constraint is not None
    assert broken("7", constraint) is None
    assert "5000 digits is too long" in (broken("9" * 5000, constraint) or "")


@pytest.mark.parametrize(
    "target", ["#/anyOf/1", "#/$defs/a%20b", "#/$defs/c~1d", "#/anyOf/9", "#/anyOf/x", "#/title/0"]
)
def test_references_into_lists_are_followed(target: str) -> None:
    optional = {"type": "object", "properties": {"n": {"type": "integer"}}}
    schema = {
        "title": "mill",
        "type": "object",
        "properties": {"one": {"$ref": target}},
        "$defs": {"a b": optional, "c/d": optional},
        "anyOf": [{"type": "array"}, optional],
    }
    kept = without_nulls({"one": {"n": None}}, schema)
    leads = target in ("#/anyOf/1", "#/$defs/a%20b", "#/$defs/c~1d")
    assert kept == {"one": {} if leads else {"n": None}}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"when": "pays"}, 'when="pays" says when to compress; give a rate too'),
        ({"rate": 2}, r"rate must be in \[0, 1\], got 2"),
        ({"rate": 0}, "rate=0 leaves nothing"),
        ({"top_k": 0, "documents": ["a"]}, "top_k must be a whole number from 1 on"),
    ],
)
def test_generate_refuses_before_it_looks_for_an_engine(options: dict[str, Any], says: str) -> None:
    nowhere = "http://127.0.0.1:9/v1"  # asked, it would be a BackendError
    with pytest.raises(InvalidRequest, match=says):
        headrace.generate("Who?", backend=nowhere, **options)
    schema = json.loads('{"type": "object"}')
    if "when" not in options:
        with pytest.raises(InvalidRequest, match=says):
            list(headrace.stream_objects("Who?", schema, backend=nowhere, **options))
