"""Answers in parts through the proxy, as the openai client gets them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import openai
import pytest
from engine.proxied import Start, chat, until
from engine.upstream import DONE, USAGE, Script, Upstream, event, posts, says, streams
from starlette.requests import Request
from starlette.responses import Response

WORDS = ("one", "two", "three", "four", "five")
LIST = "Translate each sentence to French:\n" + "\n".join(
    f"{at}. Sentence {word}." for at, word in enumerate(WORDS, 1)
)
ANSWER = "\n".join(f"{at}. Phrase {word}." for at, word in enumerate(WORDS, 1))
MAP = '[models."*"]\nplan = "map"\n'
REPORTED: Any = {"include_usage": True}


def replies(text: Callable[[str], str | Script]) -> Script:
    """Answer each call, in two pieces, with what is made of its last message."""

    async def script(request: Request) -> Response:
        said = text((await request.json())["messages"][-1]["content"])
        if callable(said):
            return await said(request)
        half = len(said) // 2
        first, rest = event({"content": said[:half]}), event({"content": said[half:]}, "stop")
        return await streams(first, rest, event(usage=USAGE), DONE)(request)

    return posts(script)


def phrase(asked: str) -> str:
    item = asked.rpartition("Item: ")[2]
    return f"Phrase {item.removeprefix('Sentence ')}" if item != asked else "All at once."


def calls(server: Upstream) -> list[Any]:
    return [seen.body for seen in server.seen if seen.method == "POST"]


def test_a_planned_answer_is_one_answer_with_the_usage_of_all_its_calls(
    server: Upstream, start: Start
) -> None:
    server.script = replies(phrase)
    proxy = start(MAP)
    with proxy.client() as client:
        answer = client.chat.completions.create(**chat(LIST))
    [choice] = answer.choices
    assert (choice.message.role, choice.message.content) == ("assistant", ANSWER)
    assert choice.finish_reason == "stop"
    assert len(calls(server)) == 5
    usage: Any = answer.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (45, 10, 55)
    assert usage.headrace["num_calls"] == 5
    stages = {row["stage"]: row["decision"] for row in usage.headrace["stages"]}
    assert stages["plan"].startswith("wrote 5 parts")
    proxy.counts(45, "usage_tokens_total", policy="*", kind="prompt")
    proxy.counts(10, "usage_tokens_total", policy="*", kind="completion")
    proxy.counts(1, "requests_total", route="chat", policy="*", status="200")


@pytest.mark.parametrize("is_counted", [True, False])
def test_a_planned_answer_streams_its_parts_in_order(
    is_counted: bool, server: Upstream, start: Start
) -> None:
    server.script = replies(phrase)
    fields = {"stream_options": REPORTED} if is_counted else {}
    with start(MAP).client() as client:
        create: Any = client.chat.completions.create
        chunks = list(create(**chat(LIST), stream=True, **fields))
    rest = chunks[:-1] if is_counted else chunks
    assert all(len(chunk.choices) == 1 for chunk in rest)
    pieces = [chunk.choices[0].delta.content or "" for chunk in rest]
    assert "".join(pieces) == ANSWER
    assert len([piece for piece in pieces if piece]) >= 5
    assert [chunk.choices[0].delta.role for chunk in rest if chunk.choices[0].delta.role] \
        == ["assistant"]  # fmt: skip
    reasons = [chunk.choices[0].finish_reason for chunk in rest]
    assert reasons == [None] * (len(rest) - 1) + ["stop"]
    assert len({(chunk.id, chunk.model) for chunk in chunks}) == 1
    if is_counted:
        usage = chunks[-1].usage
        assert (chunks[-1].choices, usage.prompt_tokens, usage.completion_tokens) == ([], 45, 10)
        assert usage.headrace["num_calls"] == 5
        assert any(row["stage"] == "plan" for row in usage.headrace["stages"])
    else:
        assert all(chunk.usage is None for chunk in chunks)


def test_a_skeleton_is_planned_by_the_server_itself(server: Upstream, start: Start) -> None:
    def reply(asked: str) -> str:
        found = re.search(r'What can you say about point (\d+), "', asked)
        return f"Text of part {found[1]}." if found else "1. Heart\n2. Mood\n3. Sleep\n"

    server.script = replies(reply)
    with start('[models."*"]\nplan = "skeleton"\n').client() as client:
        create: Any = client.chat.completions.create
        asked = chat("What are the benefits of regular exercise?")
        *rest, last = create(**asked, stream=True, stream_options=REPORTED)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in rest)
    at = [text.index(f"{title}") for title in ("Heart", "Mood", "Sleep")]
    assert at == sorted(at)
    num_calls = len(calls(server))
    assert last.usage.headrace["num_calls"] == num_calls >= 1
    assert last.usage.completion_tokens == 2 * num_calls


def test_what_has_no_plan_is_one_call_and_says_why(server: Upstream, start: Start) -> None:
    server.script = replies(phrase)
    with start(MAP).client() as client:
        answer: Any = client.chat.completions.create(**chat("What is a mill?"))
    assert answer.choices[0].message.content == "All at once."
    assert len(calls(server)) == 1
    [row] = [one for one in answer.usage.headrace["stages"] if one["stage"] == "plan"]
    assert row["decision"] == "no plan: no list of items was found in the prompt"


def test_a_part_that_the_server_refuses_keeps_its_place(server: Upstream, start: Start) -> None:
    def reply(asked: str) -> str | Script:
        return says({"error": {"message": "no"}}, 400) if "four" in asked[-20:] else phrase(asked)

    server.script = replies(reply)
    with start(MAP).client() as client:
        answer = client.chat.completions.create(**chat(LIST))
    lines = (answer.choices[0].message.content or "").split("\n")
    assert [lines[i] for i in (0, 3, 4)] == ["1. Phrase one.", "4. [no answer]", "5. Phrase five."]
    assert answer.choices[0].finish_reason == "length"


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_server_that_refuses_every_part_is_an_error(
    is_stream: bool, server: Upstream, start: Start
) -> None:
    server.script = posts(says({"error": {"message": "down"}}, 503))
    proxy = start(f"keepalive = 0\n{MAP}")  # a comment would begin the stream
    asked: Any = chat(LIST, stream=is_stream)
    with proxy.client() as client, pytest.raises(openai.APIStatusError) as error:
        client.chat.completions.create(**asked)
    assert error.value.status_code == 429
    assert error.value.response.headers["x-headrace-decision"] == "answered"
    until(lambda: proxy.proxy.gate.num_open == 0)


def test_who_leaves_in_the_middle_of_a_part_stops_the_server(
    server: Upstream, start: Start
) -> None:
    endless = streams(*[event({"content": "word "})] * 5000, pause=0.01)
    server.script = replies(lambda asked: endless)
    proxy = start(MAP)
    with proxy.client() as client:
        create: Any = client.chat.completions.create
        stream = create(**chat(LIST), stream=True)
        assert next(stream).choices[0].delta.content
        stream.close()
    assert server.aborted.wait(20)
    until(lambda: proxy.proxy.gate.num_open == 0)
    proxy.counts(1, "disconnects_total", route="chat")
