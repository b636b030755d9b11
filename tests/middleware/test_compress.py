"""What the stage may touch, on real text with the default scorer."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from itertools import pairwise
from typing import Any, cast

import pytest

from headrace import Compress, Document, InvalidRequest, Message, Request
from headrace.middleware.memory import Memory
from headrace.middleware.types import Event, Finished, Response, Sampling

NOTES = "\n".join(
    f"On day {day} the miller ground {day * 3} sacks of rye and nothing else of note happened."
    for day in range(1, 20)
)
SYSTEM = Message.system(
    "You are a helpful assistant and you always answer in one short sentence. " * 3
)
CALL = Message.from_dict(
    {
        "role": "assistant",
        "content": NOTES,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f"}}],
    }
)
TOOL = Message.from_dict({"role": "tool", "tool_call_id": "c1", "content": NOTES})
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
ASKED = Message.user(f"{NOTES}\n\nHow many sacks on day 7?")


async def compressed(
    *messages: Message, documents: tuple[Document, ...] = (), **options: Any
) -> Request:
    stage = Compress(**{"rate": 0.4, **options})
    return await stage.transform(Request(messages, documents))


async def test_system_and_tool_messages_and_the_last_turn_stay_as_they_are() -> None:
    chat = (SYSTEM, Message.user(NOTES), CALL, TOOL, ASKED)
    after = (await compressed(*chat)).messages
    assert (after[0], after[2], after[3], after[4]) == (SYSTEM, CALL, TOOL, ASKED)
    assert len(after[1].text) < 0.6 * len(NOTES)


async def test_parts_that_are_no_text_pass_untouched_and_in_order() -> None:
    content = [{"type": "text", "text": NOTES, "cache_control": {"type": "ephemeral"}}, IMAGE]
    old = Message.from_dict({"role": "user", "content": content, "name": "Ann"})
    new = (await compressed(old, ASKED)).messages[0].to_dict()
    assert new["name"] == "Ann"
    assert new["content"][1] == IMAGE
    assert new["content"][0]["cache_control"] == {"type": "ephemeral"}
    assert len(new["content"][0]["text"]) < len(NOTES)


@pytest.mark.parametrize("text", ["ok", "No.", "Please do not send it to Bob.", ""])
async def test_a_short_turn_is_left_alone(text: str) -> None:
    after = await compressed(Message.user(text), Message.assistant(NOTES), ASKED, rate=0.1)
    assert after.messages[0].text == text


@pytest.mark.parametrize("budget", [{"rate": 0.001}, {"threshold": 1}, {"target_tokens": 1}])
async def test_no_message_is_ever_emptied_and_the_report_says_so(budget: dict[str, Any]) -> None:
    options = {"rate": None, **budget}
    after = await compressed(Message.user(NOTES), Message.assistant("ok"), ASKED, **options)
    assert after.messages[0].text == NOTES
    row = after.report.stages[-1]
    assert "1 texts stay whole: the budget leaves nothing of them" in row.decision
    assert row.details["left_whole"] == 1
    assert row.tokens_in == row.tokens_out


@pytest.mark.parametrize("name", ["rate", "target_tokens", "quality"])
async def test_a_budget_of_nothing_is_refused_unless_something_must_stay(name: str) -> None:
    with pytest.raises(InvalidRequest, match=f"^{name}=0 leaves nothing of a message.* out$"):
        Compress(**cast("Any", {name: 0}))
    with pytest.raises(InvalidRequest, match=r"^the rate of tool messages: rate=0 leaves nothing"):
        Compress(0.5, rates={"tool": {0: 0.5, 4: 0}})
    options: dict[str, Any] = {"rate": None, "keep": ("rye",), name: 0}
    after = await compressed(Message.user(NOTES), ASKED, **options)
    assert set(re.findall(r"\w+", after.messages[0].text)) == {"rye"}


async def test_a_document_that_nothing_is_left_of_is_left_out_and_counted() -> None:
    documents = (Document("Well, you know, it is what it is."), Document(NOTES, id="notes"))
    after = await compressed(ASKED, documents=documents, target_tokens=60, rate=None)
    assert [d.id for d in after.documents] == ["notes"]
    assert "nothing left of 1 documents" in after.report.stages[-1].decision


async def test_a_documents_file_name_says_what_it_is() -> None:
    row = "7,rye\n"
    documents = (Document(row, title="sacks.csv"), Document(row, metadata={"source": "a/b.csv"}))
    after = await compressed(ASKED, documents=(*documents, Document(NOTES)))
    assert [d.text for d in after.documents[:2]] == [row, row]


async def test_the_last_turn_is_cut_only_when_asked_and_its_task_stays() -> None:
    (after,) = (await compressed(ASKED, last_user="context")).messages
    assert after.text.endswith("How many sacks on day 7?")
    assert len(after.text) < 0.6 * len(ASKED.text)


async def test_a_last_turn_without_line_breaks_is_cut_too() -> None:
    asked = Message.user(NOTES.replace("\n", " ") + " How many sacks on day 7?")
    (after,) = (await compressed(asked, last_user="context")).messages
    assert after.text.endswith("How many sacks on day 7?")
    assert len(after.text) < 0.6 * len(asked.text)


async def test_nothing_to_cut_is_said() -> None:
    after = await compressed(ASKED)
    assert after.messages == (ASKED,)
    assert "nothing that may be cut" in after.report.stages[-1].decision


async def test_the_same_text_becomes_the_same_bytes() -> None:
    first = await compressed(Message.user(NOTES), ASKED)
    again = await compressed(Message.user(NOTES), ASKED)
    assert first.messages == again.messages


def test_a_wrong_budget_is_said_when_the_stage_is_made() -> None:
    with pytest.raises(InvalidRequest, match=r"1\.5"):
        Compress(1.5)
    with pytest.raises(InvalidRequest):
        Compress()


ORDERS = json.dumps(
    [
        {
            "id": i,
            "status": "shipped",
            "note": f"Order {i}: the customer called twice and asked whether the miller could "
            "please send it later, because nobody will be at home before the 5th of May, and the "
            "neighbours must not be asked to take it in for them this time.",
        }
        for i in range(6)
    ],
    indent=2,
)


def asks(name: str, call_id: str) -> Message:
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}
    return Message.from_dict({"role": "assistant", "content": None, "tool_calls": [call]})


def answers(call_id: str, text: str) -> Message:
    return Message.from_dict({"role": "tool", "tool_call_id": call_id, "content": text})


def turns() -> list[list[Message]]:
    """Six user turns, each with what comes before it since the one before."""
    said = [NOTES.replace("miller", who) for who in ("miller", "baker", "smith", "cook", "duke")]
    chat: list[list[Message]] = [[SYSTEM, Message.user(f"How much rye is there?\n\n{NOTES}")]]
    for i, text in enumerate(said):
        chat.append(
            [
                asks("orders", f"c{i}"),
                answers(f"c{i}", ORDERS.replace("Order ", f"Order {i}-")),
                Message.assistant(text),
                Message.user(f"And what of day {i + 3}?"),
            ]
        )
    return chat


async def sent_each_turn(**options: Any) -> list[list[dict[str, Any]]]:
    """Return the messages that the engine sees turn by turn, each by a stage of its own."""
    seen: list[list[dict[str, Any]]] = []
    chat: list[Message] = []
    for turn in turns():
        chat += turn
        after = await compressed(*chat, **options)
        seen.append([message.to_dict() for message in after.messages])
    return seen


async def test_a_new_turn_changes_nothing_before_the_last_one() -> None:
    seen = await sent_each_turn(rates={"tool": 0.5})
    for before, after in pairwise(seen):
        last = max(i for i, message in enumerate(before) if message["role"] == "user")
        assert json.dumps(after[:last]) == json.dumps(before[:last])
    sizes = [len(json.dumps(messages)) for messages in seen]
    assert sizes[-1] < 0.75 * len(json.dumps([m.to_dict() for t in turns() for m in t]))


async def test_without_stable_the_question_changes_earlier_turns() -> None:
    seen = await sent_each_turn(stable=False)
    assert any(
        json.dumps(after[: len(before) - 1]) != json.dumps(before[:-1])
        for before, after in pairwise(seen[1:])
    )


async def test_a_message_does_not_depend_on_what_was_compressed_before() -> None:
    stage = Compress(0.4)
    chat = [message for turn in turns() for message in turn]
    for number in (4, 12, len(chat)):
        await stage.transform(Request((*chat[:number], ASKED)))
    used = await stage.transform(Request((*chat, ASKED)))
    assert used.messages == (await compressed(*chat, ASKED)).messages


async def test_documents_are_cut_for_the_question_also_when_turns_are_stable() -> None:
    for day in (3, 17):
        after = await compressed(
            Message.user(NOTES),
            Message.user(f"How many sacks on day {day}?"),
            documents=(Document(NOTES),),
            rate=0.2,
        )
        assert re.search(rf"\bday {day} .*\b{3 * day} sacks", after.documents[0].text)


async def test_tool_results_that_are_json_stay_json_and_calls_stay_paired() -> None:
    chat = [message for turn in turns() for message in turn]
    after = (await compressed(*chat, rates={"tool": 0.5})).messages
    for old, new in zip(chat, after, strict=True):
        assert new.fields == old.fields
        if old.fields.get("tool_calls"):
            assert new == old
        elif old.role == "tool":
            rows, kept = json.loads(old.text), json.loads(new.text)
            assert [(r["id"], r["status"]) for r in kept] == [(r["id"], r["status"]) for r in rows]
            assert all(len(k["note"]) < len(r["note"]) for k, r in zip(kept, rows, strict=True))


async def test_a_tools_log_is_folded() -> None:
    log = "".join(f"2024-01-02 10:00:{i:02} INFO Ground sack {i}\n" for i in range(50))
    chat = (asks("f", "c"), answers("c", log), ASKED)
    after = await compressed(*chat, rates={"tool": 0.3})
    assert "[48 more lines like this]" in after.messages[1].text
    plain = await compressed(*chat, rates={"tool": 0.3}, fold=False)
    assert "more lines" not in plain.messages[1].text


async def test_a_rate_by_age_cuts_more_of_what_is_older() -> None:
    chat = [message for turn in turns() for message in turn]
    after = (await compressed(*chat, rates={"tool": {2: 0.7, 4: 0.55}})).messages
    sizes = [len(message.text) for message in after if message.role == "tool"]
    full = len(answers("c", ORDERS.replace("Order ", "Order 0-")).text)
    assert sizes[1] == pytest.approx(sizes[0], rel=0.05)
    assert sizes[3] == pytest.approx(sizes[2], rel=0.05)
    assert max(sizes[:2]) < min(sizes[2:4]) <= max(sizes[2:4]) < sizes[4] == full


async def test_age_0_is_the_turn_that_is_going_on_but_never_its_question() -> None:
    chat = (ASKED, asks("f", "c"), answers("c", NOTES))
    after = (await compressed(*chat, rates={"tool": {0: 0.3}, "user": {0: 0.3}})).messages
    assert after[0] == ASKED
    assert len(after[2].text) < 0.5 * len(NOTES)
    assert (await compressed(*chat, rates={"tool": 0.3})).messages == chat


async def test_a_role_has_its_own_rate_in_both_ways() -> None:
    for stable in (True, False):
        chat = (SYSTEM, Message.user(NOTES), Message.assistant(NOTES), ASKED)
        rates = {"system": 0.5, "user": 1, "assistant": 0.2}
        after = (await compressed(*chat, rates=rates, stable=stable)).messages
        assert len(after[0].text) < 0.7 * len(SYSTEM.text)
        assert after[1].text == NOTES
        assert len(after[2].text) < 0.3 * len(NOTES)


async def test_tools_are_shortened_only_when_asked() -> None:
    tool = {
        "type": "function",
        "function": {"name": "f", "description": SYSTEM.text, "parameters": {"type": "object"}},
    }
    request = Request((ASKED,), sampling=Sampling(extra={"tools": [tool], "tool_choice": "auto"}))
    assert (await Compress(0.4).transform(request)).sampling == request.sampling
    after = await Compress(0.4, tools=0.4).transform(request)
    (short,) = after.sampling.extra["tools"]
    assert 0 < len(short["function"].pop("description")) < 0.6 * len(SYSTEM.text)
    assert short["function"] == {"name": "f", "parameters": {"type": "object"}}
    assert after.sampling.extra["tool_choice"] == "auto"
    row = after.report.stages[-1]
    assert (row.tokens_out or 0) < (row.tokens_in or 0)


async def test_the_engine_gets_fewer_bytes() -> None:
    got: list[Request] = []

    async def engine(request: Request) -> AsyncGenerator[Event, None]:
        got.append(request)
        yield Finished(Response("ok"))

    async for _ in Compress(0.4)(Request((Message.user(NOTES), ASKED)), engine):
        pass
    assert len(got[0].messages[0].text) < 0.5 * len(NOTES)
    assert got[0].report.tokens_saved > 0


@pytest.mark.parametrize(
    "options",
    [
        {"rates": {"tool": 1.5}},
        {"rates": {"tools": 0.5}},
        {"rates": {"tool": {-1: 0.5}}},
        {"rates": {"tool": {"old": 0.5}}},
        {"rates": 0.5},
        {"tools": 2},
    ],
)
def test_a_wrong_option_is_said_when_the_stage_is_made(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        Compress(**{"rate": 0.5, **options})


def test_a_stage_is_stable_unless_a_number_of_tokens_is_asked_for() -> None:
    assert Compress(0.5).is_stable
    assert Compress(threshold=0.5).is_stable
    assert not Compress(target_tokens=50).is_stable
    assert not Compress(0.5, stable=False).is_stable
    assert Compress(target_tokens=50, stable=True).is_stable


async def test_a_number_of_tokens_is_for_all_turns_or_stable_for_each() -> None:
    count = Compress(0.5).engine.counter.count
    chat = [Message.user(NOTES), Message.assistant(NOTES[:600]), Message.user(NOTES[200:])]
    options: dict[str, Any] = {"rate": None, "target_tokens": 60}
    for stable in (None, True):
        now = await compressed(*chat, ASKED, stable=stable, **options)
        later = await compressed(*chat, ASKED, Message.user("And?"), stable=stable, **options)
        sizes = [count(message.text) for message in now.messages[:3]]
        assert (now.messages[:3] == later.messages[:3]) is (stable is True)
        assert max(sizes) <= 60
        assert (sum(sizes) <= 60) is (stable is None)
        said = "one budget for all turns, so those sent before may change"
        assert (said in now.report.stages[-1].decision) is (stable is None)
    documents = (Document(NOTES),)
    row = (await compressed(ASKED, documents=documents, **options)).report.stages[-1]
    assert "all turns" not in row.decision  # there are none
    assert isinstance(hash(Compress(0.5, rates={"tool": 0.3})), int)


def test_the_memory_is_bounded_and_forgets_what_was_used_least() -> None:
    memory = Memory[int](size=2)
    for key in ("a", "b", "a", "c", "\ud800"):
        memory.get(key, lambda: 1)
    assert memory.get("\ud800", lambda: 2) == 1
    assert memory.get("a", lambda: 2) == 2
