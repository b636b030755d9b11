"""The responses API through the proxy, as the openai client gets it."""

from __future__ import annotations

import json
from typing import Any

import openai
from engine.proxied import LEXICAL, LONG, Start, history
from engine.upstream import Upstream, says, streams

TEXT = {"type": "output_text", "text": "Ann.", "annotations": []}
ITEM: dict[str, Any] = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [TEXT],
}
USED = {
    "input_tokens": 9,
    "output_tokens": 2,
    "total_tokens": 11,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens_details": {"reasoning_tokens": 0},
}
RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "tiny",
    "status": "completed",
    "output": [ITEM],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": USED,
}
ITEMS: Any = [
    *history()["messages"][1:3],
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"mill": 7}'},
    {"type": "function_call_output", "call_id": "c1", "output": '{"builder": "Ann"}'},
    history()["messages"][-1],
]


def named(kind: str, number: int, **fields: Any) -> bytes:
    data = {"type": kind, "sequence_number": number, **fields}
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n".encode()


def events() -> list[bytes]:
    begun = {**RESPONSE, "status": "in_progress", "output": [], "usage": None}
    at = {"item_id": "msg_1", "output_index": 0, "content_index": 0, "logprobs": []}
    return [
        named("response.created", 0, response=begun),
        named("response.output_item.added", 1, output_index=0, item={**ITEM, "content": []}),
        named("response.content_part.added", 2, part={**TEXT, "text": ""}, **at),
        named("response.output_text.delta", 3, delta="An", **at),
        named("response.output_text.delta", 4, delta="n.", **at),
        named("response.output_text.done", 5, text="Ann.", **at),
        named("response.completed", 6, response=RESPONSE),
    ]


def test_a_response_has_its_old_turns_cut_and_says_so(server: Upstream, start: Start) -> None:
    server.script = says(RESPONSE)
    proxy = start(LEXICAL)
    with proxy.client() as client:
        answer = client.responses.create(model="tiny", input=ITEMS, instructions=LONG)
    assert answer.output_text == "Ann."
    sent = server.seen[-1].body
    assert sent["instructions"] == LONG
    same = [new == old for new, old in zip(sent["input"], ITEMS, strict=True)]
    assert same == [False, True, True, True, True]
    assert len(sent["input"][0]["content"]) < 0.4 * len(LONG)
    usage: Any = answer.usage
    assert (usage.input_tokens, usage.output_tokens) == (9, 2)
    assert usage.headrace["tokens_saved"] > 100
    proxy.counts(4, "usage_tokens_total", policy="*", kind="cached")
    proxy.counts(1, "requests_total", route="responses", policy="*", status="200")


def test_a_streamed_response_comes_event_by_event_and_is_counted(
    server: Upstream, start: Start
) -> None:
    server.script = streams(*events())
    proxy = start(LEXICAL)
    with proxy.client() as client:
        asked: Any = {"model": "tiny", "input": ITEMS, "stream": True}
        got = list(client.responses.create(**asked))
    assert [one.type for one in got] == [
        json.loads(e.split(b"data: ")[1])["type"] for e in events()
    ]
    assert "".join(one.delta for one in got if one.type.endswith("text.delta")) == "Ann."
    assert got[-1].response.usage.headrace["tokens_saved"] > 100
    assert len(server.seen[-1].body["input"][0]["content"]) < 0.4 * len(LONG)
    assert "stream_options" not in server.seen[-1].body
    for kind, count in (("prompt", 9), ("completion", 2), ("cached", 4)):
        proxy.counts(count, "usage_tokens_total", policy="*", kind=kind)


def test_without_a_policy_both_are_what_the_server_said(server: Upstream, start: Start) -> None:
    asked: Any = {"model": "tiny", "input": "Who?"}
    with openai.OpenAI(base_url=server.url, api_key="k") as direct, start().client() as client:
        server.script = says(RESPONSE)
        whole = [one.responses.create(**asked) for one in (direct, client)]
        server.script = streams(*events())
        streamed = [list(one.responses.create(**asked, stream=True)) for one in (direct, client)]
        with client.responses.stream(**asked) as stream:
            final = stream.get_final_response()
    assert whole[0] == whole[1]
    assert streamed[0] == streamed[1]
    assert final.output_text == "Ann."
    bodies = [seen.raw for seen in server.seen]
    assert bodies[0] == bodies[1]
    assert bodies[2] == bodies[3]
