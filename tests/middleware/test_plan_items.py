"""The items of a prompt's list, a call each."""

from __future__ import annotations

import pytest
from engine import Reply, SimulatedEngine
from engine.planning import answer, row

from headrace.middleware.errors import (
    BackendError,
    DeadlineExceeded,
)
from headrace.middleware.plan import Plan
from headrace.middleware.types import (
    Document,
    Message,
    Request,
    Sampling,
)

WORDS = ("one", "two", "three", "four", "five")
LIST = "Translate each sentence to French:\n" + "\n".join(
    f"{at}. Sentence {word}." for at, word in enumerate(WORDS, 1)
)


def item_of(request: Request) -> str:
    return request.messages[-1].text.rpartition("Item: ")[2]


def by_item(request: Request) -> Reply | str:
    item = item_of(request)
    return Reply(f"Phrase {item.split()[-1]}", delay=1.0 if "one" in item else 0.0)


def test_every_item_is_a_call_and_the_answers_keep_marks_and_order() -> None:
    engine = SimulatedEngine(by_item)
    _, response = answer(engine, Plan(), Request.of(LIST))
    assert response.text == "\n".join(f"{at}. Phrase {word}." for at, word in enumerate(WORDS, 1))
    assert [item_of(r.request) for r in engine.log] == [f"Sentence {word}." for word in WORDS]
    assert len({r.request.messages[-1].text.rpartition("Item: ")[0] for r in engine.log}) == 1
    assert response.usage.num_calls == 5
    assert row(response).details["how"] == "slots"
    assert row(response).details["why"] == "the prompt lists 5 items"


def test_items_are_written_at_the_same_time_and_never_more_than_the_width() -> None:
    engine = SimulatedEngine(lambda request: Reply("Done.", delay=1))
    answer(engine, Plan("map", width=2), Request.of(LIST))
    ends = sorted(r.ended or 0 for r in engine.log)
    assert engine.peak_calls == 2
    assert ends[-1] == pytest.approx(3, abs=0.2)


def test_a_failed_item_is_tried_again_and_its_place_is_kept() -> None:
    down = Reply("", after=0, error=BackendError("down", retryable=True))
    gone = Reply("", after=0, error=BackendError("gone"))
    tries: list[str] = []

    def reply(request: Request) -> Reply | str:
        item = item_of(request)
        tries.append(item)
        if "two" in item and tries.count(item) == 1:
            return down
        return gone if "four" in item else by_item(request)

    _, response = answer(SimulatedEngine(reply), Plan(), Request.of(LIST))
    lines = response.text.split("\n")
    assert [line.split(".")[0] for line in lines] == ["1", "2", "3", "4", "5"]
    assert lines[1] == "2. Phrase two."
    assert lines[3] == "4. [no answer]"
    assert response.finish_reason == "length"
    assert row(response).details["missing"] == ["item 4"]
    assert row(response).details["nodes"][3]["error"] == "gone"


def test_a_first_item_that_fails_means_one_plain_call() -> None:
    def reply(request: Request) -> Reply | str:
        if "Item: " not in request.messages[-1].text:
            return "All at once."
        is_first = "one" in item_of(request)
        return Reply("", after=0, error=BackendError("gone")) if is_first else "Late. " * 50

    engine = SimulatedEngine(reply)
    _, response = answer(engine, Plan(), Request.of(LIST))
    assert response.text == "All at once."
    assert "item 1 failed: gone" in row(response).decision
    assert {r.outcome for r in engine.log[1:5]} == {"cancelled"}


def test_an_item_that_breaks_off_goes_on_without_doubling() -> None:
    words = " ".join(f"w{i}" for i in range(30))
    drop = Reply(words, after=20, error=BackendError("reset", retryable=True))

    def reply(request: Request) -> Reply | str:
        if request.messages[-2:][0].role == "assistant":
            return " ".join(words.split()[16:])
        return drop if "one" in item_of(request) else "Fine."

    _, response = answer(SimulatedEngine(reply), Plan(), Request.of(LIST))
    assert response.text.startswith(f"1. {words}\n2. Fine.")


