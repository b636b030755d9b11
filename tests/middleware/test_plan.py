"""A planned answer: what is asked of the engine, what comes back, what is reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from engine import PLAIN, Reply, SimulatedEngine, calls_of, planned
from engine.planning import LIST, answer, row

from headrace.middleware.errors import BackendError, InvalidRequest
from headrace.middleware.plan import Plan
from headrace.middleware.report import Report, StageReport
from headrace.middleware.types import (
    Constraint,
    Document,
    Message,
    Request,
    Sampling,
)

THREE = "1. Heart\n2. Mood\n3. Sleep\n"
GRAPH = "@plan\n1|Alpha|~6\n2|Beta|~6\n3|Gamma|<1|~6\n@end\n"


def make(plan: Reply | str, nodes: Any = None, **options: Any) -> SimulatedEngine:
    return SimulatedEngine(planned(plan, nodes), **options)


def words(n: int, word: str = "w") -> str:
    return " ".join(f"{word}{i}" for i in range(n)) + "."


def test_an_answer_is_planned_written_and_joined_in_order() -> None:
    engine = make(THREE)
    _, response = answer(engine, Plan())
    assert response.text == (
        "1. **Heart**: Text of part 1.\n\n2. **Mood**: Text of part 2.\n\n"
        "3. **Sleep**: Text of part 3."
    )
    assert response.finish_reason == "stop"
    assert response.usage.num_calls == 4
    assert response.usage.completion_tokens == sum(r.num_tokens for r in engine.log)


def test_the_report_says_what_happened() -> None:
    engine = make(GRAPH)
    _, response = answer(engine, Plan("graph"))
    found = row(response)
    assert found.decision == "wrote 3 parts at the same time"
    assert found.seconds > 0
    assert [n["title"] for n in found.details["nodes"]] == ["Alpha", "Beta", "Gamma"]
    assert found.details["edges"] == [{"from": 1, "to": 3, "hard": True}]
    assert found.details["strategy"] == "graph"
    assert found.details["plan_tokens"] == engine.log[0].num_tokens
    alpha, _, gamma = found.details["nodes"]
    assert gamma["start"] == pytest.approx(alpha["end"])


def test_rows_of_earlier_stages_stay_and_come_once() -> None:
    request = Request.of(LIST, report=Report().add(StageReport("compress", "kept all")))
    _, response = answer(make(THREE), Plan(), request)
    assert [r.stage for r in response.report.stages] == ["compress", "plan"]


@pytest.mark.parametrize(
    ("stage", "request_", "why"),
    [
        (Plan("off"), Request.of(LIST), "switched off"),
        (Plan(), Request.of("Who wrote Hamlet?"), "does not look like a list"),
        (
            Plan("skeleton"),
            Request.of(LIST, constraint=Constraint("choice", ("a", "b"))),
            "constraint",
        ),
        (Plan("graph"), Request.of(LIST, sampling=Sampling(extra={"tools": [{}]})), "tools"),
        (Plan("skeleton"), Request.of(LIST, sampling=Sampling(stop=("\n",))), "stop strings"),
        (Plan("skeleton"), Request.of(LIST, sampling=Sampling(max_tokens=30)), "too small"),
    ],
)
def test_where_nothing_is_planned_the_request_passes_untouched(
    stage: Plan, request_: Request, why: str
) -> None:
    engine = SimulatedEngine(lambda request: PLAIN)
    _, response = answer(engine, stage, request_)
    seen = [replace(record.request, report=request_.report) for record in engine.log]
    assert seen == [request_]
    assert (response.text, response.usage.num_calls) == (PLAIN, 1)
    assert row(response).decision.startswith("no plan: ")
    assert why in row(response).decision


@pytest.mark.parametrize("plan", ["Sure!", "", "1. Only one", "1. Same\n1. Same\n2. same!", "🙂"])
def test_an_unusable_plan_is_followed_by_one_plain_call(plan: str) -> None:
    engine = make(plan)
    _, response = answer(engine, Plan("skeleton"))
    assert response.text == PLAIN
    assert len(engine.log) == 2
    assert engine.log[1].request.messages == Request.of(LIST).messages
    assert response.usage.num_calls == 2
    assert "the plan has" in row(response).decision


def test_a_failing_planner_is_followed_by_one_plain_call() -> None:
    engine = make(Reply(THREE, after=2, error=BackendError("down", retryable=True)))
    _, response = answer(engine, Plan())
    assert response.text == PLAIN
    assert row(response).decision == "no plan: the planner failed: down"


def test_an_unclosed_thought_is_no_plan() -> None:
    _, response = answer(make("<think>1. one\n2. two\n3. three"), Plan())
    assert response.text == PLAIN


def test_reasoning_without_its_opening_tag_is_void() -> None:
    plan = "1. guess\n2. again\n3. more\n</think>\n1. Heart\n2. Mood\n"
    _, response = answer(make(plan, {1: Reply("Late.", delay=5)}), Plan())
    assert response.text == PLAIN
    assert "reasoning" in row(response).decision
    _, response = answer(make(plan.replace("\n", " ")), Plan())
    assert "guess" not in response.text


def test_a_copied_example_is_no_plan() -> None:
    engine = make("@plan\n1|What a heat pump does|~6\n2|What it costs|~8\n3|Other|<1\n@end")
    _, response = answer(engine, Plan("graph"))
    assert response.text == PLAIN
    assert "copied" in row(response).decision


def test_texts_that_are_needed_are_all_passed_on_unchanged() -> None:
    odd = 'costs $2, not $10; see {1} and <1> or %s "$1"'
    engine = make("@plan\n1|Alpha\n2|Beta\n3|Gamma|<1,2\n@end", {1: odd, 2: "Second {}."})
    answer(engine, Plan("graph"))
    [record] = calls_of(engine, 3)
    prompt = record.request.messages[-1].text
    assert odd in prompt
    assert "Second {}." in prompt


def test_a_long_plan_is_capped_and_no_point_lost() -> None:
    plan = "\n".join(f"{i}. Point{i}" for i in range(1, 31))
    engine = make(plan)
    _, response = answer(engine, Plan(max_nodes=12))
    assert all(f"Point{i}" in response.text for i in range(1, 31))
    assert len(engine.log) == 13
    assert row(response).details["merged"] == 18


def test_the_next_turn_sees_the_answer_only() -> None:
    engine = make(THREE)
    _, response = answer(engine, Plan())
    turns = Message.user(LIST), Message.assistant(response.text), Message.user("Thanks!")
    answer(engine, Plan(), Request(turns))
    assert engine.log[-1].request.messages == turns


def test_all_calls_share_their_beginning_and_end_with_the_user() -> None:
    engine = make(THREE)
    messages = (Message.system("Be kind."), Message.user("Hi"), Message.assistant("Hello"))
    request = Request((*messages, Message.user(LIST)))
    answer(engine, Plan(width=1), request)
    planner, *parts = (record.request.messages for record in engine.log)
    assert planner[:3] == messages
    assert planner[3].text.startswith(LIST)
    for part in parts:
        assert part[:4] == planner
        assert [m.role for m in part[4:]] == ["assistant", "user"]
        assert THREE.startswith(part[4].text)


def test_parts_get_the_sampling_options_of_the_request() -> None:
    sampling = Sampling(temperature=0.3, seed=7, extra={"top_k": 5}, max_tokens=400)
    engine = make(THREE)
    answer(engine, Plan(), Request.of(LIST, sampling=sampling))
    for record in engine.log:
        given = record.request.sampling
        assert replace(given, max_tokens=400) == sampling


@pytest.mark.parametrize("limit", [150, 200, 333, 1000])
def test_all_parts_together_keep_max_tokens(limit: int) -> None:
    texts = {i: " ".join(f"n{i}w{k}" for k in range(900)) for i in (1, 2, 3)}
    engine = make(THREE, texts)
    request = Request.of(LIST, sampling=Sampling(max_tokens=limit))
    _, response = answer(engine, Plan(), request)
    assert sum(r.num_tokens for i in (1, 2, 3) for r in calls_of(engine, i)) <= limit
    assert min(limit, 400) / 2 < len(response.text.split()) <= limit
    assert response.finish_reason == "length"


def test_documents_are_written_into_the_message_once() -> None:
    engine = make(THREE)
    request = Request.of(LIST, documents=(Document("Exercise lowers blood pressure."),))
    answer(engine, Plan(), request)
    for record in engine.log:
        text = "".join(m.text for m in record.request.messages)
        assert text.count("lowers blood pressure") == 1
        assert not record.request.documents


@pytest.mark.parametrize("text", ["{} {0} {n}", "100% of $1", "#### h", "@plan\n1|a\n@end"])
def test_no_question_is_a_template(text: str) -> None:
    engine = make(THREE)
    _, response = answer(engine, Plan("skeleton"), Request.of(f"{text} {LIST}"))
    assert all(f"{text} {LIST}" in r.request.messages[0].text for r in engine.log)
    assert "Text of part 3." in response.text


def test_an_open_code_fence_is_closed_before_the_next_part() -> None:
    _, response = answer(make(THREE, {2: "```python\nprint(1)"}), Plan())
    assert "2. **Mood**:\n\n```python\nprint(1)\n```\n\n3. **Sleep**:" in response.text


@pytest.mark.parametrize(
    "options", [{"strategy": "tree"}, {"max_nodes": 1}, {"max_nodes": 100}, {"width": 0}]
)
def test_senseless_options_are_refused(options: dict[str, Any]) -> None:
    make_stage: Callable[..., Plan] = Plan
    with pytest.raises(InvalidRequest):
        make_stage(**options)
