from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.middleware.types import Message
from headrace.planners import Mode, Node
from headrace.planners.prompts import continue_messages, node_messages, plan_messages


@given(st.text(min_size=1), st.text(min_size=1), st.text())
def test_no_text_is_a_template(question: str, title: str, written: str) -> None:
    planned = plan_messages((Message.user(question),), "skeleton", 8)
    assert planned[0].text.startswith(question)
    texts = {1: ("T", written)}
    node = node_messages(planned, "1. T", Node(2, title), texts)
    assert title in node[-1].text
    assert written in node[-1].text
    if written.strip():
        assert continue_messages(node, written)[-2].text == written
    else:
        assert continue_messages(node, written) == node


def test_the_users_message_keeps_its_parts_and_fields() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:"}}
    asked = {"role": "user", "name": "Ann", "content": [{"type": "text", "text": "Q?"}, picture]}
    [planned] = plan_messages((Message.from_dict(asked),), "graph", 5)
    written = planned.to_dict()
    assert written["name"] == "Ann"
    assert written["content"][:2] == asked["content"]
    assert "3 to 5" in written["content"][2]["text"]


def test_all_parts_begin_with_the_same_messages() -> None:
    planned = plan_messages((Message.system("S"), Message.user("Q?")), "skeleton", 8)
    one = node_messages(planned, "1. A\n2. B", Node(1, "A"), {})
    two = node_messages(planned, "1. A\n2. B", Node(2, "B"), {1: ("A", "text")})
    assert one[:3] == two[:3]
    assert [message.role for message in two] == ["system", "user", "assistant", "user"]


def test_needed_texts_come_in_order_and_soft_ones_by_number() -> None:
    node = Node(4, "D", needs=(1, 3), agrees=(2,), note="leave out the cost")
    texts = {3: ("C", "third"), 1: ("A", "first")}
    text = node_messages((Message.user("Q"),), "plan", node, texts)[-1].text
    assert text.index("first") < text.index("third") < text.index('point 4, "D"')
    assert "agree with part 2" in text
    assert "leave out the cost" in text


def test_the_language_of_the_question_is_asked_for() -> None:
    node = node_messages((Message.user("问?"),), "1. 甲", Node(1, "甲"), {})
    assert "language of the question" in node[-1].text
    modes: tuple[Mode, ...] = ("skeleton", "graph")
    for mode in modes:
        assert "language of the question" in plan_messages((Message.user("问?"),), mode, 8)[0].text
