"""Strategies without a planner's call: map, template, outline; and plan-or-answer, and SoT."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from engine import Reply, SimulatedEngine, handler, run_virtual

from headrace import constraint, template
from headrace.middleware.constrain import Constrain
from headrace.middleware.errors import (
    BackendError,
    DeadlineExceeded,
    HeadraceError,
    InvalidRequest,
    UnsupportedConstraint,
)
from headrace.middleware.plan import Plan
from headrace.middleware.types import (
    Constraint,
    Document,
    Event,
    Finished,
    Message,
    Request,
    Response,
    Sampling,
    TextDelta,
)
from headrace.planners import plan_pattern

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


def answer(engine: SimulatedEngine, stage: Plan, request: Request) -> tuple[list[str], Response]:
    async def main() -> list[Event]:
        return [event async for event in stage(request, handler(engine))]

    # Checking a constraint happens in a thread, which a virtual clock does not know.
    run = asyncio.run if request.constraint is not None else run_virtual
    *deltas, last = run(main())
    pieces = [event.text for event in deltas if isinstance(event, TextDelta)]
    assert isinstance(last, Finished)
    assert "".join(pieces) == last.response.text
    return pieces, last.response


def item_of(request: Request) -> str:
    return request.messages[-1].text.rpartition("Item: ")[2]


def row(response: Response) -> Any:
    [found] = [one for one in response.report.stages if one.stage == "plan"]
    return found


def by_item(request: Request) -> Reply | str:
    item = item_of(request)
    return Reply(f"Phrase {item.split()[-1]}", delay=1.0 if "one" in item else 0.0)


def test_every_item_is_a_call_and_the_answers_keep_marks_and_order() -> None:
    engine = SimulatedEngine(by_item)
    _, response = answer(engine, Plan(), Request.of(LIST))
    assert response.text == "\n".join(f"{at}. Phrase {word}." for at, word in enumerate(WORDS, 1))
    assert [item_of(r.request) for r in engine.log] == [f"Sentence {word}." for word in WORDS]
    assert len({r.request.messages[-1].text.rpartition("Item: ")[0] for r in engine.log}) == 1
    assert response.usage.num_calls == 5
    assert row(response).details["how"] == "slots"
    assert row(response).details["why"] == "the prompt lists 5 items"


def test_items_are_written_at_the_same_time_and_never_more_than_the_width() -> None:
    engine = SimulatedEngine(lambda request: Reply("Done.", delay=1))
    answer(engine, Plan("map", width=2), Request.of(LIST))
    ends = sorted(r.ended or 0 for r in engine.log)
    assert engine.peak_calls == 2
    assert ends[-1] == pytest.approx(3, abs=0.2)


def test_a_failed_item_is_tried_again_and_its_place_is_kept() -> None:
    down = Reply("", after=0, error=BackendError("down", retryable=True))
    gone = Reply("", after=0, error=BackendError("gone"))
    tries: list[str] = []

    def reply(request: Request) -> Reply | str:
        item = item_of(request)
        tries.append(item)
        if "two" in item and tries.count(item) == 1:
            return down
        return gone if "four" in item else by_item(request)

    _, response = answer(SimulatedEngine(reply), Plan(), Request.of(LIST))
    lines = response.text.split("\n")
    assert [line.split(".")[0] for line in lines] == ["1", "2", "3", "4", "5"]
    assert lines[1] == "2. Phrase two."
    assert lines[3] == "4. [no answer]"
    assert response.finish_reason == "length"
    assert row(response).details["missing"] == ["item 4"]
    assert row(response).details["nodes"][3]["error"] == "gone"


def test_a_first_item_that_fails_means_one_plain_call() -> None:
    def reply(request: Request) -> Reply | str:
        if "Item: " not in request.messages[-1].text:
            return "All at once."
        is_first = "one" in item_of(request)
        return Reply("", after=0, error=BackendError("gone")) if is_first else "Late. " * 50

    engine = SimulatedEngine(reply)
    _, response = answer(engine, Plan(), Request.of(LIST))
    assert response.text == "All at once."
    assert "item 1 failed: gone" in row(response).decision
    assert {r.outcome for r in engine.log[1:5]} == {"cancelled"}


def test_an_item_that_breaks_off_goes_on_without_doubling() -> None:
    words = " ".join(f"w{i}" for i in range(30))
    drop = Reply(words, after=20, error=BackendError("reset", retryable=True))

    def reply(request: Request) -> Reply | str:
        if request.messages[-2:][0].role == "assistant":
            return " ".join(words.split()[16:])
        return drop if "one" in item_of(request) else "Fine."

    _, response = answer(SimulatedEngine(reply), Plan(), Request.of(LIST))
    assert response.text.startswith(f"1. {words}\n2. Fine.")


def test_documents_and_earlier_turns_are_the_same_prefix_for_all_items() -> None:
    engine = SimulatedEngine(by_item)
    turns = (Message.system("Be kind."), Message.user("Hi"), Message.assistant("Hello"))
    request = Request((*turns, Message.user(LIST)), documents=(Document("Glossary."),))
    answer(engine, Plan("map"), request)
    for record in engine.log:
        assert record.request.messages[:3] == turns
        assert record.request.messages[3].text.count("Glossary.") == 1


def test_all_items_together_keep_max_tokens() -> None:
    engine = SimulatedEngine(lambda request: "w " * 500)
    request = Request.of(LIST, sampling=Sampling(max_tokens=150))
    _, response = answer(engine, Plan(), request)
    assert sum(r.num_tokens for r in engine.log) <= 150
    assert response.finish_reason == "length"
    small = Request.of(LIST, sampling=Sampling(max_tokens=60))
    assert "too small for 5 items" in row(answer(engine, Plan(), small)[1]).decision


def test_a_deadline_ends_all_items() -> None:
    engine = SimulatedEngine(lambda request: Reply("x", delay=5))
    with pytest.raises(DeadlineExceeded):
        answer(engine, Plan("map", width=1), Request.of(LIST, deadline=1.0))


def test_a_list_that_is_not_faster_in_parts_is_answered_in_one_call() -> None:
    engine = SimulatedEngine(lambda request: "All.")
    _, response = answer(engine, Plan(width=1), Request.of(LIST))
    assert response.text == "All."
    assert "predicted gain" in row(response).decision
    assert len(answer(engine, Plan(width=1, when="always"), Request.of(LIST))[1].text) > 20


def test_what_has_tools_or_stop_strings_is_not_mapped() -> None:
    engine = SimulatedEngine(lambda request: "Plain.")
    for sampling in (Sampling(stop=("x",)), Sampling(extra={"tools": [{}]})):
        _, response = answer(engine, Plan("map"), Request.of(LIST, sampling=sampling))
        assert response.text == "Plain."


def test_an_array_has_an_item_of_the_same_shape_for_each_line() -> None:
    each = {"type": "object", "properties": {"fr": {"type": "string"}}, "required": ["fr"]}
    made = constraint({"type": "array", "items": each})
    engine = SimulatedEngine(lambda request: json.dumps({"fr": item_of(request)}))
    _, response = answer(engine, Plan("map"), Request.of(LIST, constraint=made))
    assert response.parsed == [{"fr": f"Sentence {word}."} for word in WORDS]
    specs = {r.request.constraint.spec for r in engine.log if r.request.constraint}
    assert [json.loads(str(spec)) for spec in specs] == [each]


def fields(values: dict[str, Reply | str], whole: str = "{}") -> Any:
    def reply(request: Request) -> Reply | str:
        found = re.search(r'alone, as JSON: |that of "(\w+)"', request.messages[-1].text)
        return values[found[1]] if found else whole

    return reply


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


def test_an_outline_is_written_as_it_is_given_without_a_planner() -> None:
    def reply(request: Request) -> str:
        found = re.search(r"text of section (\d+)", request.messages[-1].text)
        return f"Text {found[1] if found else '?'}."

    engine = SimulatedEngine(reply)
    stage = Plan(outline=("What: it is", "2023", "1. Costs (uses 2)"))
    _, response = answer(engine, stage, Request.of("Write about {pumps}."))
    assert len(engine.log) == 3
    for at, title in enumerate(stage.outline, 1):
        assert f"**{title}**: Text {at}." in response.text
    assert all("Write about {pumps}." in r.request.messages[0].text for r in engine.log)


@pytest.mark.parametrize(
    "options",
    [
        {"outline": ("One",)},
        {"outline": ("One", "one!")},
        {"outline": ("One", " ")},
        {"outline": "One"},
        {"outline": ("One", "Two"), "strategy": "graph"},
        {"strategy": "best"},
    ],
)
def test_a_bad_option_is_refused_in_a_line(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        Plan(**options)
    assert "\n" not in str(caught.value)


PLAN = "@plan\n1|Alpha|~6\n2|Beta|~6\n3|Gamma|<1|~6\n@end\nand more " + "x " * 50


def decided(first: Reply | str) -> SimulatedEngine:
    def reply(request: Request) -> Reply | str:
        text = request.messages[-1].text
        found = re.search(r"about point (\d+)", text)
        return f"Text {found[1]}." if found else first

    return SimulatedEngine(reply)


@pytest.mark.parametrize(
    "text",
    [
        "A short answer.",
        "@planet is a word\nindeed",
        "@",
        "\n\n  Two lines\nof text ",
        "1. A list\n2. of things",
        "<b>bold</b>",
        "",
    ],
)
def test_what_is_no_plan_is_the_answer_and_nothing_of_it_is_lost(text: str) -> None:
    engine = decided(text)
    _, response = answer(engine, Plan("decide"), Request.of("Q"))
    assert response.text == text
    assert len(engine.log) == 1
    assert row(response).decision == "no plan: the model answered at once"
    assert response.usage.num_calls == 1


def test_an_answer_streams_from_its_first_word() -> None:
    engine = decided("Word " * 100)

    async def main() -> float:
        async for event in Plan("decide")(Request.of("Q"), handler(engine)):
            if isinstance(event, TextDelta):
                return asyncio.get_running_loop().time()
        raise AssertionError

    assert run_virtual(main()) < 0.05


@pytest.mark.parametrize("start", ["", "```\n", "<think>1. x\n</think>\n\n"])
def test_a_plan_is_written_in_parts_and_its_call_closed_at_its_end(start: str) -> None:
    engine = decided(start + PLAN if start != "```\n" else "`@plan`" + PLAN.removeprefix("@plan"))
    _, response = answer(engine, Plan("decide"), Request.of("Q"))
    assert response.text == "1. **Alpha**: Text 1.\n\n2. **Beta**: Text 2.\n\n3. **Gamma**: Text 3."
    assert engine.log[0].outcome == "cancelled"
    assert engine.log[0].num_tokens < 20
    assert all(r.request.messages[:1] == engine.log[0].request.messages for r in engine.log)


def test_a_plan_of_one_part_is_answered_plainly() -> None:
    engine = decided("@plan\n1|Alpha|~6\n@end")
    _, response = answer(engine, Plan("decide"), Request.of("Q"))
    assert row(response).decision.startswith("no plan: the plan has")
    assert engine.log[-1].request.messages == (Message.user("Q"),)


def test_the_published_method_is_two_kinds_of_calls_and_its_own_join() -> None:
    def reply(request: Request) -> str:
        text = request.messages[-1].text
        if "nothing but point" in text:
            number = re.findall(r"Continue with point (\d+)", text)[-1]
            return "2. Pears. Are sweet." if number == "2" else f"Text {number}."
        return "1. Apples.\n2. Pears.\n2. Again.\n10. Plums."

    engine = SimulatedEngine(reply)
    _, response = answer(engine, Plan("sot", width=1), Request.of("Which {fruit} is there?"))
    assert response.text == "1. Apples. Text 1.\n2. Pears. Are sweet.\n10. Plums. Text 10."
    assert engine.peak_calls == 3  # all points at once, whatever the width
    assert all("Which {fruit} is there?" in r.request.messages[-1].text for r in engine.log)


def test_a_published_skeleton_without_points_is_answered_plainly() -> None:
    engine = SimulatedEngine(lambda request: "" if "skeleton" in request.messages[-1].text else "P")
    _, response = answer(engine, Plan("sot"), Request.of("Q"))
    assert response.text == "P"


def held(request: Request) -> bool:
    return request.constraint is not None


def test_a_graph_is_written_under_its_language_and_parts_start_before_it_ends() -> None:
    engine = decided(PLAN)

    def chain(request: Request) -> Any:
        return Constrain(retries=1)(request, handler(engine))

    async def main() -> list[Event]:
        return [event async for event in Plan("graph", when="always")(Request.of("Q"), chain)]

    *_, last = run_virtual(main())
    assert isinstance(last, Finished)
    assert [held(r.request) for r in engine.log] == [True, False, False, False]
    [constraint_] = [r.request.constraint for r in engine.log if held(r.request)]
    assert constraint_ == Constraint("regex", plan_pattern("graph"))
    planner, first = engine.log[0], engine.log[1]
    assert first.started is not None
    assert planner.ended is not None
    assert first.started < planner.ended


@pytest.mark.parametrize(
    "error", [UnsupportedConstraint("no regex here"), BackendError("400: grammar too large")]
)
def test_an_engine_that_refuses_the_language_is_asked_without_it(error: HeadraceError) -> None:
    def reply(request: Request) -> Reply | str:
        if held(request):
            return Reply("", after=0, error=error)
        found = re.search(r"about point (\d+)", request.messages[-1].text)
        return f"Text {found[1]}." if found else PLAN

    engine = SimulatedEngine(reply)
    _, response = answer(engine, Plan("graph", when="always"), Request.of("Q"))
    assert "3. **Gamma**: Text 3." in response.text
    assert sum(held(r.request) for r in engine.log) == 1


def test_a_skeleton_is_not_held_since_any_list_is_read() -> None:
    engine = decided("1. Alpha\n2. Beta\n3. Gamma\n")
    answer(engine, Plan("skeleton", when="always"), Request.of("Q"))
    assert not any(held(r.request) for r in engine.log)


def test_reasoning_before_an_item_is_not_shown() -> None:
    engine = SimulatedEngine(lambda request: f"<think>Hm, 1. maybe.</think>\n\n{item_of(request)}")
    _, response = answer(engine, Plan("map"), Request.of(LIST))
    assert response.text == "\n".join(f"{at}. Sentence {w}." for at, w in enumerate(WORDS, 1))


def test_reasoning_that_never_ends_is_no_answer() -> None:
    engine = SimulatedEngine(
        lambda request: "<think>Hm" if "three" in item_of(request) else item_of(request)
    )
    _, response = answer(engine, Plan("map"), Request.of(LIST))
    assert response.text.split("\n")[2] == "3. [no answer]"
