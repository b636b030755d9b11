from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from engine import Cost, Reply, SimulatedEngine, Stuck, handler, run_virtual
from headrace.backends.base import Job
from headrace.middleware.errors import BackendError
from headrace.middleware.types import Event, Finished, Request, Sampling, TextDelta


def ask(engine: SimulatedEngine, *prompts: str) -> list[list[Event]]:
    async def one(prompt: str) -> list[Event]:
        return [event async for event in handler(engine)(Request.of(prompt))]

    async def main() -> list[list[Event]]:
        return await asyncio.gather(*(one(prompt) for prompt in prompts))

    answers: list[list[Event]] = run_virtual(main())
    return answers


def test_time_jumps_to_the_next_timer() -> None:
    async def main() -> float:
        await asyncio.sleep(300)
        return asyncio.get_running_loop().time()

    assert run_virtual(main()) == pytest.approx(300)


def test_a_deadlock_is_an_error() -> None:
    with pytest.raises(Stuck, match="no timer"):
        run_virtual(asyncio.Event().wait())


def test_polling_for_ever_is_an_error() -> None:
    async def poll() -> None:
        while True:  # noqa: ASYNC110
            await asyncio.sleep(1)

    ended: list[str] = []

    async def main() -> None:
        try:
            await poll()
        finally:
            ended.append("cancelled")

    with pytest.raises(Stuck, match="still running after 50"):
        run_virtual(main(), limit=50)
    assert ended == ["cancelled"]  # in its own loop, not by the collector


def test_a_reply_is_streamed_a_token_a_step() -> None:
    engine = SimulatedEngine(lambda request: "one  two\nthree ")
    [events] = ask(engine, "a b")
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "one  two\nthree "
    assert isinstance(events[-1], Finished)
    assert events[-1].response.usage.completion_tokens == 4
    assert engine.log[0].first_token == pytest.approx(0.01)
    assert engine.log[0].ended == pytest.approx(0.04)


def test_all_rows_share_each_step() -> None:
    engine = SimulatedEngine(lambda request: "x " * 10, cost=Cost(step=0.01, row=0.01))
    ask(engine, "a", "b", "c")
    assert engine.peak_rows == 3
    assert [r.ended for r in engine.log] == [pytest.approx(0.4 + 0.04)] * 3


def test_rows_beyond_the_slots_wait() -> None:
    engine = SimulatedEngine(lambda request: "x x", slots=2)
    ask(engine, "a", "b", "c")
    assert engine.peak_rows == 2
    assert engine.peak_calls == 3
    assert engine.log[2].started == pytest.approx(0.02)


def test_prefill_is_paid_once_for_a_shared_prefix() -> None:
    cost = Cost(step=0.0, prefill=1.0)
    engine = SimulatedEngine(lambda request: "x", cost=cost, prefix_cache=True)
    ask(engine, "a b c")
    [[*_, last]] = ask(engine, "a b c d e")
    assert isinstance(last, Finished)
    assert last.response.usage.cached_tokens == 4
    assert engine.log[1].ended == pytest.approx(2.0)


def test_max_tokens_and_stop_strings_are_obeyed() -> None:
    async def main() -> list[Finished]:
        engine = SimulatedEngine(lambda request: "a b c d")
        samplings = Sampling(max_tokens=2), Sampling(stop=("c",))
        requests = [Request.of("q", sampling=sampling) for sampling in samplings]
        events = [[e async for e in handler(engine)(request)][-1] for request in requests]
        return [e for e in events if isinstance(e, Finished)]

    cut, stopped = run_virtual(main())
    assert (cut.response.text, cut.response.finish_reason) == ("a b", "length")
    assert (stopped.response.text, stopped.response.finish_reason) == ("a b ", "stop")


def test_an_error_comes_after_the_tokens_before_it() -> None:
    refusal = BackendError("429", retryable=True, retry_after=1)
    engine = SimulatedEngine(lambda request: Reply("a b c", after=2, error=refusal))
    with pytest.raises(BackendError, match="429"):
        ask(engine, "q")
    assert (engine.log[0].text, engine.log[0].outcome) == ("a b", "error")


def test_a_hanging_engine_never_answers() -> None:
    engine = SimulatedEngine(lambda request: Reply("a b c", after=1))
    with pytest.raises(Stuck):
        ask(engine, "q")


def test_closing_the_iterator_frees_the_rows() -> None:
    async def main() -> SimulatedEngine:
        engine = SimulatedEngine(lambda request: "x " * 100, max_batch=2)
        async with aclosing(engine.generate([Job(Request.of("a")), Job(Request.of("b"))])) as it:
            await anext(it)
        return engine

    engine = run_virtual(main())
    assert [r.outcome for r in engine.log] == ["cancelled", "cancelled"]


def test_a_cancelled_job_ends_silently_and_the_others_go_on() -> None:
    async def main() -> list[int]:
        engine = SimulatedEngine(lambda request: "x x x", max_batch=2)
        jobs = [Job(Request.of("a")), Job(Request.of("b"))]
        seen: list[int] = []
        async for index, _ in engine.generate(jobs):
            seen.append(index)
            jobs[0].cancelled = True
        return seen

    assert run_virtual(main()) == [0, 1, 1, 1, 1]


def test_an_empty_reply_and_a_slow_start() -> None:
    engine = SimulatedEngine(lambda request: Reply(delay=5))
    [[only]] = ask(engine, "q")
    assert isinstance(only, Finished)
    assert only.response.text == ""
    assert engine.log[0].started == pytest.approx(5)
