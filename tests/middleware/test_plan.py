from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from engine import PLAIN, Cost, Reply, SimulatedEngine, calls_of, handler, planned, run_virtual

from headrace.middleware.dispatcher import Dispatcher
from headrace.middleware.errors import BackendError, DeadlineExceeded, InvalidRequest
from headrace.middleware.plan import Plan
from headrace.middleware.report import Report, StageReport
from headrace.middleware.types import (
    Constraint,
    Document,
    Event,
    Finished,
    Message,
    Request,
    Response,
    Sampling,
    TextDelta,
    Usage,
)

LIST = "What are the benefits of regular exercise?"
THREE = "1. Heart\n2. Mood\n3. Sleep\n"
GRAPH = "@plan\n1|Alpha|~6\n2|Beta|~6\n3|Gamma|<1|~6\n@end\n"


def make(plan: Reply | str, nodes: Any = None, **options: Any) -> SimulatedEngine:
    return SimulatedEngine(planned(plan, nodes), **options)


def answer(
    engine: SimulatedEngine, stage: Plan, request: Request | None = None
) -> tuple[list[str], Response]:
    """Return the pieces that the reader saw and the final response, checking the stream's form."""

    async def main() -> list[Event]:
        stream = stage(request or Request.of(LIST), handler(engine))
        return [event async for event in stream]

    *deltas, last = run_virtual(main())
    pieces = [event.text for event in deltas if isinstance(event, TextDelta)]
    assert len(pieces) == len(deltas)
    assert isinstance(last, Finished)
    assert "".join(pieces) == last.response.text
    return pieces, last.response


def row(response: Response) -> StageReport:
    rows = [r for r in response.report.stages if r.stage == "plan"]
    assert len(rows) == 1
    return rows[0]


def words(n: int, word: str = "w") -> str:
    return " ".join(f"{word}{i}" for i in range(n)) + "."


def test_an_answer_is_planned_written_and_joined_in_order() -> None:
    engine = make(THREE)
    _, response = answer(engine, Plan())
    assert response.text == (
        "1. **Heart**: Text of part 1.\n\n2. **Mood**: Text of part 2.\n\n"
        "3. **Sleep**: Text of part 3."
    )
    assert response.finish_reason == "stop"
    assert response.usage.num_calls == 4
    assert response.usage.completion_tokens == sum(r.num_tokens for r in engine.log)


def test_the_report_says_what_happened() -> None:
    engine = make(GRAPH)
    _, response = answer(engine, Plan("graph"))
    found = row(response)
    assert found.decision == "wrote 3 parts at the same time"
    assert found.seconds > 0
    assert [n["title"] for n in found.details["nodes"]] == ["Alpha", "Beta", "Gamma"]
    assert found.details["edges"] == [{"from": 1, "to": 3, "hard": True}]
    assert found.details["strategy"] == "graph"
    assert found.details["plan_tokens"] == engine.log[0].num_tokens
    alpha, _, gamma = found.details["nodes"]
    assert gamma["start"] == pytest.approx(alpha["end"])


def test_rows_of_earlier_stages_stay_and_come_once() -> None:
    request = Request.of(LIST, report=Report().add(StageReport("compress", "kept all")))
    _, response = answer(make(THREE), Plan(), request)
    assert [r.stage for r in response.report.stages] == ["compress", "plan"]


@pytest.mark.parametrize(
    ("stage", "request_", "why"),
    [
        (Plan("off"), Request.of(LIST), "switched off"),
        (Plan(), Request.of("Who wrote Hamlet?"), "does not look like a list"),
        (
            Plan("skeleton"),
            Request.of(LIST, constraint=Constraint("choice", ("a", "b"))),
            "constraint",
        ),
        (Plan("graph"), Request.of(LIST, sampling=Sampling(extra={"tools": [{}]})), "tools"),
        (Plan("skeleton"), Request.of(LIST, sampling=Sampling(stop=("\n",))), "stop strings"),
        (Plan("skeleton"), Request.of(LIST, sampling=Sampling(max_tokens=30)), "too small"),
    ],
)
def test_where_nothing_is_planned_the_request_passes_untouched(
    stage: Plan, request_: Request, why: str
) -> None:
    engine = SimulatedEngine(lambda request: PLAIN)
    _, response = answer(engine, stage, request_)
    seen = [replace(record.request, report=request_.report) for record in engine.log]
    assert seen == [request_]
    assert (response.text, response.usage.num_calls) == (PLAIN, 1)
    assert row(response).decision.startswith("no plan: ")
    assert why in row(response).decision


