"""What is done about parts that are empty, refused, said twice, cut or lost."""

from __future__ import annotations

from typing import Any

import pytest
from engine import Cost, Reply, SimulatedEngine, calls_of, handler, planned, run_virtual

from headrace.middleware.errors import BackendError, UnsupportedConstraint
from headrace.middleware.plan import Plan
from headrace.middleware.types import Finished, Request, Response
from headrace.planners import Plan as Graph
from headrace.planners.digest import LONGEST, digest
from headrace.planners.graph import Item
from headrace.planners.known import KnownEngine
from headrace.planners.repeats import is_refusal, most_alike
from headrace.planners.run import PlannedAnswer

LIST = "What are the benefits of regular exercise?"
FOUR = "1. Heart\n2. Mood\n3. Sleep\n4. Weight\n"
SORRY = "I'm sorry, but I cannot help with that."


def words(n: int, word: str = "w") -> str:
    return " ".join(f"{word}{i}" for i in range(n)) + "."


def answer(engine: SimulatedEngine, stage: Plan) -> Response:
    async def main() -> Response:
        async for event in stage(Request.of(LIST), handler(engine)):
            if isinstance(event, Finished):
                return event.response
        raise AssertionError("no Finished")

    return run_virtual(main())


def details(response: Response) -> dict[str, Any]:
    row = response.report.stage("plan")
    assert row is not None
    return dict(row.details)


def test_a_refusal_is_written_again_with_the_reason() -> None:
    engine = SimulatedEngine(planned(FOUR, {1: words(50, "a"), 3: [SORRY, "It gets deeper."]}))
    response = answer(engine, Plan("skeleton"))
    assert "3. **Sleep**: It gets deeper." in response.text
    assert "generally known" in calls_of(engine, 3)[1].request.messages[-1].text


def test_a_part_that_fails_twice_is_written_in_its_turn_with_all_before_it() -> None:
    engine = SimulatedEngine(planned(FOUR, {1: words(90, "a"), 3: [SORRY, SORRY, "At last."]}))
    response = answer(engine, Plan("skeleton"))
    assert "3. **Sleep**: At last." in response.text
    third = calls_of(engine, 3)[2]
    assert words(90, "a") in third.request.messages[-1].text
    assert "Text of part 2." in third.request.messages[-1].text
    assert third.submitted >= (calls_of(engine, 1)[0].ended or 0)
    assert details(response)["rescued"] == [3]


def test_no_more_extra_calls_than_half_the_parts() -> None:
    engine = SimulatedEngine(planned(FOUR, dict.fromkeys((2, 3, 4), SORRY) | {1: words(90, "a")}))
    response = answer(engine, Plan("skeleton"))
    assert len(engine.log) == 1 + 4 + 2
    assert details(response)["retries"] == 2


def test_a_part_that_repeats_another_is_told_which_and_then_left_out() -> None:
    said = words(40, "same")
    texts = {1: words(150, "a"), 2: said, 3: [words(45, "same"), words(44, "same")]}
    engine = SimulatedEngine(planned(FOUR, texts))
    response = answer(engine, Plan("skeleton"))
    assert "about point 2" in calls_of(engine, 3)[1].request.messages[-1].text
    assert len(calls_of(engine, 3)) == 2
    assert "Sleep" not in response.text
    assert "3. **Weight**" in response.text
    assert details(response)["flaws"] == {3: "repeats part 2"}
    assert details(response)["missing"] == [3]


def test_what_two_parts_share_is_reported() -> None:
    texts = {1: words(90, "a"), 2: words(40, "same"), 3: f"{words(16, 'same')} {words(24, 'own')}"}
    response = answer(SimulatedEngine(planned(FOUR, texts)), Plan("skeleton"))
    [found] = details(response)["alike"]
    assert (found["part"], found["like"]) == (3, 2)
    assert 0.3 < found["share"] < 0.5


def test_what_was_sent_is_never_taken_back() -> None:
    engine = SimulatedEngine(planned(FOUR, {1: f"{SORRY} {words(3)}"}))
    response = answer(engine, Plan("skeleton"))
    assert len(calls_of(engine, 1)) == 1
    assert response.text.startswith(f"1. **Heart**: {SORRY}")


def test_a_narrow_answer_with_a_failing_part_ends() -> None:
    """A part that waits for its turn must not hold the place that the turn needs."""
    plan = "@plan\n1|A|~9\n2|B|<1|~9\n3|C|~9\n4|D|~9\n@end"
    texts = {1: words(90, "a"), 2: words(90, "b"), 3: ["", "", "Late."]}
    for width in (1, 2, 3):
        engine = SimulatedEngine(planned(plan, texts))
        response = answer(engine, Plan("graph", when="always", width=width))
        assert "3. **C**: Late." in response.text