def test_documents_and_earlier_turns_are_the_same_prefix_for_all_items() -> None:
    engine = SimulatedEngine(by_item)
    turns = (Message.system("Be kind."), Message.user("Hi"), Message.assistant("Hello"))
    request = Request((*turns, Message.user(LIST)), documents=(Document("Glossary."),))
    answer(engine, Plan("map"), request)
    for record in engine.log:
        assert record.request.messages[:3] == turns
        assert record.request.messages[3].text.count("Glossary.") == 1


def test_all_items_together_keep_max_tokens() -> None:
    engine = SimulatedEngine(lambda request: "w " * 500)
    request = Request.of(LIST, sampling=Sampling(max_tokens=150))
    _, response = answer(engine, Plan(), request)
    assert sum(r.num_tokens for r in engine.log) <= 150
    assert response.finish_reason == "length"
    small = Request.of(LIST, sampling=Sampling(max_tokens=60))
    assert "too small for 5 items" in row(answer(engine, Plan(), small)[1]).decision


def test_a_deadline_ends_all_items() -> None:
    engine = SimulatedEngine(lambda request: Reply("x", delay=5))
    with pytest.raises(DeadlineExceeded):
        answer(engine, Plan("map", width=1), Request.of(LIST, deadline=1.0))


def test_a_list_that_is_not_faster_in_parts_is_answered_in_one_call() -> None:
    engine = SimulatedEngine(lambda request: "All.")
    _, response = answer(engine, Plan(width=1), Request.of(LIST))
    assert response.text == "All."
    assert "predicted gain" in row(response).decision
    assert len(answer(engine, Plan(width=1, when="always"), Request.of(LIST))[1].text) > 20


def test_what_has_tools_or_stop_strings_is_not_mapped() -> None:
    engine = SimulatedEngine(lambda request: "Plain.")
    for sampling in (Sampling(stop=("x",)), Sampling(extra={"tools": [{}]})):
        _, response = answer(engine, Plan("map"), Request.of(LIST, sampling=sampling))
        assert response.text == "Plain."


def test_reasoning_before_an_item_is_not_shown() -> None:
    engine = SimulatedEngine(lambda request: f"<think>Hm, 1. maybe.</think>\n\n{item_of(request)}")
    _, response = answer(engine, Plan("map"), Request.of(LIST))
    assert response.text == "\n".join(f"{at}. Sentence {w}." for at, w in enumerate(WORDS, 1))


def test_reasoning_that_never_ends_is_no_answer() -> None:
    engine = SimulatedEngine(
        lambda request: "<think>Hm" if "three" in item_of(request) else item_of(request)
    )
    _, response = answer(engine, Plan("map"), Request.of(LIST))
    assert response.text.split("\n")[2] == "3. [no answer]"


def test_an_item_that_repeats_its_number_has_it_once() -> None:
    def reply(request: Request) -> str:
        word = item_of(request).split()[-1].strip(".")
        at = WORDS.index(word) + 1
        return f"{1 if at == 4 else at}. Phrase {word}."  # one begins a list of its own

    _, response = answer(SimulatedEngine(reply), Plan("map"), Request.of(LIST))
    assert response.text == "\n".join(f"{at}. Phrase {w}." for at, w in enumerate(WORDS, 1))


def test_an_item_that_is_a_list_keeps_its_numbers() -> None:
    asked = Request.of(LIST.replace("Translate each sentence to French", "Explain each sentence"))
    engine = SimulatedEngine(lambda request: "1. It is short.\n2. It has a verb.")
    _, response = answer(engine, Plan("map"), asked)
    assert response.text.startswith("1. 1. It is short.\n2. It has a verb.\n\n2. 1. It is short.")


def test_a_torn_word_of_an_item_is_made_whole() -> None:
    drop = Reply("A phrase transf", after=3, error=BackendError("reset", retryable=True))

    def reply(request: Request) -> Reply | str:
        if request.messages[-2:][0].role == "assistant":
            assert request.messages[-2].text == "A phrase "
            return "transferred."
        return drop if "one" in item_of(request) else "Fine."

    _, response = answer(SimulatedEngine(reply), Plan("map"), Request.of(LIST))
    assert response.text.startswith("1. A phrase transferred.\n2. Fine.")
