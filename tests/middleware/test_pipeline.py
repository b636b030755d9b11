from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
from engine import Reply, SimulatedEngine

from headrace import (
    BackendError,
    Event,
    Finished,
    Handler,
    HeadraceError,
    InvalidRequest,
    Message,
    Pipeline,
    Request,
    Response,
    StageReport,
    TextDelta,
    Transform,
)


def echo(request: Request) -> Reply:
    return Reply(request.messages[-1].text)


@dataclass(frozen=True)
class Suffix(Transform):
    name: ClassVar[str] = "suffix"
    text: str = ""

    async def transform(self, request: Request) -> Request:
        report = request.report.add(StageReport(self.name, self.text))
        message = Message.user(request.messages[-1].text + self.text)
        return replace(request, messages=(message,), report=report)


@dataclass(frozen=True)
class Broken(Transform):
    name: ClassVar[str] = "broken"
    error: Exception

    async def transform(self, request: Request) -> Request:
        raise self.error


async def shout(request: Request, call_next: Handler, /) -> AsyncGenerator[Event, None]:
    async with aclosing(call_next(request)) as events:
        async for event in events:
            yield TextDelta(event.text.upper()) if isinstance(event, TextDelta) else event


async def test_the_first_stage_is_the_outermost() -> None:
    async with Pipeline([Suffix(" a"), Suffix(" b")], SimulatedEngine(echo)) as pipeline:
        response = await pipeline.run(Request.of("x"))
    assert response.text == "x a b"
    assert [row.stage for row in response.report.stages] == ["suffix", "suffix", "dispatch"]


async def test_a_user_writes_a_stage_as_one_function() -> None:
    async with Pipeline([shout], SimulatedEngine(echo)) as pipeline:
        events = [event async for event in pipeline.stream(Request.of("one two"))]
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["ONE", " TWO"]
    assert isinstance(events[-1], Finished)


async def test_a_failed_transform_passes_the_request_on_and_says_so() -> None:
    async with Pipeline(
        [Broken(ValueError("no luck")), Suffix("!")], SimulatedEngine(echo)
    ) as pipeline:
        response = await pipeline.run(Request.of("x"))
    assert response.text == "x!"
    row = response.report.stage("broken")
    assert row is not None
    assert "no luck" in row.decision


async def test_the_callers_own_mistake_is_always_raised() -> None:
    async with Pipeline([Broken(InvalidRequest("top_k is -1"))], SimulatedEngine(echo)) as pipeline:
        with pytest.raises(InvalidRequest, match="-1"):
            await pipeline.run(Request.of("x"))


async def test_map_keeps_the_order_and_one_failure_disturbs_no_other() -> None:
    def reply(request: Request) -> Reply:
        text = request.messages[-1].text
        if text == "3":
            return Reply("x", after=0, error=BackendError("third"))
        return Reply(text, delay=0.05 / int(text))

    async with Pipeline([], SimulatedEngine(reply)) as pipeline:
        results = await pipeline.map([Request.of(str(i)) for i in range(1, 6)])
    texts = [r.text if isinstance(r, Response) else str(r) for r in results]
    assert texts == ["1", "2", "third", "4", "5"]


async def test_closing_the_stream_stops_the_engine() -> None:
    engine = SimulatedEngine(lambda request: Reply("word " * 10_000))
    async with Pipeline([shout], engine) as pipeline:
        async with aclosing(pipeline.stream(Request.of("x"))) as events:
            await anext(events)
        await asyncio.sleep(0.1)
    assert engine.log[0].outcome == "cancelled"


async def test_a_stage_without_an_end_is_named_as_the_fault() -> None:
    async def silent(request: Request, call_next: Handler, /) -> AsyncGenerator[Event, None]:
        yield TextDelta("half")

    async with Pipeline([silent], SimulatedEngine(echo)) as pipeline:
        with pytest.raises(HeadraceError, match="without Finished"):
            await pipeline.run(Request.of("x"))


async def test_blocking_calls_work_inside_a_running_loop() -> None:
    with Pipeline([], SimulatedEngine(echo)) as pipeline:
        assert pipeline.run_sync(Request.of("a b")).text == "a b"
        events = list(pipeline.stream_sync(Request.of("c d")))
        assert [e.text for e in events if isinstance(e, TextDelta)] == ["c", " d"]
        (result,) = pipeline.map_sync([Request.of("e")])
        assert isinstance(result, Response)
        assert result.text == "e"


def test_leaving_a_blocking_stream_early_stops_the_engine() -> None:
    engine = SimulatedEngine(lambda request: Reply("word " * 10_000))
    with Pipeline([], engine) as pipeline:
        stream = pipeline.stream_sync(Request.of("x"))
        next(stream)
        stream.close()  # type: ignore[attr-defined]
    assert engine.log[0].outcome == "cancelled"


def test_threads_share_one_pipeline() -> None:
    engine = SimulatedEngine(echo, max_batch=8, max_concurrency=1)
    texts: dict[int, str] = {}
    with Pipeline([], engine) as pipeline:

        def work(i: int) -> None:
            texts[i] = pipeline.run_sync(Request.of(f"number {i}")).text

        threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert texts == {i: f"number {i}" for i in range(16)}
