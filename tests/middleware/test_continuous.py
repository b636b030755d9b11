"""An engine that takes new requests while it answers others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from headrace import Request
from headrace.backends import Capabilities, Job
from headrace.middleware.dispatcher import Dispatcher
from headrace.middleware.errors import HeadraceError
from headrace.middleware.types import Event, Finished, Response, Usage


@dataclass
class Slots:
    """An engine with ``slots`` places; a request is answered when its own event is set."""

    slots: int
    gates: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])
    inside: set[str] = field(default_factory=set[str])
    most: int = 0

    async def capabilities(self) -> Capabilities:
        return Capabilities("slots", max_batch=self.slots, is_continuous=True)

    async def generate(
        self, batch: Sequence[Job]
    ) -> AsyncGenerator[tuple[int, Event | HeadraceError], None]:
        names = [job.request.question for job in batch]
        self.inside |= set(names)
        self.most = max(self.most, len(self.inside))
        waits = {
            asyncio.create_task(self.gates.setdefault(name, asyncio.Event()).wait()): index
            for index, name in enumerate(names)
        }
        try:
            while waits:
                done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    index = waits.pop(task)
                    self.inside.discard(names[index])
                    yield index, Finished(Response(names[index]))
        finally:
            self.inside -= set(names)
            for task in waits:
                task.cancel()

    async def close(self) -> None:
        pass

    def let(self, name: str) -> None:
        self.gates.setdefault(name, asyncio.Event()).set()


async def answer(dispatcher: Dispatcher, name: str) -> Response:
    async for event in dispatcher(Request.of(name)):
        if isinstance(event, Finished):
            return event.response
    raise AssertionError


async def settle() -> None:
    for _ in range(50):
        await asyncio.sleep(0)
    await asyncio.sleep(0.02)


async def test_a_place_that_is_free_is_filled_while_the_others_run() -> None:
    engine = Slots(3)
    dispatcher = Dispatcher(engine)
    tasks = {name: asyncio.create_task(answer(dispatcher, name)) for name in "abcde"}
    await settle()
    assert engine.inside == {"a", "b", "c"}
    engine.let("b")
    await settle()
    assert engine.inside == {"a", "c", "d"}
    for name in "acde":
        engine.let(name)
    responses = await asyncio.gather(*tasks.values())
    assert [r.text for r in responses] == list("abcde")
    assert engine.most == 3
    sizes = [r.report.stages[-1].details["batch_size"] for r in responses]
    assert sizes[:3] == [3, 3, 3]
    assert sizes[3] == 3
    await dispatcher.close()


async def test_who_gives_up_makes_room() -> None:
    engine = Slots(2)
    dispatcher = Dispatcher(engine)
    tasks = {name: asyncio.create_task(answer(dispatcher, name)) for name in "abc"}
    await settle()
    assert engine.inside == {"a", "b"}
    tasks["a"].cancel()
    await settle()
    assert "c" in engine.inside
    engine.let("b")
    engine.let("c")
    assert (await tasks["b"]).text == "b"
    assert (await tasks["c"]).text == "c"
    await dispatcher.close()


async def test_the_row_says_what_took_no_pass_and_what_was_known() -> None:
    class Ahead(Slots):
        async def generate(
            self, batch: Sequence[Job]
        ) -> AsyncGenerator[tuple[int, Event | HeadraceError], None]:
            usage = Usage(40, 12, cached_tokens=30, forced_tokens=7)
            yield 0, Finished(Response("x", usage=usage))

    dispatcher = Dispatcher(Ahead(1))
    row = (await answer(dispatcher, "a")).report.stages[-1]
    assert "30 of 40 prompt tokens known, 7 of 12 tokens without a pass" in row.decision
    assert (row.details["cached_tokens"], row.details["forced_tokens"]) == (30, 7)
    await dispatcher.close()