@pytest.mark.parametrize("plan", ["Sure!", "", "1. Only one", "1. Same\n1. Same\n2. same!", "🙂"])
def test_an_unusable_plan_is_followed_by_one_plain_call(plan: str) -> None:
    engine = make(plan)
    _, response = answer(engine, Plan("skeleton"))
    assert response.text == PLAIN
    assert len(engine.log) == 2
    assert engine.log[1].request.messages == Request.of(LIST).messages
    assert response.usage.num_calls == 2
    assert "the plan has" in row(response).decision


def test_a_failing_planner_is_followed_by_one_plain_call() -> None:
    engine = make(Reply(THREE, after=2, error=BackendError("down", retryable=True)))
    _, response = answer(engine, Plan())
    assert response.text == PLAIN
    assert row(response).decision == "no plan: the planner failed: down"


def test_an_unclosed_thought_is_no_plan() -> None:
    _, response = answer(make("<think>1. one\n2. two\n3. three"), Plan())
    assert response.text == PLAIN


def test_reasoning_without_its_opening_tag_is_void() -> None:
    plan = "1. guess\n2. again\n3. more\n</think>\n1. Heart\n2. Mood\n"
    _, response = answer(make(plan, {1: Reply("Late.", delay=5)}), Plan())
    assert response.text == PLAIN
    assert "reasoning" in row(response).decision
    _, response = answer(make(plan.replace("\n", " ")), Plan())
    assert "guess" not in response.text


def test_a_copied_example_is_no_plan() -> None:
    engine = make("@plan\n1|What a heat pump does|~6\n2|What it costs|~8\n3|Other|<1\n@end")
    _, response = answer(engine, Plan("graph"))
    assert response.text == PLAIN
    assert "copied" in row(response).decision


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


def test_texts_that_are_needed_are_all_passed_on_unchanged() -> None:
    odd = 'costs $2, not $10; see {1} and <1> or %s "$1"'
    engine = make("@plan\n1|Alpha\n2|Beta\n3|Gamma|<1,2\n@end", {1: odd, 2: "Second {}."})
    answer(engine, Plan("graph"))
    [record] = calls_of(engine, 3)
    prompt = record.request.messages[-1].text
    assert odd in prompt
    assert "Second {}." in prompt


@pytest.mark.parametrize(
    "edges", ["1|A|<1\n2|B", "1|A|<2\n2|B|<1", "1|A\n2|B|<9", "1|A\n2|B|<3\n3|C|<2"]
)
def test_impossible_dependencies_do_not_stop_anything(edges: str) -> None:
    _, response = answer(make(f"@plan\n{edges}\n@end"), Plan("graph"))
    assert "Text of part 2." in response.text
    assert row(response).details["dropped_edges"]


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
    rest = " ".join(text.split()[188:])
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


def test_a_long_plan_is_capped_and_no_point_lost() -> None:
    plan = "\n".join(f"{i}. Point{i}" for i in range(1, 31))
    engine = make(plan)
    _, response = answer(engine, Plan(max_nodes=12))
    assert all(f"Point{i}" in response.text for i in range(1, 31))
    assert len(engine.log) == 13
    assert row(response).details["merged"] == 18


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


def test_a_part_that_echoes_the_plan_is_tried_again() -> None:
    engine = make(THREE, {1: ["1. Heart\n2. Mood\n3. Sleep", "It beats."]})
    _, response = answer(engine, Plan())
    assert response.text.startswith("1. **Heart**: It beats.\n\n2. **Mood**")


