"""A pause that an engine asked for ends while the dispatcher looks at the clock."""

from __future__ import annotations

import asyncio

import pytest
from engine import Reply, SimulatedEngine, collect
from engine.clock import VirtualLoop

from headrace import Dispatcher, Request
from headrace.middleware.batching import CLOCK
from headrace.middleware.errors import Overloaded


class CreepingLoop(VirtualLoop):  # type: ignore[misc]  # tests/engine is untyped to mypy
    """Its time also goes on a little whenever somebody looks, as a real clock does."""

    step = CLOCK / 4

    def time(self) -> float:
        self._jump.now += self.step
        return self._jump.now


@pytest.mark.parametrize("pause", [1.0, 1 / 3, 0.7, 0.123456])
@pytest.mark.parametrize("step", [CLOCK / 7, CLOCK / 3, CLOCK / 2, CLOCK * 0.9])
def test_who_waits_for_the_end_of_a_pause_is_sent(
    pause: float, step: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read twice, the clock could say "held" and then "not held", and no timer was set."""
    monkeypatch.setattr(CreepingLoop, "step", step)
    refused: set[str] = set()

    def once(request: Request) -> Reply:
        if request.question in refused:
            return Reply("yes")
        refused.add(request.question)
        return Reply("", after=0, error=Overloaded("503", retry_after=pause))

    async def main() -> list[str]:
        dispatcher = Dispatcher(SimulatedEngine(once, max_concurrency=2), retries=9)
        asked = (Request.of(f"{i}?") for i in range(5))
        answers = await asyncio.gather(*(collect(dispatcher(one)) for one in asked))
        return [answer.text for answer in answers]

    with asyncio.Runner(loop_factory=CreepingLoop) as runner:
        assert runner.run(main()) == ["yes"] * 5
