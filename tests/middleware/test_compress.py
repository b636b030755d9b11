"""What the stage may touch, on real text with the default scorer."""

from __future__ import annotations

from typing import Any

import pytest

from headrace import Compress, Document, InvalidRequest, Message, Request

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


async def test_no_message_is_ever_emptied() -> None:
    after = await compressed(Message.user(NOTES), ASKED, rate=0)
    assert after.messages[0].text


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