def test_the_next_turn_sees_the_answer_only() -> None:
    engine = make(THREE)
    _, response = answer(engine, Plan())
    turns = Message.user(LIST), Message.assistant(response.text), Message.user("Thanks!")
    answer(engine, Plan(), Request(turns))
    assert engine.log[-1].request.messages == turns


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


def test_all_calls_share_their_beginning_and_end_with_the_user() -> None:
    engine = make(THREE)
    messages = (Message.system("Be kind."), Message.user("Hi"), Message.assistant("Hello"))
    request = Request((*messages, Message.user(LIST)))
    answer(engine, Plan(width=1), request)
    planner, *parts = (record.request.messages for record in engine.log)
    assert planner[:3] == messages
    assert planner[3].text.startswith(LIST)
    for part in parts:
        assert part[:4] == planner
        assert [m.role for m in part[4:]] == ["assistant", "user"]
        assert THREE.startswith(part[4].text)


def test_parts_get_the_sampling_options_of_the_request() -> None:
    sampling = Sampling(temperature=0.3, seed=7, extra={"top_k": 5}, max_tokens=400)
    engine = make(THREE)
    answer(engine, Plan(), Request.of(LIST, sampling=sampling))
    for record in engine.log:
        given = record.request.sampling
        assert replace(given, max_tokens=400) == sampling


@pytest.mark.parametrize("limit", [150, 200, 333, 1000])
def test_all_parts_together_keep_max_tokens(limit: int) -> None:
    engine = make(THREE, {i: words(900) for i in (1, 2, 3)})
    request = Request.of(LIST, sampling=Sampling(max_tokens=limit))
    _, response = answer(engine, Plan(), request)
    assert sum(r.num_tokens for i in (1, 2, 3) for r in calls_of(engine, i)) <= limit
    assert response.finish_reason == "length"


def test_documents_are_written_into_the_message_once() -> None:
    engine = make(THREE)
    request = Request.of(LIST, documents=(Document("Exercise lowers blood pressure."),))
    answer(engine, Plan(), request)
    for record in engine.log:
        text = "".join(m.text for m in record.request.messages)
        assert text.count("lowers blood pressure") == 1
        assert not record.request.documents


@pytest.mark.parametrize("text", ["{} {0} {n}", "100% of $1", "#### h", "@plan\n1|a\n@end"])
def test_no_question_is_a_template(text: str) -> None:
    engine = make(THREE)
    _, response = answer(engine, Plan("skeleton"), Request.of(f"{text} {LIST}"))
    assert all(f"{text} {LIST}" in r.request.messages[0].text for r in engine.log)
    assert "Text of part 3." in response.text


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


def test_an_open_code_fence_is_closed_before_the_next_part() -> None:
    _, response = answer(make(THREE, {2: "```python\nprint(1)"}), Plan())
    assert "2. **Mood**:\n\n```python\nprint(1)\n```\n\n3. **Sleep**:" in response.text


def test_planning_pays_on_a_batching_engine() -> None:
    sections = {i: words(80) for i in range(1, 6)}
    plan = "".join(f"{i}. Point {i}\n" for i in range(1, 6))
    cost = Cost(step=0.010, row=0.0002)
    engine = make(plan, sections, cost=cost)
    _, planned_response = answer(engine, Plan())
    plain = SimulatedEngine(lambda request: words(400), cost=cost)
    answer(plain, Plan("off"))
    assert (plain.log[0].ended or 0) / row(planned_response).seconds > 2.5


@pytest.mark.parametrize(
    "options", [{"strategy": "tree"}, {"max_nodes": 1}, {"max_nodes": 100}, {"width": 0}]
)
def test_senseless_options_are_refused(options: dict[str, Any]) -> None:
    make_stage: Callable[..., Plan] = Plan
    with pytest.raises(InvalidRequest):
        make_stage(**options)