def test_thinking_is_no_text_and_does_not_count_as_length() -> None:
    thought = f"<think>{words(120, 'hm')}</think> Said."
    stage = Plan("skeleton")
    response = answer(SimulatedEngine(planned(FOUR, dict.fromkeys(range(1, 5), thought))), stage)
    assert "hm" not in response.text
    assert response.text.count("Said.") == 4
    assert stage.known.lengths.factor("skeleton") < 1.3


def test_a_thought_that_does_not_end_is_an_empty_part() -> None:
    texts = {1: words(60, "a"), 2: ["<think>hm hm hm", "Well."]}
    response = answer(SimulatedEngine(planned(FOUR, texts)), Plan("skeleton"))
    assert "2. **Mood**: Well." in response.text


def test_a_long_text_is_passed_on_as_its_digest() -> None:
    paragraphs = [f"Start {i}. {words(150, f'p{i}x')} End {i}." for i in range(6)]
    long = "\n\n".join(paragraphs)
    plan = "@plan\n1|A|~99\n2|B|~9\n3|C|<1|~9\n@end"
    engine = SimulatedEngine(planned(plan, {1: long, 2: words(20, "b")}))
    answer(engine, Plan("graph", when="always"))
    prompt = calls_of(engine, 3)[0].request.messages[-1].text
    assert "Start 0. ... Start 1." in prompt
    assert "End 5." in prompt
    assert "p3x40" not in prompt


@pytest.mark.parametrize("text", ["", "Short.", "a " * 500, "没有空格" * 300, "One. " + "x" * 9000])
def test_a_digest_fits(text: str) -> None:
    found = digest(text)
    assert len(found) <= max(len(text), 8 * LONGEST + 5)
    assert digest("Short.") == "Short."


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        (SORRY, True),
        ("Sorry, I can't do this.", True),
        ("As an AI language model, I have no opinion.", True),
        ("I cannot stress enough how much sleep matters. " + words(60), False),
        ("Sleep is good.", False),
    ],
)
def test_a_refusal_says_nothing_else(text: str, is_one: bool) -> None:
    assert is_refusal(text) is is_one


def test_chinese_texts_are_compared_by_character() -> None:
    one = "规律的锻炼可以改善心脏健康并降低血压"
    assert most_alike(one, {1: one + "还有更多好处"})[1] == 1.0
    assert most_alike(one, {1: "睡眠会变得更深更长第二天精神更好情绪稳定"})[1] == 0.0


def given(engine: SimulatedEngine, known: KnownEngine, question: str = LIST) -> PlannedAnswer:
    """Run an answer whose plan is given, so that no planner has read the prompt."""
    plan = Graph.of([Item("Alpha"), Item("Beta"), Item("Gamma")])

    async def main() -> PlannedAnswer:
        answer = PlannedAnswer(
            Request.of(question),
            handler(engine),
            mode="skeleton",
            max_nodes=8,
            width=8,
            plan=plan,
            engine=known,
        )
        async for _ in answer.stream():
            pass
        return answer

    return run_virtual(main())


@pytest.mark.parametrize(
    ("question", "has_cache", "is_led"),
    [("q " * 700, None, True), ("q " * 700, False, False), ("q " * 20, None, False)],
)
def test_the_first_call_leads_where_nobody_has_read_the_prompt(
    question: str, has_cache: bool | None, is_led: bool
) -> None:
    texts = {i: words(60, f"n{i}x") for i in range(1, 4)}
    engine = SimulatedEngine(
        planned("", texts), cost=Cost(prefill=0.00005), prefix_cache=bool(is_led)
    )
    given(engine, KnownEngine(has_prefix_cache=has_cache), question)
    first, *others = engine.log
    assert len(others) == 2
    if is_led:
        assert all(record.submitted == first.first_token for record in others)
        assert sum(record.first_token is not None for record in engine.log) == 3
    else:
        assert all(record.submitted == first.submitted for record in others)


def test_a_slow_leader_is_not_waited_for() -> None:
    engine = SimulatedEngine(planned("", {1: Reply("Slow.", delay=3)}))
    given(engine, KnownEngine(), "q " * 700)
    assert [record.submitted for record in engine.log] == pytest.approx([0.0, 0.15, 0.15])


EASY = "@plan\n1|Alpha|~8|h3\n2|Beta|~8|h1\n3|Gamma|~8|h1\n@end"


