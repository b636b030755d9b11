"""When a plan's parts are written at the same time, and what happens otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from engine import PLAIN, Cost, Reply, SimulatedEngine, calls_of, handler, planned, run_virtual

from headrace.middleware.cost import Predictor, Roofline, hardware, shape_of
from headrace.middleware.errors import BackendError, InvalidRequest
from headrace.middleware.plan import Plan
from headrace.middleware.types import Event, Finished, Request, Response, TextDelta
from headrace.planners.prospect import AGAIN
from headrace.planners.speed import StepCost

LIST = "What are the benefits of regular exercise?"
THREE = "1. Heart\n2. Mood\n3. Sleep\n"
CHAIN = "@plan\n1|Alpha|~8\n2|Beta|<1|~8\n3|Gamma|<2|~8\n4|Delta|<3|~8\n@end\n"
LONG = "@plan\n" + "".join(
    f"{i}|Part number {i} has a title of many words|~8\n" for i in range(1, 5)
)
FLAT = "@plan\n1|Alpha|~8\n2|Beta|~8\n3|Gamma|~8\n4|Delta|~8\n@end\n"


def words(n: int, word: str = "w") -> str:
    return " ".join(f"{word}{i}" for i in range(n)) + "."


def answer(
    engine: SimulatedEngine, stage: Plan, question: str = LIST
) -> tuple[list[tuple[float, str]], Response]:
    """Return the pieces with their times, and the response."""

    async def main() -> tuple[list[tuple[float, str]], Response]:
        loop = asyncio.get_running_loop()
        pieces: list[tuple[float, str]] = []
        async for event in stage(Request.of(question), handler(engine)):
            if isinstance(event, TextDelta):
                pieces.append((loop.time(), event.text))
            elif isinstance(event, Finished):
                return pieces, event.response
        raise AssertionError("no Finished")

    pieces, response = run_virtual(main())
    assert "".join(text for _, text in pieces) == response.text
    return pieces, response


def details(response: Response) -> dict[str, Any]:
    row = response.report.stage("plan")
    assert row is not None
    return dict(row.details)


def decision(response: Response) -> str:
    row = response.report.stage("plan")
    assert row is not None
    return row.decision


def test_a_chain_is_written_by_one_call_that_keeps_the_plan() -> None:
    rest = "2. **Beta**: b.\n\n3. **Gamma**: c.\n\n4. **Delta**: d."
    engine = SimulatedEngine(planned(CHAIN, {1: words(40, "a")}, plain=rest))
    _, response = answer(engine, Plan("graph"))
    planner, first, one = engine.log
    assert response.text == f"1. **Alpha**: {words(40, 'a')}\n\n{rest}"
    assert one.request.messages[:1] == first.request.messages[:1] == planner.request.messages
    assert one.request.messages[1].text == CHAIN.strip()
    assert words(40, "a") in one.request.messages[-1].text
    assert details(response)["decision"] == "one call"
    assert "chain" in details(response)["decision_why"]
    assert details(response)["missing"] == []
    assert response.finish_reason == "stop"


def test_always_divides_a_chain_too() -> None:
    engine = SimulatedEngine(planned(CHAIN))
    _, response = answer(engine, Plan("graph", when="always"))
    assert len(engine.log) == 1 + 4
    assert details(response)["decision"] == "parallel"


def test_the_head_of_a_chain_is_read_while_the_plan_still_arrives() -> None:
    engine = SimulatedEngine(planned(CHAIN + words(60), {1: words(40, "a")}))
    pieces, _ = answer(engine, Plan("graph"))
    planner = engine.log[0]
    assert planner.ended is not None
    assert pieces[0][0] < planner.ended / 2


def test_what_pays_is_known_before_the_plan_has_ended() -> None:
    engine = SimulatedEngine(planned(FLAT + words(60), {i: words(80, f"n{i}x") for i in range(9)}))
    _, response = answer(engine, Plan("graph"))
    planner, *parts = engine.log
    assert planner.ended is not None
    assert sum(part.submitted < planner.ended for part in parts) == 4
    assert details(response)["decision"] == "parallel"


def test_an_engine_without_a_batch_is_known_after_one_answer() -> None:
    """Before anything was observed a batch is expected to be nearly free (docs: the prior)."""
    texts = {i: words(80, f"n{i}x") for i in range(1, 5)}
    stage = Plan("graph")
    cost = Cost(step=0.001, row=0.030)
    first = SimulatedEngine(planned(LONG, texts), cost=cost)
    assert details(answer(first, stage)[1])["decision"] == "parallel"
    second = SimulatedEngine(planned(LONG, texts), cost=cost)
    _, response = answer(second, stage)
    assert len(second.log) == 1
    assert decision(response).startswith("no plan: a gain of ")
    assert decision(response).endswith("is expected after one plan, less than 1.15")


def test_costs_that_were_given_decide_the_first_answer() -> None:
    engine = SimulatedEngine(planned(FLAT))
    stage = Plan("graph", cost=StepCost(step=0.001, row=0.030))
    assert "is expected, less than 1.15" in decision(answer(engine, stage)[1])
    assert len(engine.log) == 1


def test_plans_of_no_use_are_given_up() -> None:
    stage, calls = Plan("skeleton"), []
    for _ in range(8):
        engine = SimulatedEngine(planned(words(150), plain=words(100)))
        _, response = answer(engine, stage)
        assert response.text == words(100)
        calls.append(len(engine.log))
    assert calls == sorted(calls, reverse=True)
    assert (calls[0], calls[4]) == (2, 1)
    assert decision(response).startswith("no plan: a gain of ")


def test_a_plan_as_long_as_its_answer_is_not_asked_for_twice() -> None:
    stage = Plan("graph")
    texts = {i: words(4, f"n{i}x") for i in range(1, 5)}
    found = [decision(answer(SimulatedEngine(planned(LONG, texts)), stage)[1]) for _ in range(4)]
    assert [one.startswith("wrote") for one in found] == [True, True, False, False]
    assert "after 2 plans, less than 1.15" in found[2]


def test_now_and_then_a_plan_is_made_all_the_same() -> None:
    stage = Plan("graph", cost=StepCost(step=0.001, row=0.030))
    calls = []
    for _ in range(AGAIN):
        engine = SimulatedEngine(planned("Sure!"), cost=Cost(step=0.001, row=0.030))
        answer(engine, stage)
        calls.append(len(engine.log))
    assert calls == [1] * (AGAIN - 1) + [2]


@pytest.mark.parametrize("strategy", ["skeleton", "graph"])
def test_an_engine_that_began_to_batch_is_found_by_a_trial(strategy: Any) -> None:
    """One row takes as long as before, so that plain answers cannot tell."""
    texts = {i: words(60, f"n{i}x") for i in range(1, 5)}
    titles = "".join(f"{i}. Part number {i} has a title of many words\n" for i in range(1, 5))
    plan = LONG if strategy == "graph" else titles
    stage, found = Plan(strategy), []
    for at in range(AGAIN + 6):
        cost = Cost(step=0.0, row=0.03) if at < 2 else Cost(step=0.03, row=0.0)
        engine = SimulatedEngine(planned(plan, texts, plain=words(100)), cost=cost)
        found.append(answer(engine, stage)[1])
    said = [decision(one) for one in found]
    [trial] = [one for one in found if details(one).get("trial")]
    assert decision(trial).endswith("at the same time, as a trial")
    assert details(trial)["decision_why"].startswith("a trial, though a gain of ")
    assert all(one.startswith("no plan: a gain") for one in said[2 : found.index(trial)])
    assert all(one.endswith("at the same time") for one in said[found.index(trial) + 1 :])
    assert found.index(trial) < len(found) - 2


def test_an_outline_asked_for_by_name_is_always_divided() -> None:
    slow = StepCost(step=0.001, row=0.030)
    titles = ("Costs", "Noise", "Lifetime")
    named = SimulatedEngine(lambda request: words(20), cost=Cost(step=0.001, row=0.030))
    _, response = answer(named, Plan("template", outline=titles, cost=slow))
    assert len(named.log) == 3
    assert details(response)["decision"] == "parallel"
    for title in titles:
        assert f"**{title}**:" in response.text


def test_always_asks_for_a_plan_whatever_is_expected() -> None:
    stage = Plan("graph", when="always", cost=StepCost(step=0.001, row=0.030))
    engine = SimulatedEngine(planned(FLAT))
    answer(engine, stage)
    assert len(engine.log) == 1 + 4


def test_a_roofline_gives_the_costs() -> None:
    llama = Predictor(Roofline(shape_of("llama-3.1-8b"), hardware("A100")))
    known = Plan(cost=llama).known.cost
    grows = known.seconds(32, 32 * 600) / known.seconds(1, 600)
    assert 1.05 < grows < 1.3  # design note 4.1: 1.15
    assert known.prefill < known.step


def test_predicted_and_actual_times_agree_once_the_engine_is_known() -> None:
    cost = Cost(step=0.020, row=0.001, prefill=0.0002)
    stage = Plan("graph")
    for _ in range(8):
        texts = {i: words(70, f"n{i}x") for i in range(1, 5)}
        found = details(answer(SimulatedEngine(planned(LONG, texts), cost=cost), stage)[1])
    assert found["predicted_seconds"] == pytest.approx(found["actual_seconds"], rel=0.25)
    plain = SimulatedEngine(lambda request: words(4 * 70), cost=cost)
    answer(plain, Plan("off"))
    assert found["sequential_seconds"] == pytest.approx(plain.log[0].ended, rel=0.05)
    assert found["speedup"] == pytest.approx(
        (plain.log[0].ended or 0) / found["actual_seconds"], rel=0.05
    )


def test_lengths_are_learnt() -> None:
    stage = Plan("skeleton")
    texts = {i: words(30, f"n{i}x") for i in range(1, 4)}
    limits = []
    for _ in range(10):
        engine = SimulatedEngine(planned(THREE, texts))
        answer(engine, stage)
        limits.append(calls_of(engine, 1)[0].request.sampling.max_tokens)
    assert limits[0] == 188
    assert limits[1] >= 188  # the first surprise widens the room
    assert 70 < limits[-1] < 100  # 30 tokens, a quarter more, and 32


def test_the_race_gives_a_chain_the_plain_answer() -> None:
    text = words(200)
    engine = SimulatedEngine(planned(CHAIN, plain=text))
    _, response = answer(engine, Plan("graph", race=True))
    plain = SimulatedEngine(lambda request: text)
    answer(plain, Plan("off"))
    assert response.text == text
    assert details(response)["decision"] == "plain"
    assert engine.log[0].ended == pytest.approx(plain.log[0].ended)
    assert [record.outcome for record in engine.log] == ["finished", "finished", "cancelled"]


def test_the_race_costs_a_flat_plan_one_call_that_is_given_up() -> None:
    texts = {i: words(60, f"n{i}x") for i in range(1, 5)}
    engine = SimulatedEngine(planned(FLAT, texts, plain=words(300)))
    _, response = answer(engine, Plan("graph", race=True))
    assert "1. **Alpha**: n1x0" in response.text
    assert "w0" not in response.text
    outcomes = [record.outcome for record in engine.log]
    assert outcomes.count("cancelled") == 1
    assert outcomes.count("finished") == 5


def test_a_short_plain_answer_wins_the_race() -> None:
    engine = SimulatedEngine(planned(Reply(FLAT, delay=1)))
    _, response = answer(engine, Plan("graph", race=True))
    assert response.text == PLAIN
    assert {record.outcome for record in engine.log} == {"finished", "cancelled"}


@pytest.mark.parametrize(
    "plan", ["Sure!", Reply(FLAT, after=2, error=BackendError("down", retryable=True))]
)
def test_a_useless_plan_costs_nothing_in_a_race(plan: Reply | str) -> None:
    engine = SimulatedEngine(planned(plan, plain=words(50)))
    _, response = answer(engine, Plan("graph", race=True))
    assert response.text == words(50)
    assert len(engine.log) == 2


def test_a_rival_that_fails_leaves_the_plan() -> None:
    broken = Reply("a b", after=1, error=BackendError("gone"))
    engine = SimulatedEngine(planned(FLAT, plain=broken))
    _, response = answer(engine, Plan("graph", race=True))
    assert "4. **Delta**: Text of part 4." in response.text


def test_a_wrong_option_is_refused() -> None:
    kind: Any = "never"
    with pytest.raises(InvalidRequest, match="never"):
        Plan(when=kind)


def test_other_requests_narrow_an_answer() -> None:
    """TAPER: what a branch costs all others bounds the branches."""
    texts = {i: words(60, f"n{i}x") for i in range(1, 9)}
    eight = "@plan\n" + "".join(f"{i}|Title{i}|~6\n" for i in range(1, 9)) + "@end"
    engine = SimulatedEngine(planned(eight, texts, plain=words(2000)), slots=500)
    stage = Plan("graph", when="always", cost=StepCost(step=0.01, row=0.001))

    async def plain() -> None:
        async for _ in plain_events(stage, engine):
            pass

    async def main() -> int:
        others = [asyncio.create_task(plain()) for _ in range(40)]
        await asyncio.sleep(0.5)
        async for _ in stage(Request.of(LIST), handler(engine)):
            pass
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        return 0

    run_virtual(main())
    spans = [(r.submitted, r.ended or 0.0) for i in range(1, 9) for r in calls_of(engine, i)]
    assert len(spans) == 8
    assert max(sum(a <= start < b for a, b in spans) for start, _ in spans) == 1


def plain_events(stage: Plan, engine: SimulatedEngine) -> AsyncGenerator[Event, None]:
    """A plain request that the same engine answers beside the planned one."""
    return stage.known.watch(handler(engine))(Request.of("Who?"))


def test_the_first_part_is_begun_with_the_first_line_and_shown_with_the_second() -> None:
    plan = "@plan\n1|Alpha|~8\n" + "2|Beta " + "and more " * 50 + "\n3|Gamma\n@end"
    engine = SimulatedEngine(planned(plan, {1: words(80, "a")}))
    pieces, _ = answer(engine, Plan("graph"))
    [first] = calls_of(engine, 1)
    assert first.submitted < 0.05
    assert 0.9 < pieces[0][0] < 1.1


def test_a_plan_of_one_line_shows_nothing_of_its_part() -> None:
    engine = SimulatedEngine(planned("@plan\n1|Alpha|~8\n@end " + words(50), {1: words(40, "a")}))
    _, response = answer(engine, Plan("graph"))
    assert response.text == PLAIN
    assert [record.outcome for record in engine.log] == ["finished", "finished", "finished"]


def test_parts_that_ended_before_the_next_line_came_need_no_decision() -> None:
    slow = "".join(
        f"{i}|Title{i}{f'|<{i - 1}' if i > 1 else ''}|~1" + " pad" * 20 + "\n" for i in (1, 2, 3)
    )
    engine = SimulatedEngine(planned(f"@plan\n{slow}@end"))
    _, response = answer(engine, Plan("graph"))
    row = response.report.stage("plan")
    assert row is not None
    assert row.decision.startswith("wrote 3 parts")
    assert details(response)["missing"] == []
