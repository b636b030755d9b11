"""Identical requests at the same time share one answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from engine import Cost, Reply, SimulatedEngine, collect, outcome, run_virtual

from headrace import (
    BackendError,
    Constraint,
    DeadlineExceeded,
    Dispatcher,
    Document,
    Finished,
    Message,
    Request,
    Response,
    Sampling,
    TextDelta,
)
from headrace.middleware.identity import identity
from headrace.middleware.report import Report, StageReport
from headrace.middleware.types import Opaque

GREEDY = Sampling(temperature=0)


def slow(text: str = "a b c d e") -> SimulatedEngine:
    return SimulatedEngine(lambda request: Reply(text), cost=Cost(step=1.0))


def same(**fields: Any) -> Request:
    return Request.of("What is a weir?", **{"sampling": GREEDY, **fields})


def test_ten_at_the_same_time_are_one_call_and_ten_answers() -> None:
    engine = slow()

    async def main() -> list[Response]:
        dispatcher = Dispatcher(engine)
        earlier = Report((StageReport("compress", "kept all"),))
        requests = [same(report=earlier) for _ in range(10)]
        return await asyncio.gather(*(collect(dispatcher(request)) for request in requests))

    responses = run_virtual(main())
    assert len(engine.log) == 1
    assert [response.text for response in responses] == ["a b c d e"] * 10
    assert [[row.stage for row in r.report.stages] for r in responses] == [
        ["compress", "dispatch"]
    ] * 10
    assert sum(response.usage.num_calls for response in responses) == 1
    assert "shared with 9 identical requests" in responses[0].report.stages[-1].decision
    assert responses[9].report.stages[-1].details["coalesced"] == 10


def test_a_latecomer_gets_the_beginning_at_once_and_the_rest_as_it_comes() -> None:
    engine = slow()

    async def main() -> list[tuple[float, str]]:
        loop = asyncio.get_running_loop()
        dispatcher = Dispatcher(engine)
        leader = asyncio.create_task(collect(dispatcher(same())))
        await asyncio.sleep(2.5)
        events = [(loop.time(), e.text) async for e in dispatcher(same()) if hasattr(e, "text")]
        await leader
        return events

    events = run_virtual(main())
    assert [text for _, text in events] == ["a", " b", " c", " d", " e"]
    assert [round(at) for at, _ in events] == [2, 2, 3, 4, 5]
    assert len(engine.log) == 1


def test_after_the_end_it_is_asked_again() -> None:
    engine = slow()

    async def main() -> None:
        dispatcher = Dispatcher(engine)
        for _ in range(2):
            response = await collect(dispatcher(same()))
            assert "coalesced" not in response.report.stages[-1].details

    run_virtual(main())
    assert len(engine.log) == 2


@pytest.mark.parametrize("who", [0, 1], ids=["the first", "the second"])
def test_who_gives_up_disturbs_nobody(who: int) -> None:
    engine = slow()

    async def main() -> str:
        dispatcher = Dispatcher(engine)
        tasks = [asyncio.create_task(collect(dispatcher(same()))) for _ in range(2)]
        await asyncio.sleep(2.5)
        tasks[who].cancel()
        response = await tasks[1 - who]
        assert response.usage.num_calls == 1
        return response.text

    assert run_virtual(main()) == "a b c d e"
    assert [record.outcome for record in engine.log] == ["finished"]


def test_when_all_give_up_the_engine_is_told_and_the_next_one_starts_anew() -> None:
    engine = slow()

    async def main() -> str:
        dispatcher = Dispatcher(engine)
        tasks = [asyncio.create_task(collect(dispatcher(same()))) for _ in range(3)]
        await asyncio.sleep(2.5)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return await outcome(dispatcher, same())

    assert run_virtual(main()) == "a b c d e"
    assert [record.outcome for record in engine.log] == ["cancelled", "finished"]


def test_each_has_its_own_deadline() -> None:
    engine = slow()

    async def main() -> str:
        dispatcher = Dispatcher(engine)
        short = asyncio.create_task(collect(dispatcher(same(deadline=2.0))))
        long = asyncio.create_task(collect(dispatcher(same(deadline=50.0))))
        with pytest.raises(DeadlineExceeded, match="2 s"):
            await short
        return (await long).text

    assert run_virtual(main()) == "a b c d e"


def test_a_failure_is_told_to_all_and_forgotten() -> None:
    answers = [Reply("x", after=0, error=BackendError("boom")), Reply("fine")]
    engine = SimulatedEngine(lambda request: answers.pop(0))

    async def main() -> list[str]:
        dispatcher = Dispatcher(engine)
        told = await asyncio.gather(*(outcome(dispatcher, same()) for _ in range(3)))
        return [*told, await outcome(dispatcher, same())]

    assert run_virtual(main()) == ["BackendError"] * 3 + ["fine"]


def test_closing_ends_them_all() -> None:
    engine = SimulatedEngine(lambda request: Reply("x", after=0))

    async def main() -> list[str]:
        dispatcher = Dispatcher(engine)
        tasks = [asyncio.create_task(outcome(dispatcher, same())) for _ in range(3)]
        await asyncio.sleep(0.1)
        await dispatcher.close()
        return await asyncio.gather(*tasks)

    assert run_virtual(main()) == ["BackendError"] * 3


def test_interactive_does_not_wait_behind_bulk() -> None:
    engine = slow()

    async def main() -> None:
        dispatcher = Dispatcher(engine)
        bulk = same(tags={"priority": "bulk"})
        await asyncio.gather(*(collect(dispatcher(request)) for request in (bulk, same())))

    run_virtual(main())
    assert len(engine.log) == 2


OTHERS = {
    "no temperature": same(sampling=Sampling()),
    "a temperature": same(sampling=Sampling(temperature=0.7)),
    "tools": same(sampling=Sampling(temperature=0, extra={"tools": [{"name": "pay"}]})),
    "several": same(sampling=Sampling(temperature=0, extra={"n": 2})),
    "no JSON": same(sampling=Sampling(temperature=0, extra={"x": object()})),
}


@pytest.mark.parametrize("request_", OTHERS.values(), ids=list(OTHERS))
def test_what_may_be_answered_differently_is_never_shared(request_: Request) -> None:
    engine = slow()

    async def main() -> None:
        dispatcher = Dispatcher(engine)
        await asyncio.gather(*(collect(dispatcher(request_)) for _ in range(3)))

    assert identity(request_) is None
    run_virtual(main())
    assert len(engine.log) == 3


DIFFERENT = [
    same(),
    same(sampling=Sampling(temperature=0, max_tokens=5)),
    same(sampling=Sampling(temperature=0, stop=("x",))),
    same(sampling=Sampling(seed=1)),
    same(sampling=Sampling(seed=1, temperature=0.5)),
    same(sampling=Sampling(seed=2)),
    same(sampling=Sampling(temperature=0, extra={"top_k": 3})),
    same(constraint=Constraint("regex", "a+")),
    same(constraint=Constraint("choice", ("a", "b"))),
    same(tags={"tenant": "a"}),
    same(documents=(Document("A weir is a dam."),)),
    Request.of("what is a weir?", sampling=GREEDY),
    Request((Message.system("Be brief."), Message.user("What is a weir?")), sampling=GREEDY),
    Request((Message("user", (Opaque({"type": "image_url"}),)),), sampling=GREEDY),
]


def test_whatever_changes_the_answer_changes_the_key() -> None:
    keys = [identity(request) for request in DIFFERENT]
    assert None not in keys
    assert len(set(keys)) == len(DIFFERENT)


def test_what_changes_no_answer_changes_no_key() -> None:
    report = Report((StageReport("x", "y"),))
    others = [same(deadline=3.0), same(report=report), same(tags={"priority": "bulk"})]
    assert {identity(request) for request in others} == {identity(same())}


def test_it_can_be_turned_off() -> None:
    engine = slow()

    async def main() -> list[Any]:
        dispatcher = Dispatcher(engine, coalesce=False)
        await asyncio.gather(*(collect(dispatcher(same())) for _ in range(3)))
        return [event async for event in dispatcher(same())]

    events = run_virtual(main())
    assert isinstance(events[0], TextDelta)
    assert isinstance(events[-1], Finished)
    assert len(engine.log) == 4