def with_small(small: SimulatedEngine, large: SimulatedEngine, **options: Any) -> Response:
    stage = Plan("graph", small=handler(small), **options)
    return answer(large, stage)


def test_easy_parts_go_to_the_small_engine() -> None:
    small = SimulatedEngine(planned("", {i: words(40, f"s{i}x") for i in (2, 3)}))
    large = SimulatedEngine(planned(EASY, {1: words(60, "a")}))
    response = with_small(small, large)
    assert "s2x0" in response.text
    assert "a0" in response.text
    assert details(response)["small"] == [2]  # one at a time until its speed is known
    assert response.usage.num_calls == len(small.log) + len(large.log) == 4
    assert "how hard" in large.log[0].request.messages[-1].text


def test_the_small_engine_is_not_used_where_it_is_slower() -> None:
    small = SimulatedEngine(
        planned("", {i: words(40, f"s{i}x") for i in (2, 3)}), cost=Cost(step=0.05)
    )
    stage = Plan("graph", small=handler(small))
    for _ in range(2):
        large = SimulatedEngine(planned(EASY, {1: words(60, "a"), 2: words(9, "b")}))
        response = answer(large, stage)
    assert details(response)["small"] == []
    assert len(small.log) == 1


def test_the_large_engine_writes_what_the_small_one_cannot() -> None:
    small = SimulatedEngine(lambda request: Reply("", after=0, error=BackendError("no model")))
    large = SimulatedEngine(planned(EASY, {1: words(60, "a"), 2: "From the large one."}))
    assert "2. **Beta**: From the large one." in with_small(small, large).text


def seamed(reply: Reply | str, texts: dict[int, Any], *, refuses: bool = False) -> Any:
    inner = planned(FOUR, texts)

    def answer(request: Request) -> Reply | str:
        if "leads from the one to the other" not in request.messages[-1].text:
            return inner(request)
        if refuses and request.constraint is not None:
            return Reply("", after=0, error=UnsupportedConstraint("no"))
        return reply

    return answer


LATE = {1: words(150, "a"), 2: words(30, "b"), 3: words(30, "c"), 4: words(30, "d")}


@pytest.mark.parametrize("refuses", [False, True])
def test_seams_stand_between_parts_that_were_not_sent(refuses: bool) -> None:
    said = '{"2": "So much for the heart.", "3": "And at night?", "4": "Last, weight."}'
    response = answer(
        SimulatedEngine(seamed(said, LATE, refuses=refuses)), Plan("skeleton", seams=True)
    )
    assert f"{words(150, 'a')}\n\nSo much for the heart.\n\n2. **Mood**: b0" in response.text
    assert "\n\nAnd at night?\n\n3. **Sleep**" in response.text
    assert details(response)["seams"] == 3


@pytest.mark.parametrize(
    "said",
    [
        "",
        "no json",
        '{"2": 5}',
        '{"2": "' + "x " * 40 + '"}',
        Reply("", after=0, error=BackendError("x")),
        Reply('{"2": "Too late."}', delay=60),
    ],
)
def test_useless_seams_change_nothing(said: Reply | str) -> None:
    plain = answer(SimulatedEngine(planned(FOUR, LATE)), Plan("skeleton"))
    response = answer(SimulatedEngine(seamed(said, LATE)), Plan("skeleton", seams=True))
    assert response.text == plain.text


def test_seams_are_off_by_default() -> None:
    engine = SimulatedEngine(planned(FOUR, LATE))
    answer(engine, Plan("skeleton"))
    assert len(engine.log) == 5


def test_the_plain_words_of_a_node_do_not_mention_its_neighbours() -> None:
    """With "the other points" in it, SmolLM2-135M writes the list again (prompts.py)."""
    engine = SimulatedEngine(planned(FOUR))
    answer(engine, Plan("skeleton"))
    assert "Mood" not in calls_of(engine, 1)[0].request.messages[-1].text


def test_what_came_before_an_engine_failed_for_good_is_kept() -> None:
    def drop(n: int) -> Reply:
        return Reply(words(60, "s"), after=n, error=BackendError("reset", retryable=True))

    texts = {1: words(150, "a"), 3: [drop(30), drop(40), drop(20)]}
    response = answer(SimulatedEngine(planned(FOUR, texts)), Plan("skeleton"))
    assert "3. **Sleep**: s0 s1" in response.text
    assert response.text.count(" s39") == 1
    assert response.finish_reason == "length"
    assert details(response)["missing"] == [3]
