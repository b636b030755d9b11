"""Engines that fail: breaker, cool-down, fallbacks; all on a virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
from engine import Cost, Reply, SimulatedEngine, collect, outcome, run_virtual

from headrace import (
    BackendError,
    Constraint,
    DeadlineExceeded,
    Dispatcher,
    InvalidRequest,
    ModelUnavailable,
    Overloaded,
    Request,
    Response,
    TextDelta,
    UnsupportedConstraint,
)
from headrace.backends.base import Capabilities
from headrace.middleware.breaker import Breaker
from headrace.middleware.errors import HeadraceError


def down(error: HeadraceError | None = None) -> SimulatedEngine:
    failure = error or BackendError("503", retryable=True)
    return SimulatedEngine(lambda request: Reply("x", after=0, error=failure))


def up(text: str = "fine") -> SimulatedEngine:
    return SimulatedEngine(lambda request: Reply(text))


def test_a_dead_engine_is_left_alone_and_found_again() -> None:
    is_up = False
    down_error = BackendError("500", retryable=True)
    engine = SimulatedEngine(
        lambda r: Reply("fine") if is_up else Reply("x", after=0, error=down_error)
    )

    async def main() -> list[str]:
        nonlocal is_up
        dispatcher = Dispatcher(engine, retries=0, breaker=Breaker(failures=3, seconds=10))
        for _ in range(3):
            await outcome(dispatcher, Request.of("x"))
        with pytest.raises(BackendError, match=r"3 requests in a row .* in 10.0 s") as refused:
            await collect(dispatcher(Request.of("x")))
        assert refused.value.retryable
        assert refused.value.retry_after == pytest.approx(10)
        assert len(engine.log) == 3
        await asyncio.sleep(10)
        is_up = True
        probes = await asyncio.gather(*(outcome(dispatcher, Request.of("x")) for _ in range(3)))
        return [*probes, await outcome(dispatcher, Request.of("x"))]

    assert run_virtual(main()) == ["fine", "BackendError", "BackendError", "fine"]
    assert len(engine.log) == 5  # three failures, the probe, the last


def test_a_probe_that_is_cancelled_lets_another_try() -> None:
    replies = [Reply("x", after=0, error=BackendError("500", retryable=True))]
    replies += [Reply("x", after=0), Reply("fine")]
    engine = SimulatedEngine(lambda r: replies.pop(0))

    async def main() -> str:
        dispatcher = Dispatcher(engine, retries=0, breaker=Breaker(failures=1, seconds=1))
        await outcome(dispatcher, Request.of("x"))
        await asyncio.sleep(1)
        probe = asyncio.create_task(outcome(dispatcher, Request.of("x")))
        await asyncio.sleep(0.1)
        probe.cancel()
        await asyncio.gather(probe, return_exceptions=True)
        return await outcome(dispatcher, Request.of("x"))

    assert run_virtual(main()) == "fine"


@pytest.mark.parametrize(
    "error", [InvalidRequest("400"), BackendError("401"), Overloaded("429", retry_after=0.0)]
)
def test_a_refusal_is_no_sign_of_a_dead_engine(error: HeadraceError) -> None:
    engine = down(error)

    async def main() -> None:
        dispatcher = Dispatcher(engine, retries=0, breaker=Breaker(failures=2))
        for _ in range(6):
            await outcome(dispatcher, Request.of("x"))

    run_virtual(main())
    assert len(engine.log) == 6


def test_streams_that_are_cut_open_the_circuit_too() -> None:
    cut = Reply("a b c", after=1, error=BackendError("reset", retryable=True))
    engine = SimulatedEngine(lambda r: cut)

    async def main() -> None:
        dispatcher = Dispatcher(engine, breaker=Breaker(failures=2))
        for _ in range(4):
            await outcome(dispatcher, Request.of("x"))

    run_virtual(main())
    assert len(engine.log) == 2


def test_who_waits_is_told_when_the_circuit_opens() -> None:
    failing = Reply("x", delay=1.0, after=0, error=BackendError("500", retryable=True))
    engine = SimulatedEngine(lambda r: failing, max_concurrency=1)

    async def main() -> float:
        dispatcher = Dispatcher(engine, retries=0, breaker=Breaker(failures=2))
        told = await asyncio.gather(*(outcome(dispatcher, Request.of("x")) for _ in range(20)))
        assert told == ["BackendError"] * 20
        return asyncio.get_running_loop().time()

    assert run_virtual(main()) < 3
    assert len(engine.log) <= 3


def test_without_a_breaker_every_request_is_tried() -> None:
    engine = down()

    async def main() -> None:
        dispatcher = Dispatcher(engine, retries=0, breaker=None)
        for _ in range(9):
            await outcome(dispatcher, Request.of("x"))

    run_virtual(main())
    assert len(engine.log) == 9


def test_after_429_nobody_is_sent_before_its_time() -> None:
    num_refused = 2
    engine: SimulatedEngine = SimulatedEngine(
        lambda r: (
            Reply("x", after=0, error=Overloaded("429", retry_after=5.0))
            if len(engine.log) < num_refused
            else Reply("fine")
        )
    )

    async def main() -> list[str]:
        dispatcher = Dispatcher(engine)
        early = [asyncio.create_task(outcome(dispatcher, Request.of("x"))) for _ in range(2)]
        await asyncio.sleep(1)
        later = [asyncio.create_task(outcome(dispatcher, Request.of("y"))) for _ in range(5)]
        return await asyncio.gather(*early, *later)

    assert run_virtual(main()) == ["fine"] * 7
    sent = [record.submitted for record in engine.log]
    assert all(at < 0.1 for at in sent[:2])
    assert all(at >= 5 for at in sent[2:])
    assert len(sent) == 9  # nobody twice but the two that were refused


@pytest.mark.parametrize("is_continuous", [False, True])
def test_who_waits_behind_a_429_is_not_sent_in_the_same_moment(is_continuous: bool) -> None:
    class One(SimulatedEngine):  # type: ignore[misc]
        async def capabilities(self) -> Capabilities:
            found = await super().capabilities()
            return replace(found, max_batch=1, max_concurrency=1, is_continuous=is_continuous)

    refusal = Reply(
        "x", delay=0.1, after=0, error=BackendError("503", retryable=True, retry_after=5)
    )
    engine: One = One(lambda r: refusal if len(engine.log) < 1 else Reply("fine"))

    async def main() -> list[str]:
        dispatcher = Dispatcher(engine)
        return await asyncio.gather(*(outcome(dispatcher, Request.of("x")) for _ in range(4)))

    assert run_virtual(main()) == ["fine"] * 4
    assert [record.submitted >= 5 for record in engine.log] == [False, True, True, True, True]


def test_a_wait_past_the_deadline_is_not_started() -> None:
    engine = down(Overloaded("429", retry_after=5.0))

    async def main() -> float:
        dispatcher = Dispatcher(engine)
        with pytest.raises(DeadlineExceeded, match=r"5\.0 s"):
            await collect(dispatcher(Request.of("x", deadline=2.0)))
        return asyncio.get_running_loop().time()

    assert run_virtual(main()) < 0.5


def test_an_engine_that_asks_for_an_hour_is_told_on_to_all() -> None:
    engine = SimulatedEngine(
        lambda r: Reply("x", delay=0.1, after=0, error=Overloaded("429", retry_after=3600.0)),
        max_concurrency=1,
    )

    async def main() -> list[float | None]:
        dispatcher = Dispatcher(engine)

        async def hint() -> float | None:
            with pytest.raises(Overloaded) as refused:
                await collect(dispatcher(Request.of("x")))
            return refused.value.retry_after

        first = await asyncio.gather(hint(), hint())
        return [*first, await hint()]

    assert run_virtual(main()) == [3600, 3600, pytest.approx(3600, abs=1)]
    assert len(engine.log) == 1


def test_the_next_engine_answers_and_the_report_says_why() -> None:
    first, second = down(), up()

    async def main() -> Response:
        return await collect(Dispatcher([first, second])(Request.of("x")))

    response = run_virtual(main())
    assert response.text == "fine"
    row = response.report.stages[-1]
    assert row.details["failed"] == ["503"]
    assert "after 1 that failed" in row.decision
    assert (len(first.log), len(second.log)) == (3, 1)


@pytest.mark.parametrize(
    "error",
    [BackendError("401"), ModelUnavailable("gone"), UnsupportedConstraint("no")],
    ids=["401", "model", "constraint"],
)
def test_what_one_engine_cannot_do_the_next_one_may(error: HeadraceError) -> None:
    first = down(error)
    assert run_virtual(outcome(Dispatcher([first, up()]), Request.of("x"))) == "fine"
    assert len(first.log) == 1


def test_an_overloaded_engine_is_not_waited_for_while_there_is_another() -> None:
    first = down(Overloaded("429", retry_after=30.0))

    async def main() -> float:
        dispatcher = Dispatcher([first, up()])
        for _ in range(3):
            assert await outcome(dispatcher, Request.of("x")) == "fine"
        return asyncio.get_running_loop().time()

    assert run_virtual(main()) < 1
    assert len(first.log) == 1


def test_a_full_queue_spills_over() -> None:
    first = SimulatedEngine(lambda r: Reply("first", delay=1), max_concurrency=1)
    dispatcher = Dispatcher([first, up("second")], max_queue=1)

    async def main() -> list[str]:
        return await asyncio.gather(*(outcome(dispatcher, Request.of("x")) for _ in range(5)))

    assert sorted(run_virtual(main())) == ["first"] * 2 + ["second"] * 3


def test_a_dead_engine_costs_nothing_once_it_is_left_alone() -> None:
    first = down()

    async def main() -> float:
        dispatcher = Dispatcher([first, up()], breaker=Breaker(failures=2, seconds=100))
        for _ in range(2):
            await outcome(dispatcher, Request.of("x"))
        started = asyncio.get_running_loop().time()
        for _ in range(10):
            assert await outcome(dispatcher, Request.of("x")) == "fine"
        return asyncio.get_running_loop().time() - started

    assert run_virtual(main()) < 0.5
    assert len(first.log) == 6


def test_an_engine_that_cannot_be_reached_is_passed_over() -> None:
    class Gone(SimulatedEngine):  # type: ignore[misc]
        async def capabilities(self) -> Capabilities:
            raise BackendError("cannot reach it", retryable=True)

    assert run_virtual(outcome(Dispatcher([Gone(lambda r: "x"), up()]), Request.of("x"))) == "fine"


def test_no_engine_takes_over_in_the_middle_of_an_answer() -> None:
    cut = Reply("one two three", after=2, error=BackendError("reset", retryable=True))
    first, second = SimulatedEngine(lambda r: cut), up()

    async def main() -> str:
        text = ""

        async def read() -> None:
            nonlocal text
            async for event in Dispatcher([first, second])(Request.of("x")):
                assert isinstance(event, TextDelta)
                text += event.text

        with pytest.raises(BackendError, match="reset"):
            await read()
        return text

    assert run_virtual(main()) == "one two"
    assert second.log == []


@pytest.mark.parametrize(
    "error", [InvalidRequest("bad"), DeadlineExceeded("late")], ids=["invalid", "late"]
)
def test_what_is_the_callers_own_stays_with_the_caller(error: HeadraceError) -> None:
    second = up()
    told = run_virtual(outcome(Dispatcher([down(error), second]), Request.of("x")))
    assert told == type(error).__name__
    assert second.log == []


def test_when_none_answers_all_reasons_are_said() -> None:
    engines = [down(Overloaded("busy", retry_after=9.0)), down(BackendError("401"))]

    async def main() -> None:
        with pytest.raises(BackendError, match="none of 2 engines answered: busy; 401") as failed:
            await collect(Dispatcher(engines)(Request.of("x")))
        assert failed.value.retryable
        assert failed.value.retry_after == 9

    run_virtual(main())


def test_a_lone_engines_error_is_its_own() -> None:
    request = Request.of("x", constraint=Constraint("regex", "a"))
    assert run_virtual(outcome(Dispatcher([up()]), request)) == "UnsupportedConstraint"


@pytest.mark.parametrize(
    "make",
    [
        lambda: Dispatcher([]),
        lambda: Dispatcher(up(), max_queue=0),
        lambda: Dispatcher(up(), retries=-1),
        lambda: Dispatcher(up(), window=-1),
    ],
)
def test_options_that_make_no_sense_are_refused(make: Callable[[], Dispatcher]) -> None:
    with pytest.raises(InvalidRequest):
        make()


def test_nothing_is_lost_or_doubled_when_engines_fail_at_random() -> None:
    import random

    rng = random.Random(7)

    def reply(request: Request) -> Reply:
        kind = rng.random()
        if kind < 0.1:
            return Reply("x", after=0, error=BackendError("500", retryable=True))
        if kind < 0.2:
            return Reply("x", after=0, error=Overloaded("429", retry_after=rng.random()))
        return Reply(f"{request.question} and {request.question}", delay=rng.random())

    engines = [SimulatedEngine(reply, cost=Cost(step=0.01), max_concurrency=8) for _ in range(2)]

    async def main() -> list[str]:
        dispatcher = Dispatcher(engines, retries=6)
        return await asyncio.gather(*(outcome(dispatcher, Request.of(f"q{i}")) for i in range(300)))

    assert run_virtual(main(), limit=3000) == [f"q{i} and q{i}" for i in range(300)]
    finished = [r.request.question for e in engines for r in e.log if r.outcome == "finished"]
    assert sorted(finished) == sorted(f"q{i}" for i in range(300))
