"""Two engines at a time for the slow ones; all on a virtual clock."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from engine import Reply, SimulatedEngine, collect, run_virtual

from headrace import BackendError, Dispatcher, InvalidRequest, Request, Response, TextDelta

WORDS = " one two three four"


def engine(name: str, *, delay: float = 0.0, error: str = "", after: int = 0) -> SimulatedEngine:
    failure = BackendError(error, retryable=True) if error else None
    return SimulatedEngine(
        lambda request: Reply(
            name + WORDS, delay=delay, after=after if failure else None, error=failure
        )
    )


def ask(*engines: SimulatedEngine, hedge: float | None = 0.5) -> Response:
    async def main() -> Response:
        return await collect(Dispatcher([*engines], hedge=hedge, retries=0)(Request.of("Hi")))

    return run_virtual(main())


def outcomes(one: SimulatedEngine) -> list[str]:
    return [record.outcome for record in one.log]


def test_a_slow_engine_is_overtaken_and_closed() -> None:
    slow, fast = engine("slow", delay=10), engine("fast")
    response = ask(slow, fast)
    assert response.text == "fast" + WORDS
    assert (outcomes(slow), outcomes(fast)) == (["cancelled"], ["finished"])
    row = response.report.stages[-1]
    assert row.details["hedged"] is True
    assert row.decision.endswith("two were asked")


def test_the_first_engine_may_still_win_and_the_second_is_closed() -> None:
    slow, slower = engine("slow", delay=0.8), engine("slower", delay=0.8)
    assert ask(slow, slower).text == "slow" + WORDS
    assert (outcomes(slow), outcomes(slower)) == (["finished"], ["cancelled"])


def test_who_answers_in_time_is_asked_alone() -> None:
    fine, other = engine("fine", delay=0.3), engine("other")
    response = ask(fine, other)
    assert response.text == "fine" + WORDS
    assert other.log == []
    assert "hedged" not in response.report.stages[-1].details


def test_one_engine_is_asked_again() -> None:
    delays = [10.0, 0.0]
    only = SimulatedEngine(lambda request: Reply("same" + WORDS, delay=delays.pop(0)))
    assert ask(only).text == "same" + WORDS
    assert outcomes(only) == ["cancelled", "finished"]


def test_it_is_off_unless_asked_for() -> None:
    slow, fast = engine("slow", delay=10), engine("fast")
    assert ask(slow, fast, hedge=None).text == "slow" + WORDS
    assert fast.log == []


def test_a_failure_of_one_leaves_the_other() -> None:
    failing, slow = engine("failing", delay=1, error="gone"), engine("slow", delay=2)
    assert ask(failing, slow).text == "slow" + WORDS
    slow, failing = engine("slow", delay=2), engine("failing", error="gone")
    assert ask(slow, failing).text == "slow" + WORDS


def test_when_all_fail_the_error_says_so() -> None:
    with pytest.raises(BackendError, match="none of 2 engines answered: gone; gone too"):
        ask(engine("one", delay=1, error="gone"), engine("two", delay=1, error="gone too"))


def test_text_that_was_passed_on_is_never_repeated() -> None:
    cut, spare = engine("cut", error="gone", after=2), engine("spare")
    with pytest.raises(BackendError, match="gone"):
        ask(cut, spare)
    assert spare.log == []


def test_a_caller_that_goes_away_closes_both() -> None:
    one, two = engine("one", delay=10), engine("two", delay=10)

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await collect(Dispatcher([one, two], hedge=0.5)(Request.of("Hi")))

    run_virtual(main())
    assert (outcomes(one), outcomes(two)) == (["cancelled"], ["cancelled"])


def test_a_reader_that_stops_in_mid_answer_closes_the_engine() -> None:
    slow, fast = engine("slow", delay=10), engine("fast")

    async def main() -> None:
        events = Dispatcher([slow, fast], hedge=0.5)(Request.of("Hi"))
        assert await anext(events) == TextDelta("fast")
        await events.aclose()

    run_virtual(main())
    assert (outcomes(slow), outcomes(fast)) == (["cancelled"], ["cancelled"])


def test_nobody_is_asked_twice() -> None:
    failing, slow = engine("failing", delay=0.6, error="gone"), engine("slow", delay=2)
    assert ask(failing, slow).text == "slow" + WORDS
    assert (len(failing.log), len(slow.log)) == (1, 1)
    slow, failing = engine("slow", delay=2), engine("failing", error="gone")
    assert ask(slow, failing).text == "slow" + WORDS
    assert (len(slow.log), len(failing.log)) == (1, 1)


def test_who_fails_in_time_is_followed_by_the_next_at_once() -> None:
    failing, fine = engine("failing", error="gone"), engine("fine")
    response = ask(failing, fine)
    assert response.text == "fine" + WORDS
    details = response.report.stages[-1].details
    assert details["failed"] == ["gone"]
    assert "hedged" not in details


def test_one_engine_that_fails_in_time_is_not_asked_again() -> None:
    only = engine("only", error="gone")
    with pytest.raises(BackendError, match=r"^gone$"):
        ask(only)
    assert len(only.log) == 1


@pytest.mark.parametrize("hedge", [0, -1.0, float("nan"), True, "2"])
def test_a_hedge_of_no_time_is_refused(hedge: Any) -> None:
    with pytest.raises(InvalidRequest, match="hedge"):
        Dispatcher(engine("any"), hedge=hedge)
