"""What the tool ``retrieve`` gave back is sent whole, in every shape that a chat may have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headrace import Compress, Request
from headrace.middleware.wrap_bodies import Kind
from headrace.middleware.wrap_options import Options
from headrace.middleware.wrap_prepare import prepare

PARTS = (Path(__file__).resolve().parents[2] / "LICENSE").read_text().split("\n\n")
LONG = " ".join(PARTS[4:9])
ASKED = {"call_id": "a"}
ASKS = {"role": "user", "content": "What does it say of patents?"}
OPTIONS = Options.of({"rates": {"tool": {0: 0.3}}, "compressor": "lexical"})


def chat(name: str = "retrieve", arguments: Any = ASKED, asked_id: str = "b") -> list[Any]:
    """Return a chat in which a result is asked for again."""

    def call(call_id: str, name: str, given: Any) -> dict[str, Any]:
        function = {"name": name, "arguments": json.dumps(given)}
        calls = [{"id": call_id, "type": "function", "function": function}]
        return {"role": "assistant", "content": None, "tool_calls": calls}

    return [
        {"role": "user", "content": "Read part one."},
        call("a", "read", {"part": 1}),
        {"role": "tool", "tool_call_id": "a", "content": LONG},
        call(asked_id, name, arguments),
        {"role": "tool", "tool_call_id": asked_id, "content": LONG},
        ASKS,
    ]


ANTHROPIC = [
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "a", "name": "read", "input": {}}],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": LONG}]},
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "b", "name": "retrieve", "input": ASKED}],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "b", "content": LONG}]},
    ASKS,
]
RESPONSES = [
    {"type": "function_call", "call_id": "a", "name": "read", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "a", "output": LONG},
    {"type": "function_call", "call_id": "b", "name": "retrieve", "arguments": json.dumps(ASKED)},
    {"type": "function_call_output", "call_id": "b", "output": LONG},
    ASKS,
]
OLDER = [
    {"role": "assistant", "function_call": {"name": "read", "arguments": "{}"}, "content": None},
    {"role": "function", "name": "read", "content": LONG},
    {
        "role": "assistant",
        "function_call": {"name": "retrieve", "arguments": json.dumps(ASKED)},
        "content": None,
    },
    {"role": "function", "name": "retrieve", "content": LONG},
    ASKS,
]


@pytest.mark.parametrize(
    ("kind", "key", "said"),
    [
        ("chat", "messages", chat()),
        ("messages", "messages", ANTHROPIC),
        ("responses", "input", RESPONSES),
    ],
)
async def test_clients_and_the_proxy_send_it_whole(kind: Kind, key: str, said: list[Any]) -> None:
    sent = (await prepare(kind, {"model": "m", key: said}, OPTIONS)).body[key]
    changed = [at for at, (old, new) in enumerate(zip(said, sent, strict=True)) if old != new]
    assert changed == [2 if kind == "chat" else 1]
    assert len(json.dumps(sent[changed[0]])) < 0.5 * len(LONG)


async def test_the_older_function_calls_too() -> None:
    options = OPTIONS.merged({"rates": {"function": {0: 0.3}}})
    sent = (await prepare("chat", {"model": "m", "messages": OLDER}, options)).body["messages"]
    assert [old == new for old, new in zip(OLDER, sent, strict=True)] == [
        *(True, False, True, True, True)
    ]


async def test_the_stage_leaves_it_whole_at_any_age() -> None:
    stage = Compress(1, rates={"tool": {0: 0.3, 1: 0.1}}, compressor="lexical")
    after = await stage.transform(Request.of([*chat(), ASKS, ASKS]))
    assert len(after.messages[2].text) < 0.2 * len(LONG)
    assert after.messages[4].text == LONG


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("retrieve", {"query": "patents"}),  # a tool of the caller's own
        ("retrieve", {"call_id": "a", "query": "patents"}),
        ("retrieve", ["call_id"]),
        ("lookup", ASKED),
    ],
)
async def test_other_tools_are_cut_as_ever(name: str, arguments: Any) -> None:
    stage = Compress(1, rates={"tool": {0: 0.3}}, compressor="lexical")
    after = await stage.transform(Request.of(chat(name, arguments)))
    assert len(after.messages[4].text) < 0.5 * len(LONG)


async def test_of_an_id_that_is_used_again_the_last_call_counts() -> None:
    stage = Compress(1, rates={"tool": {0: 0.3}}, compressor="lexical")
    after = await stage.transform(Request.of(chat(asked_id="a")))
    assert len(after.messages[2].text) < 0.5 * len(LONG)
    assert after.messages[4].text == LONG
