"""Arrays, objects and templates that are written in parts."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from engine import Reply, SimulatedEngine, handler
from engine.planning import answer, row

from headrace import constraint, template
from headrace.middleware.check import dangling_reference
from headrace.middleware.errors import BackendError, Truncated
from headrace.middleware.plan import Plan
from headrace.middleware.plan_forms import far_reference
from headrace.middleware.types import Request, TextDelta

WORDS = ("one", "two", "three", "four", "five")
LIST = "Translate each sentence to French:\n" + "\n".join(
    f"{at}. Sentence {word}." for at, word in enumerate(WORDS, 1)
)
SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "score": {"type": "integer", "minimum": 0},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}},
    },
    "required": ["title", "tags"],
    "$defs": {"tag": {"enum": ["a", "b"]}},
}


def item_of(request: Request) -> str:
    return request.messages[-1].text.rpartition("Item: ")[2]


def fields(values: dict[str, Reply | str], whole: str = "{}") -> Any:
    def reply(request: Request) -> Reply | str:
        found = re.search(r'alone, as JSON: |that of "(\w+)"', request.messages[-1].text)
        return values[found[1]] if found else whole

    return reply


def test_an_array_has_an_item_of_the_same_shape_for_each_line() -> None:
    each = {"type": "object", "properties": {"fr": {"type": "string"}}, "required": ["fr"]}
    made = constraint({"type": "array", "items": each})
    engine = SimulatedEngine(lambda request: json.dumps({"fr": item_of(request)}))
    _, response = answer(engine, Plan("map"), Request.of(LIST, constraint=made))
    assert response.parsed == [{"fr": f"Sentence {word}."} for word in WORDS]
    specs = {r.request.constraint.spec for r in engine.log if r.request.constraint}
    assert [json.loads(str(spec)) for spec in specs] == [each]


def test_independent_fields_are_written_apart_and_joined_to_one_valid_object() -> None:
    values: dict[str, Reply | str] = {"title": '"T"', "score": "7", "tags": '["a"]'}
    engine = SimulatedEngine(fields(values))
    request = Request.of("Rate it.", constraint=constraint(SCHEMA))
    pieces, response = answer(engine, Plan("template"), request)
    assert response.text == '{"title": "T", "score": 7, "tags": ["a"]}'
    assert response.parsed == {"title": "T", "score": 7, "tags": ["a"]}
    assert len(pieces) == 4
    assert [json.loads(str(r.request.constraint.spec)) for r in engine.log][1]["minimum"] == 0
    assert engine.log[2].request.constraint is not None
    assert "$defs" in str(engine.log[2].request.constraint.spec)


def test_a_field_that_is_refused_twice_is_written_with_the_rest_in_one_call() -> None:
    values: dict[str, Reply | str] = {"title": '"T"', "score": "-1", "tags": '["a"]'}
    engine = SimulatedEngine(fields(values, '{"score": 3, "tags": ["b"]}'))
    request = Request.of("Rate it.", constraint=constraint(SCHEMA))
    _, response = answer(engine, Plan("template"), request)
    assert response.text == '{"title": "T", "score": 3, "tags": ["b"]}'
    assert sum('that of "score"' in r.request.messages[-1].text for r in engine.log) == 2
    assert '{"title": "T"' in engine.log[-1].request.messages[-1].text


def test_a_first_field_that_fails_means_one_call_under_the_whole_schema() -> None:
    values: dict[str, Reply | str] = {"title": "no JSON", "score": "1", "tags": '["a"]'}
    whole = '{"title": "W", "tags": []}'
    engine = SimulatedEngine(fields(values, whole))
    made = constraint(SCHEMA)
    _, response = answer(engine, Plan("template"), Request.of("Rate it.", constraint=made))
    assert response.text == whole
    assert engine.log[-1].request.constraint == made
    assert "title failed" in row(response).decision


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"dependentRequired": {"title": ["score"]}}, "'dependentRequired' is about several"),
        ({"if": {}, "then": {}}, "'if' is about several"),
        ({"oneOf": [{}, {}]}, "'oneOf' is about several"),
        ({"properties": {"title": {"$ref": "#"}, "a": {}}}, "'#' refers to more"),
        ({"properties": {"title": {}}}, "1 field"),
        ({"required": ["other"]}, "requires 'other'"),
        ({"type": "array"}, "not of type object"),
        ({"properties": {"title": False, "tags": {}}}, "forbids one of its own"),
    ],
)
def test_fields_that_hang_together_are_not_divided(change: dict[str, Any], why: str) -> None:
    engine = SimulatedEngine(lambda request: "Plain.")
    made = constraint({**SCHEMA, **change})
    _, response = answer(engine, Plan("template"), Request.of("Q", constraint=made))
    assert len(engine.log) == 1
    assert why in row(response).decision


def test_the_fields_of_a_template_are_written_apart() -> None:
    made = template("# Report\nRisk: {risk:low|high}\nCost: {cost:int} EUR\n\n{summary}")
    texts = {"risk": "high", "cost": "12", "summary": "All of it.\n"}

    def reply(request: Request) -> str:
        return texts[re.findall(r"place of \{(\w+)\}", request.messages[-1].text)[-1]]

    request = Request.of("Report.", constraint=made)
    _, response = answer(SimulatedEngine(reply), Plan("template"), request)
    assert response.text == "# Report\nRisk: high\nCost: 12 EUR\n\nAll of it."
    assert response.parsed == {"risk": "high", "cost": 12, "summary": "All of it."}


def test_a_template_field_that_fails_is_written_with_what_follows() -> None:
    made = template("A: {a}\nB: {b:int}\nC: {c}")

    def reply(request: Request) -> str:
        found = re.findall(r"place of \{(\w+)\}", request.messages[-1].text)
        if not found:
            return "\nB: 5\nC: end"
        return {"a": "first", "b": "many", "c": "third"}[found[-1]]

    engine = SimulatedEngine(reply)
    _, response = answer(engine, Plan("template"), Request.of("Q", constraint=made))
    assert response.text == "A: first\nB: 5\nC: end"
    assert response.parsed["b"] == 5


EACH = {"type": "object", "properties": {"fr": {"type": "string"}}, "required": ["fr"]}


def refusing(rest: Reply | str) -> SimulatedEngine:
    """Return an engine that writes no object for the third item; ``rest`` is for what is left."""

    def reply(request: Request) -> Reply | str:
        asked = request.messages[-1].text
        if "of which this is written" in asked:
            return rest
        return "[]" if "three" in item_of(request) else json.dumps({"fr": item_of(request)})

    return SimulatedEngine(reply)


def test_an_item_that_is_refused_twice_is_written_with_the_rest_in_one_call() -> None:
    engine = refusing('[{"fr": "1.0"}, {"fr": "zwei"}, {"fr": "drei"}]')
    made = constraint({"type": "array", "items": EACH})
    _, response = answer(engine, Plan("map"), Request.of(LIST, constraint=made))
    assert [one["fr"] for one in response.parsed] == [
        *("Sentence one.", "Sentence two."),
        *("1.0", "zwei", "drei"),
    ]
    asked = engine.log[-1].request
    assert '[{"fr": "Sentence one."}, {"fr": "Sentence two."}\n' in asked.messages[-1].text
    assert asked.messages[-1].text.endswith(
        "\n1. Sentence three.\n2. Sentence four.\n3. Sentence five."
    )
    assert asked.constraint is not None
    assert json.loads(str(asked.constraint.spec))["minItems"] == 3
    assert row(response).decision == (
        "wrote 2 parts at the same time, without a planner, and those from item 3 on in one call"
    )
    assert row(response).details["missing"] == []
    assert response.finish_reason == "stop"


@pytest.mark.parametrize(
    "rest",
    [
        "no JSON",
        '[{"fr": "too few"}]',
        Reply("", after=0, error=BackendError("down", retryable=True)),
    ],
)
def test_what_was_sent_is_in_the_error_where_an_array_cannot_be_ended(rest: Reply | str) -> None:
    seen = ""

    async def read() -> None:
        nonlocal seen
        made = constraint({"type": "array", "items": EACH})
        request = Request.of(LIST, constraint=made)
        async for event in Plan("map")(request, handler(refusing(rest))):
            seen += event.text if isinstance(event, TextDelta) else ""

    with pytest.raises(Truncated, match="the answer ends before item 3") as caught:
        asyncio.run(read())
    assert seen == '[{"fr": "Sentence one."}, {"fr": "Sentence two."}'
    assert caught.value.text == seen
    assert "\n" not in str(caught.value)


def test_what_was_sent_is_in_the_error_where_an_object_cannot_be_ended() -> None:
    values: dict[str, Reply | str] = {"title": '"T"', "score": "-1", "tags": '["a"]'}
    request = Request.of("Rate it.", constraint=constraint(SCHEMA))
    with pytest.raises(Truncated, match="before score") as caught:
        answer(SimulatedEngine(fields(values, '{"score": -1}')), Plan("template"), request)
    assert caught.value.text == '{"title": "T"'


@pytest.mark.parametrize("name", ["const", "enum", "examples", "$ref", "properties", "default"])
def test_the_name_of_a_property_hides_no_reference(name: str) -> None:
    inner = {"type": "object", "properties": {name: {"$ref": "#/properties/b"}}}
    made = constraint({"type": "object", "properties": {"a": inner, "b": {"type": "string"}}})
    engine = SimulatedEngine(lambda request: '{"a": {}, "b": ""}')
    _, response = answer(engine, Plan("template"), Request.of("Q", constraint=made))
    assert len(engine.log) == 1
    assert "'#/properties/b' refers to more" in row(response).decision


@pytest.mark.parametrize(
    "part",
    [
        {"items": {"$ref": "#"}},
        {"prefixItems": [{}, {"$ref": "#"}]},
        {"anyOf": [{"not": {"$ref": "#"}}]},
        {"patternProperties": {"enum": {"$ref": "#"}}},
        {"dependentSchemas": {"x": {"$ref": "#"}}},
        {"if": {}, "else": {"contains": {"$ref": "#"}}},
        {"$ref": "#/$defs/const"},
    ],
)
def test_a_reference_is_found_wherever_a_schema_may_stand(part: dict[str, Any]) -> None:
    made = {
        "type": "object",
        "properties": {"a": part, "b": {"type": "string"}},
        "$defs": {"const": {"items": {"$ref": "#"}}},
    }
    assert far_reference(made) == "#"


@pytest.mark.parametrize(
    "part",
    [
        {"const": {"$ref": "#"}},
        {"enum": [{"$ref": "#"}]},
        {"default": {"$ref": "#"}},
        {"properties": {"$ref": {"type": "string"}, "$anchor": {"type": "string"}}},
        {"required": ["$ref"], "type": ["object", "null"]},
        {"$ref": "#/$defs/tag"},
    ],
)
def test_what_is_no_reference_hinders_nothing(part: dict[str, Any]) -> None:
    assert far_reference({**SCHEMA, "properties": {"a": part, "b": {}}}) is None


def test_a_part_with_an_address_of_its_own_is_not_taken_out() -> None:
    part = {"$id": "https://example.org/a", "items": {"$ref": "#/$defs/x"}}
    assert far_reference({"type": "object", "properties": {"a": part}}) == "$id"


@pytest.mark.parametrize(
    ("risk", "shown"),
    [
        ("```\nhigh", "high"),
        ("```text\nhigh\n```", "high"),
        ("~~~", "~~~"),
        ("```sh -c", "```sh -c"),
        ("\n\nhigh\nand more", "high"),
    ],
)
def test_a_field_of_one_line_gets_no_fence(risk: str, shown: str) -> None:
    made = template("Risk: {risk}\nWhy: {why}\n\n{more}")
    texts = {"risk": risk, "why": "It is.", "more": "```\nx = 1"}

    def reply(request: Request) -> str:
        return texts[re.findall(r"place of \{(\w+)\}", request.messages[-1].text)[-1]]

    request = Request.of("Report.", constraint=made)
    _, response = answer(SimulatedEngine(reply), Plan("template"), request)
    assert response.parsed == {"risk": shown, "why": "It is.", "more": "```\nx = 1\n```"}


@pytest.mark.parametrize("name", ["const", "enum", "examples", "default", "$ref"])
def test_a_reference_that_leads_nowhere_is_found_under_any_name(name: str) -> None:
    inner = {"type": "object", "properties": {name: {"$ref": "#/$defs/none"}}}
    assert dangling_reference({"type": "array", "items": inner}) == "#/$defs/none"
    assert dangling_reference({"properties": {"a": {"const": {"$ref": "#/$defs/none"}}}}) is None


@pytest.mark.parametrize("nothing", ["", " \n", "```\n", "```text\n\n", "\n```\n```"])
def test_a_field_of_nothing_but_marks_is_asked_for_again(nothing: str) -> None:
    made = template("Risk: {risk}\nWhy: {why}")
    tries: list[str] = []

    def reply(request: Request) -> str:
        name = re.findall(r"place of \{(\w+)\}", request.messages[-1].text)[-1]
        tries.append(name)
        return "It is." if name == "why" else nothing if tries.count(name) == 1 else "high"

    _, response = answer(SimulatedEngine(reply), Plan("template"), Request.of("Q", constraint=made))
    assert response.parsed == {"risk": "high", "why": "It is."}
