"""What of a prompt is cut, and what is never touched."""

from __future__ import annotations

import json
import logging
from typing import Any

import httpx
import pytest
from engine.proxied import LEXICAL, LONG, Start, chat, history
from engine.upstream import (
    Upstream,
    hangs,
    says,
)

PATH = "/chat/completions"
RECORDS = json.dumps([{"id": i, "note": SAID} for i, SAID in enumerate([LONG[:200]] * 5)])
CALLS = [
    {"id": f"c{i}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    for i in (1, 2)
]
AGENT: list[dict[str, Any]] = [
    {"role": "system", "content": LONG},
    {"role": "user", "content": LONG},
    {"role": "assistant", "content": None, "tool_calls": CALLS[:1]},
    {"role": "tool", "tool_call_id": "c1", "content": RECORDS},
    {"role": "assistant", "content": LONG, "tool_calls": CALLS[1:]},
    {"role": "tool", "tool_call_id": "c2", "content": json.dumps(LONG)},
    {"role": "user", "content": "And now?"},
]


def sent(server: Upstream, start: Start, messages: Any, text: str = LEXICAL, **more: Any) -> Any:
    body = {"model": "tiny", "messages": messages, **more}
    answer = httpx.post(start(text).url + PATH, json=body, timeout=30)
    assert answer.status_code == 200
    return server.seen[-1].body


def test_tool_calls_and_their_results_are_left_alone(server: Upstream, start: Start) -> None:
    messages = sent(server, start, AGENT)["messages"]
    same = [new == old for new, old in zip(messages, AGENT, strict=True)]
    assert same == [True, False, True, True, True, True, True]


def test_results_that_are_to_be_cut_stay_json_with_all_records(
    server: Upstream, start: Start
) -> None:
    text = LEXICAL + "rates = { tool = 0.3 }\n"
    messages = sent(server, start, AGENT, text)["messages"]
    records = json.loads(messages[3]["content"])
    assert [record["id"] for record in records] == [0, 1, 2, 3, 4]
    assert all(set(record) == {"id", "note"} for record in records)
    assert len(messages[3]["content"]) < len(RECORDS)
    assert isinstance(json.loads(messages[5]["content"]), str)  # a text in JSON stays one
    assert [m.get("tool_call_id") for m in messages] == [m.get("tool_call_id") for m in AGENT]
    assert [m.get("tool_calls") for m in messages] == [m.get("tool_calls") for m in AGENT]


def test_long_arguments_are_the_same_bytes(server: Upstream, start: Start) -> None:
    arguments = json.dumps({"text": 'a \\ " é🙂 ' * 10_000})
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
    agent = [AGENT[1], {"role": "assistant", "tool_calls": [call]}, AGENT[-1]]
    messages = sent(server, start, agent, LEXICAL + "rates = { assistant = 0.1 }\n")["messages"]
    assert messages[1]["tool_calls"][0]["function"]["arguments"] == arguments


def test_a_top_level_system_prompt_stays_where_it_is(server: Upstream, start: Start) -> None:
    server.script = says({"type": "message", "usage": {"input_tokens": 3, "output_tokens": 1}})
    body = {"model": "m", "system": LONG, "max_tokens": 5, "messages": history()["messages"][1:]}
    httpx.post(start(LEXICAL).url + "/messages", json=body, timeout=30)
    assert server.seen[-1].body["system"] == LONG
    roles = [message["role"] for message in server.seen[-1].body["messages"]]
    assert roles == ["user", "assistant", "user"]
    assert len(server.seen[-1].body["messages"][0]["content"]) < 0.4 * len(LONG)


def test_pictures_and_kept_parts_are_the_same_objects(server: Upstream, start: Start) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "x"}}
    kept = {"type": "text", "text": LONG, "headrace": "keep"}
    parts = [{"type": "text", "text": LONG}, image, kept, {"type": "text", "text": LONG}]
    messages = sent(server, start, [{"role": "user", "content": parts}, AGENT[-1]])["messages"]
    first, picture, same, last = messages[0]["content"]
    assert picture == image
    assert same == {"type": "text", "text": LONG}
    assert max(len(first["text"]), len(last["text"])) < 0.4 * len(LONG)


def test_a_turn_is_the_same_bytes_in_every_later_request(server: Upstream, start: Start) -> None:
    chat_so_far: list[dict[str, Any]] = [{"role": "system", "content": LONG}]
    before: list[Any] = []
    for turn in range(10):
        chat_so_far.append({"role": "user", "content": f"{turn}. {LONG} What of mill {turn}?"})
        # A new proxy each time: nothing is remembered.
        messages = sent(server, start, chat_so_far)["messages"]
        assert messages[: len(before)] == before
        assert messages[-1] == chat_so_far[-1]
        before = messages[:-1]
        chat_so_far.append({"role": "assistant", "content": f"I think that {LONG}"})
    assert all(len(m["content"]) < 0.5 * len(LONG) for m in before[1:])


def test_no_tool_and_no_marker_is_added(server: Upstream, start: Start) -> None:
    tools = [{"type": "function", "function": {"name": "f"}}]
    body = sent(server, start, AGENT, tools=tools)
    assert body["tools"] == tools
    assert set(body) == {"model", "messages", "tools"}
    assert "tools" not in sent(server, start, AGENT)
    words = set(LONG.split())
    assert set(body["messages"][1]["content"].split()) <= words


def test_a_stage_that_fails_lets_the_request_pass(
    server: Upstream,
    start: Start,
    http: httpx.Client,
    damaged: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    proxy = start(f'[models."*"]\nrate = 0.5\ncompressor = "{damaged}"\n')
    answer = http.post(proxy.url + PATH, json=history())
    assert answer.headers["x-headrace-decision"] == "failed"
    assert server.seen[-1].body == history()
    assert "sent as it came" in caplog.text


def test_no_key_and_no_prompt_is_ever_logged_or_counted(
    server: Upstream, start: Start, http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    key, prompt = "sk-very-secret-1234567890", "a very private prompt"
    headers = {"authorization": f"Bearer {key}"}
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("httpcore").setLevel(logging.WARNING)  # it logs headers, at DEBUG only
        proxy = start("timeout = 0.2\n")
        server.script = says({"error": {"message": "bad key"}}, 401)
        first = http.post(proxy.url + PATH, json=chat(prompt), headers=headers)
        server.script = hangs()
        second = http.post(proxy.url + PATH, json=chat(prompt), headers=headers)
        third = http.post(proxy.url + PATH, json=chat(prompt, headrace={"x": 1}), headers=headers)
    assert (first.status_code, second.status_code, third.status_code) == (401, 504, 400)
    metrics = http.get(proxy.url.removesuffix("/v1") + "/metrics").text
    ours = "\n".join(r.getMessage() for r in caplog.records if "headrace" in r.name)
    for text in (second.text, third.text, metrics, ours):
        assert key not in text
        assert prompt not in text
