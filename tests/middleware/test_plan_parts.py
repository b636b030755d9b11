"""Parts that are given or asked for: outlines, plan-or-answer, a held graph, published SoT."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from engine import Reply, SimulatedEngine, handler, run_virtual
from engine.planning import answer, row

from headrace.middleware.constrain import Constrain
from headrace.middleware.errors import (
    BackendError,
    HeadraceError,
    InvalidRequest,
    UnsupportedConstraint,
)
from headrace.middleware.plan import Plan
from headrace.middleware.types import (
    Constraint,
    Event,
    Finished,
    Message,
    Request,
    TextDelta,
)
from headrace.planners import plan_pattern

PLAN = "@plan\n1|Alpha|~6\n2|Beta|~6\n3|Gamma|<1|~6\n@end\nand more " + "x " * 50


def decided(first: Reply | str) -> SimulatedEngine:
    def reply(request: Request) -> Reply | str:
        text = request.messages[-1].text
        found = re.search(r"about point (\d+)", text)
        return f"Text {found[1]}." if found else first

    return SimulatedEngine(reply)


def held(request: Request) -> bool:
    return request.constraint is not None


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
