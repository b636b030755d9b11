"""When the parts of an answer are written and sent, and how all of it ends."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from itertools import pairwise
from typing import Any

import pytest
from engine import Cost, Reply, SimulatedEngine, calls_of, handler, planned, run_virtual
from engine.planning import LIST, answer, row

from headrace.middleware.dispatcher import Dispatcher
from headrace.middleware.errors import DeadlineExceeded
from headrace.middleware.plan import Plan
from headrace.middleware.types import (
    Request,
    TextDelta,
)

THREE = "1. Heart\n2. Mood\n3. Sleep\n"
GRAPH = "@plan\n1|Alpha|~6\n2|Beta|~6\n3|Gamma|<1|~6\n@end\n"


def make(plan: Reply | str, nodes: Any = None, **options: Any) -> SimulatedEngine:
    return SimulatedEngine(planned(plan, nodes), **options)


def words(n: int, word: str = "w") -> str:
    return " ".join(f"{word}{i}" for i in range(n)) + "."


def test_parts_start_while_the_plan_still_arrives() -> None:
    plan = "@plan\n1|Alpha\n2|Beta\n3|Gamma\n4|Delta\n@end " + words(100)
    engine = make(plan)
    answer(engine, Plan("graph"))
    [planner] = calls_of(engine, None)
    [first] = calls_of(engine, 1)
    assert first.started is not None
    assert planner.ended is not None
    assert first.started < 0.1 < planner.ended


def test_a_ready_part_does_not_wait_for_the_next_line_of_the_plan() -> None:
    """LLMCompiler waits for the planner's queue alone (its task ready at .05 s began at .63 s)."""
    engine = make("@plan\n1|Alpha\n2|Beta|<1\n" + "- " * 100 + "\n3|Gamma\n@end\n")
    answer(engine, Plan("graph"))
    [one], [two] = calls_of(engine, 1), calls_of(engine, 2)
    assert two.submitted == one.ended


def test_no_part_waits_for_a_level_of_the_graph() -> None:
    engine = make(GRAPH, {1: words(10), 2: words(100), 3: words(5)})
    answer(engine, Plan("graph"))
    [one], [two], [three] = (calls_of(engine, i) for i in (1, 2, 3))
    assert three.submitted == one.ended
    assert three.ended is not None
    assert two.ended is not None
    assert three.ended < two.ended


def test_nothing_is_sent_before_its_turn() -> None:
    engine = make(THREE, {1: words(100, "a"), 2: words(5, "b"), 3: words(5, "c")})
    pieces, _ = answer(engine, Plan())
    seen = "".join(pieces)
    assert seen.index("a99") < seen.index("b0") < seen.index("c0")


def test_the_head_of_the_line_streams_while_others_wait() -> None:
    engine = make(THREE, {1: words(150), 2: "Short.", 3: "Short."})

    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        stream = Plan()(Request.of(LIST), handler(engine))
        return [loop.time() async for event in stream if isinstance(event, TextDelta)]

    times = run_virtual(main())
    gaps = [after - before for before, after in pairwise(times)]
    assert len(times) > 130
    assert max(gaps) < 0.05


@pytest.mark.parametrize("width", [1, 2, 5])
def test_no_more_parts_run_at_a_time_than_allowed(width: int) -> None:
    plan = "\n".join(f"{i}. Point{i}" for i in range(1, 31))
    engine = make(plan)
    answer(engine, Plan(max_nodes=30, width=width))
    spans = [(r.submitted, r.ended or 0.0) for i in range(1, 31) for r in calls_of(engine, i)]
    for start, _ in spans:
        assert sum(a <= start < b for a, b in spans) <= width


def test_many_answers_together_keep_the_engines_limit() -> None:
    plan = "\n".join(f"{i}. Point{i}" for i in range(1, 31))
    engine = make(plan, max_concurrency=8)
    stage = Plan(max_nodes=30, width=30)

    async def one(dispatcher: Dispatcher) -> str:
        stream = stage(Request.of(LIST), dispatcher)
        return "".join([event.text async for event in stream if isinstance(event, TextDelta)])

    async def main() -> list[str]:
        dispatcher = Dispatcher(engine)
        return await asyncio.gather(*(one(dispatcher) for _ in range(3)))

    assert len(set(run_virtual(main()))) == 1
    assert engine.peak_calls <= 8
    assert len(engine.log) == 3 * 31


def test_closing_the_stream_cancels_every_call() -> None:
    engine = make(THREE, {i: words(500) for i in (1, 2, 3)})

    async def main() -> float:
        async with aclosing(Plan()(Request.of(LIST), handler(engine))) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    break
        return asyncio.get_running_loop().time()

    closed = run_virtual(main())
    assert {r.outcome for i in (1, 2, 3) for r in calls_of(engine, i)} == {"cancelled"}
    assert all((r.ended or 1e9) <= closed for r in engine.log)
    assert answer(engine, Plan())[1].text.startswith("1. **Heart**")


def test_cancelling_the_reader_cancels_every_call() -> None:
    engine = make(THREE, {i: Reply("a b", after=1) for i in (1, 2, 3)})

    async def read() -> None:
        async with aclosing(Plan()(Request.of(LIST), handler(engine))) as events:
            async for _ in events:
                pass

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(read(), 5)

    run_virtual(main())
    assert {r.outcome for i in (1, 2, 3) for r in calls_of(engine, i)} == {"cancelled"}


def test_a_deadline_that_passes_ends_the_answer() -> None:
    engine = make(Reply(THREE, delay=2))
    with pytest.raises(DeadlineExceeded, match="1 s passed"):
        answer(engine, Plan(), Request.of(LIST, deadline=1.0))


def test_each_call_gets_what_is_left_of_the_deadline() -> None:
    engine = make(Reply(THREE, delay=2))
    answer(engine, Plan(), Request.of(LIST, deadline=10.0))
    [part] = calls_of(engine, 1)
    assert part.request.deadline == pytest.approx(10 - part.submitted)


def test_two_answers_at_once_do_not_mix() -> None:
    def reply(request: Request) -> str:
        name = "cyan" if "cyan" in request.messages[0].text else "blue"
        last = request.messages[-1].text
        return f"1. {name}A\n2. {name}B" if "Do not answer" in last else f"Only {name}."

    engine = SimulatedEngine(reply)

    async def one(question: str) -> str:
        stream = Plan("skeleton")(Request.of(question), handler(engine))
        return "".join([e.text async for e in stream if isinstance(e, TextDelta)])

    async def main() -> tuple[str, str]:
        return await asyncio.gather(one("cyan?"), one("blue?"))

    cyan, blue = run_virtual(main())
    assert cyan == "1. **cyanA**: Only cyan.\n\n2. **cyanB**: Only cyan."
    assert blue == cyan.replace("cyan", "blue")


def test_planning_pays_on_a_batching_engine() -> None:
    sections = {i: words(80) for i in range(1, 6)}
    plan = "".join(f"{i}. Point {i}\n" for i in range(1, 6))
    cost = Cost(step=0.010, row=0.0002)
    engine = make(plan, sections, cost=cost)
    _, planned_response = answer(engine, Plan())
    plain = SimulatedEngine(lambda request: words(400), cost=cost)
    answer(plain, Plan("off"))
    assert (plain.log[0].ended or 0) / row(planned_response).seconds > 2.5
