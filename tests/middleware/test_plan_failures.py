"""Plans and parts that fail, break off, are cut or stay empty."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest
from engine import PLAIN, Reply, SimulatedEngine, calls_of, handler, planned, run_virtual
from engine.planning import LIST, answer, row

from headrace.middleware.errors import BackendError
from headrace.middleware.plan import Plan
from headrace.middleware.types import (
    Event,
    Finished,
    Message,
    Request,
    Response,
    TextDelta,
    Usage,
)

THREE = "1. Heart\n2. Mood\n3. Sleep\n"
GRAPH = "@plan\n1|Alpha|~6\n2|Beta|~6\n3|Gamma|<1|~6\n@end\n"


def make(plan: Reply | str, nodes: Any = None, **options: Any) -> SimulatedEngine:
    return SimulatedEngine(planned(plan, nodes), **options)


def words(n: int, word: str = "w") -> str:
    return " ".join(f"{word}{i}" for i in range(n)) + "."


@pytest.mark.parametrize(
    "edges", ["1|A|<1\n2|B", "1|A|<2\n2|B|<1", "1|A\n2|B|<9", "1|A\n2|B|<3\n3|C|<2"]
)
def test_impossible_dependencies_do_not_stop_anything(edges: str) -> None:
    _, response = answer(make(f"@plan\n{edges}\n@end"), Plan("graph"))
    assert "Text of part 2." in response.text
    assert row(response).details["dropped_edges"]


@pytest.mark.parametrize("start", ["", "1. ", "Here is my answer.\n\n1. "])
def test_a_planner_that_writes_prose_is_stopped(start: str) -> None:
    engine = make(start + words(500))
    _, response = answer(engine, Plan("skeleton"))
    assert response.text == PLAIN
    assert [record.outcome for record in engine.log] == ["cancelled", "finished"]
    assert row(response).details["plan_tokens"] < 110


def test_a_planner_that_thinks_first_is_not_stopped() -> None:
    engine = make(f"<think>{words(150)}</think>\n{THREE}")
    _, response = answer(engine, Plan("skeleton"))
    assert "3. **Sleep**" in response.text


def test_what_depends_on_a_failed_part_is_still_written() -> None:
    down = Reply("", after=0, error=BackendError("gone"), delay=2)
    engine = make(GRAPH.replace("<1", "<2"), {2: down, 1: words(10)})
    _, response = answer(engine, Plan("graph"))
    assert "Text of part 3." in response.text
    assert row(response).details["missing"] == [2]


def test_one_failing_part_is_tried_again_and_the_others_are_kept() -> None:
    drop = Reply("x y", after=1, error=BackendError("reset", retryable=True))
    texts = {1: words(30), 2: [drop, "Better."]}
    engine = make("1. A\n2. B\n3. C\n4. D\n5. E\n", texts)
    _, response = answer(engine, Plan("skeleton"))
    assert "2. **B**: Better." in response.text
    assert [len(calls_of(engine, i)) for i in range(1, 6)] == [1, 2, 1, 1, 1]
    assert response.finish_reason == "stop"
    assert row(response).details["retries"] == 1


def test_a_part_that_fails_for_good_is_reported() -> None:
    down = Reply("", delay=1, after=0, error=BackendError("gone", retryable=True))
    engine = make(THREE, {2: down})
    _, response = answer(engine, Plan())
    assert response.text == "1. **Heart**: Text of part 1.\n\n2. **Sleep**: Text of part 3."
    assert response.finish_reason == "length"
    assert row(response).decision.endswith("without part 2")
    assert row(response).details["nodes"][1]["error"] == "gone"


def test_a_part_that_fails_before_anything_was_sent_means_a_plain_answer() -> None:
    down = Reply("", after=0, error=BackendError("gone"))
    engine = make(THREE, {1: down, 2: words(50), 3: words(50)})
    _, response = answer(engine, Plan())
    assert response.text == PLAIN
    assert "part 1 failed" in row(response).decision
    assert {r.outcome for i in (2, 3) for r in calls_of(engine, i)} == {"cancelled"}


def test_one_refusal_holds_all_calls_back_and_only_one_is_repeated() -> None:
    plan = "@plan\n1|A\n2|B\n3|C\n4|D|<2\n5|E|<2\n@end"
    busy = Reply("", after=0, error=BackendError("429", retryable=True, retry_after=1.0))
    engine = make(plan, {1: words(20), 3: [busy, "Third."]})
    _, response = answer(engine, Plan("graph"))
    [refused, again] = calls_of(engine, 3)
    assert refused.ended is not None
    later = [r for r in engine.log if r.submitted > refused.ended]
    assert again in later
    assert all(r.submitted >= refused.ended + 1.0 - 1e-6 for r in later)
    assert len(engine.log) == 1 + 5 + 1
    assert "Third." in response.text


def test_a_stream_that_breaks_after_it_was_read_goes_on_without_doubling() -> None:
    text = words(60)
    drop = Reply(text, after=40, error=BackendError("reset", retryable=True))
    rest = " ".join(text.split()[36:])  # the model repeats the last four words
    engine = make(THREE, {1: [drop, rest]})
    _, response = answer(engine, Plan())
    assert f"1. **Heart**: {text}\n\n" in response.text


def test_a_part_cut_by_length_is_continued_once() -> None:
    text = words(400)
    rest = " ".join(text.split()[200:])
    engine = make(THREE, {2: [text, rest]})
    _, response = answer(engine, Plan(), Request.of(LIST))
    [first, second] = calls_of(engine, 2)
    assert first.request.sampling.max_tokens == 188
    assert second.request.sampling.max_tokens == 94
    shown = first.text.removesuffix("w187")  # which may be torn
    assert second.request.messages[-2] == Message.assistant(shown)
    assert response.finish_reason == "length"
    assert row(response).details["nodes"][1]["continued"]


def test_a_continuation_that_ends_makes_the_part_whole() -> None:
    text = words(220)
    rest = " ".join(text.split()[187:])  # the last word may be torn: it is written again
    _, response = answer(make(THREE, {2: [text, rest]}), Plan())
    assert f"2. **Mood**: {text}\n\n" in response.text
    assert response.finish_reason == "stop"


@pytest.mark.parametrize("nothing", ["", "  \n", "2. Mood", "**Mood**", "Mood:\n", "..."])
def test_an_empty_part_is_tried_once_more_and_then_left_out(nothing: str) -> None:
    engine = make(THREE, {2: [nothing, "Now there is text."]})
    assert "2. **Mood**: Now there is text." in answer(engine, Plan())[1].text
    engine = make(THREE, {2: nothing})
    _, response = answer(engine, Plan())
    assert len(calls_of(engine, 2)) == 2
    assert "2. **Sleep**: Text of part 3." in response.text
    assert "Mood" not in response.text


def test_only_empty_parts_mean_a_plain_answer() -> None:
    _, response = answer(make(THREE, {1: "", 2: "", 3: ""}), Plan())
    assert response.text == PLAIN
    assert row(response).decision == "no plan: no part has any text"


def test_a_part_that_echoes_the_plan_is_tried_again() -> None:
    engine = make(THREE, {1: ["1. Heart\n2. Mood\n3. Sleep", "It beats."]})
    _, response = answer(engine, Plan())
    assert response.text.startswith("1. **Heart**: It beats.\n\n2. **Mood**")


def test_an_error_that_nobody_expects_is_raised_and_cancels_the_rest() -> None:
    engine = make(THREE, {i: words(50) for i in (1, 2)})

    async def broken(request: Request) -> AsyncGenerator[Event, None]:
        if "point 3" in request.messages[-1].text:
            raise KeyError("bug")
        async with aclosing(handler(engine)(request)) as events:
            async for event in events:
                yield event

    async def main() -> None:
        async for _ in Plan()(Request.of(LIST), broken):
            pass

    with pytest.raises(KeyError, match="bug"):
        run_virtual(main())
    assert {r.outcome for i in (1, 2) for r in calls_of(engine, i)} == {"cancelled"}


def test_a_stream_without_an_end_counts_as_a_failure() -> None:
    async def endless(request: Request) -> AsyncGenerator[Event, None]:
        if "Do not answer yet" in request.messages[-1].text:
            yield TextDelta(THREE)
        else:
            yield Finished(Response(PLAIN, usage=Usage(1, 1)))

    async def main() -> list[Event]:
        return [event async for event in Plan()(Request.of(LIST), endless)]

    [last] = run_virtual(main())
    assert isinstance(last, Finished)
    assert last.response.text == PLAIN
