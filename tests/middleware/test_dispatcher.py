"""Scheduling on a virtual clock: no model, no waiting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest
from engine import Reply, SimulatedEngine, run_virtual

from headrace import (
    BackendError,
    Constraint,
    DeadlineExceeded,
    Dispatcher,
    Event,
    Finished,
    HeadraceError,
    Overloaded,
    Request,
    Response,
    TextDelta,
    UnsupportedConstraint,
)


async def collect(events: AsyncGenerator[Event, None]) -> Response:
    async with aclosing(events) as stream:
        async for event in stream:
            if isinstance(event, Finished):
                return event.response
    raise AssertionError("no Finished")


async def outcome(dispatcher: Dispatcher, text: str) -> str:
    try:
        return (await collect(dispatcher(Request.of(text)))).text
    except HeadraceError as error:
        return type(error).__name__


def echo(request: Request) -> Reply:
    return Reply(request.messages[-1].text)


def batch_sizes(responses: list[Response]) -> list[int]:
    return [response.report.stages[-1].details["batch_size"] for response in responses]


def test_requests_that_wait_together_run_together() -> None:
    async def main() -> list[Response]:
        dispatcher = Dispatcher(SimulatedEngine(echo, max_batch=4, max_concurrency=1))
        return await asyncio.gather(
            *(collect(dispatcher(Request.of(f"request {i}"))) for i in range(10))
        )

    responses = run_virtual(main())
    assert [response.text for response in responses] == [f"request {i}" for i in range(10)]
    assert batch_sizes(responses) == [4] * 8 + [2] * 2


def test_a_full_batch_does_not_wait_for_the_window() -> None:
    async def main() -> float:
        dispatcher = Dispatcher(SimulatedEngine(echo, max_batch=2, max_concurrency=1), window=5.0)
        await asyncio.gather(*(collect(dispatcher(Request.of("x"))) for _ in range(2)))
        return asyncio.get_running_loop().time()

    assert run_virtual(main()) < 1


def test_a_lone_request_waits_no_longer_than_the_window() -> None:
    async def main() -> float:
        dispatcher = Dispatcher(SimulatedEngine(echo, max_batch=8, max_concurrency=1), window=0.5)
        await collect(dispatcher(Request.of("x")))
        return asyncio.get_running_loop().time()

    assert 0.5 <= run_virtual(main()) < 0.6


def test_no_more_calls_at_a_time_than_the_engine_takes() -> None:
    engine = SimulatedEngine(echo, max_concurrency=3)

    async def main() -> None:
        dispatcher = Dispatcher(engine)
        await asyncio.gather(*(collect(dispatcher(Request.of("a b c"))) for _ in range(20)))

    run_virtual(main())
    assert engine.peak_calls == 3


def test_a_full_queue_refuses_and_the_rest_is_answered() -> None:
    async def main() -> list[str]:
        dispatcher = Dispatcher(SimulatedEngine(echo, max_concurrency=1), max_queue=2, retries=0)
        return await asyncio.gather(*(outcome(dispatcher, "x") for _ in range(5)))

    results = run_virtual(main())
    assert results.count("x") == 3  # one runs, two wait
    assert results.count(Overloaded.__name__) == 2


def test_the_deadline_frees_the_engine() -> None:
    engine = SimulatedEngine(lambda request: Reply("x", after=0), max_concurrency=1)

    async def main() -> float:
        dispatcher = Dispatcher(engine)
        with pytest.raises(DeadlineExceeded, match="2 s"):
            await collect(dispatcher(Request.of("x", deadline=2.0)))
        await asyncio.sleep(0.1)
        return asyncio.get_running_loop().time()

    assert run_virtual(main()) < 3
    assert engine.log[0].outcome == "cancelled"


def test_a_retry_waits_as_long_as_the_engine_says() -> None:
    answers = [
        Reply("x", after=0, error=BackendError("429", retryable=True, retry_after=1.0)),
        Reply("x", after=0, error=BackendError("429", retryable=True, retry_after=2.0)),
        Reply("done"),
    ]
    engine = SimulatedEngine(lambda request: answers.pop(0))

    async def main() -> Response:
        return await collect(Dispatcher(engine)(Request.of("x")))

    response = run_virtual(main())
    assert response.text == "done"
    assert response.report.stages[-1].details["retries"] == 2
    first, second, third = (record.submitted for record in engine.log)
    assert second - first >= 1
    assert third - second >= 2


@pytest.mark.parametrize(
    ("error", "calls"),
    [
        (BackendError("401"), 1),
        (BackendError("503", retryable=True), 3),
        (BackendError("429", retryable=True, retry_after=3600.0), 1),
    ],
    ids=["final", "retryable", "asks for an hour"],
)
def test_only_what_may_help_is_sent_again(error: BackendError, calls: int) -> None:
    engine = SimulatedEngine(lambda request: Reply("x", after=0, error=error))
    assert run_virtual(outcome(Dispatcher(engine), "x")) == "BackendError"
    assert len(engine.log) == calls


def test_text_that_was_streamed_is_never_repeated() -> None:
    cut = Reply("one two three", after=2, error=BackendError("reset", retryable=True))
    engine = SimulatedEngine(lambda request: cut)

    async def main() -> list[str]:
        seen: list[str] = []

        async def read() -> None:
            async for event in Dispatcher(engine)(Request.of("x")):
                assert isinstance(event, TextDelta)
                seen.append(event.text)

        with pytest.raises(BackendError, match="reset"):
            await read()
        return seen

    assert run_virtual(main()) == ["one", " two"]
    assert len(engine.log) == 1


def test_one_cancelled_request_leaves_its_batch_mates_alone() -> None:
    engine = SimulatedEngine(lambda request: Reply("a b c d e"), max_batch=2, max_concurrency=1)

    async def main() -> str:
        dispatcher = Dispatcher(engine)
        leaver = asyncio.create_task(collect(dispatcher(Request.of("leaves"))))
        stayer = asyncio.create_task(collect(dispatcher(Request.of("stays"))))
        await asyncio.sleep(0.02)
        leaver.cancel()
        return (await stayer).text

    assert run_virtual(main()) == "a b c d e"
    assert [record.outcome for record in engine.log] == ["cancelled", "finished"]


def test_a_slot_is_free_again_after_cancel_error_and_deadline() -> None:
    replies = {
        "hang": Reply("x", after=0),
        "fail": Reply("x", after=0, error=BackendError("boom")),
        "ok": Reply("fine"),
    }
    engine = SimulatedEngine(lambda r: replies[r.messages[-1].text], max_concurrency=1)

    async def main() -> str:
        dispatcher = Dispatcher(engine)
        hanging = asyncio.create_task(collect(dispatcher(Request.of("hang"))))
        await asyncio.sleep(0.5)
        hanging.cancel()
        assert await outcome(dispatcher, "fail") == "BackendError"
        with pytest.raises(DeadlineExceeded):
            await collect(dispatcher(Request.of("hang", deadline=1.0)))
        return await outcome(dispatcher, "ok")

    assert run_virtual(main()) == "fine"


def test_a_constraint_that_the_engine_cannot_enforce_is_refused() -> None:
    engine = SimulatedEngine(echo)

    async def main() -> None:
        request = Request.of("x", constraint=Constraint("regex", "a+"))
        with pytest.raises(UnsupportedConstraint, match="regex"):
            await collect(Dispatcher(engine)(request))

    run_virtual(main())
    assert engine.log == []


def test_closing_fails_what_waits() -> None:
    engine = SimulatedEngine(lambda request: Reply("x", after=0), max_concurrency=1)

    async def main() -> list[str]:
        dispatcher = Dispatcher(engine)
        tasks = [asyncio.create_task(outcome(dispatcher, str(i))) for i in range(3)]
        await asyncio.sleep(0.1)
        await dispatcher.close()
        return await asyncio.gather(*tasks)

    assert run_virtual(main()) == ["BackendError"] * 3
