from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import Document, InvalidRequest, Message, Request, Sampling

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
CACHED = {"type": "text", "text": "long", "cache_control": {"type": "ephemeral"}}

values = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
fields = st.dictionaries(st.text(max_size=8).filter(lambda k: k not in ("role", "content")), values)
parts = st.lists(
    st.builds(lambda text: {"type": "text", "text": text}, st.text(max_size=9))
    | st.just(IMAGE)
    | st.just(CACHED)
    | st.dictionaries(st.text(max_size=5), values, max_size=3)
    | st.text(max_size=5)
)


@given(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "user", "assistant", "tool", "developer"])},
        optional={"content": st.none() | st.text() | parts},
    ),
    fields,
)
def test_a_message_comes_out_as_it_went_in(core: dict[str, Any], rest: dict[str, Any]) -> None:
    data = {**core, **rest}
    assert Message.from_dict(data).to_dict() == data


@pytest.mark.parametrize(
    "data", [{}, {"role": ""}, {"role": 3}, {"role": "user", "content": 5}, {"content": "x"}]
)
def test_a_message_without_sense_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        Message.from_dict(data)


def test_the_question_is_the_last_user_message() -> None:
    chat = (Message.user("first"), Message.assistant("yes"), Message.user("last"))
    assert Request(chat).question == "last"
    assert Request(chat, question="mine").question == "mine"


def test_a_request_without_messages_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="at least one message"):
        Request(())


def test_documents_come_before_the_users_own_words_and_in_order() -> None:
    request = Request(
        (Message.system("Be brief."), Message.user("Who?")),
        (Document("Ann did.", title="Log"), Document("Not Bob.")),
    )
    system, user = request.with_documents_inline().messages
    assert system == Message.system("Be brief.")
    assert user.text == ("Context:\n\n[1] Log\nAnn did.\n\n[2]\nNot Bob.\n\nQuestion: Who?")


def test_documents_are_written_in_once() -> None:
    once = Request((Message.user("Who?"),), (Document("Ann."),)).with_documents_inline()
    assert once.documents == ()
    assert once.with_documents_inline() is once
    assert once.question == "Who?"


def test_documents_leave_other_parts_alone() -> None:
    message = Message.from_dict({"role": "user", "content": [CACHED, IMAGE]})
    (user,) = Request((message,), (Document("Ann."),)).with_documents_inline().messages
    content = user.to_dict()["content"]
    assert content[1:] == [CACHED, IMAGE]
    assert "Ann." in content[0]["text"]


@pytest.mark.parametrize(
    "options", [{"max_tokens": 0}, {"max_tokens": -3}, {"temperature": -1}, {"top_p": 0}]
)
def test_sampling_out_of_range_is_refused_with_its_value(options: dict[str, float]) -> None:
    (value,) = options.values()
    with pytest.raises(InvalidRequest, match=str(value)):
        Sampling(**options)  # type: ignore[arg-type]
