"""An agent that works long on one user turn: its tool results get old too, in blocks of calls."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import Compress, InvalidRequest, Message, Request
from headrace.middleware.turns import ages

PROSE = (Path(__file__).resolve().parents[2] / "LICENSE").read_text().split("\n\n")
TASK = "Read the licence part by part, and say at the end which parts name patents. " * 3


def call(number: int) -> dict[str, Any]:
    function = {"name": "read", "arguments": json.dumps({"part": number, "why": TASK})}
    return {"id": f"call-{number}", "type": "function", "function": function}


def steps(num: int) -> list[dict[str, Any]]:
    """Return the chat of an agent that has read ``num`` parts."""
    chat: list[dict[str, Any]] = [
        {"role": "system", "content": TASK},
        {"role": "user", "content": TASK},
    ]
    for number in range(num):
        text = " ".join(PROSE[number + 3 : number + 7])
        chat.append({"role": "assistant", "content": None, "tool_calls": [call(number)]})
        chat.append({"role": "tool", "tool_call_id": f"call-{number}", "content": text})
    return chat


async def shortened(chat: list[dict[str, Any]], **options: Any) -> list[dict[str, Any]]:
    stage = Compress(**{"rate": 1, "every": 3, "compressor": "lexical", **options})
    return [message.to_dict() for message in (await stage.transform(Request.of(chat))).messages]


def shares(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[float]:
    pairs = zip(old, new, strict=True)
    return [len(b["content"]) / len(a["content"]) for a, b in pairs if a["role"] == "tool"]


async def test_old_results_are_cut_harder_than_recent_ones_within_one_user_turn() -> None:
    chat = steps(10)
    new = await shortened(chat, rates={"tool": {1: 0.6, 2: 0.2}})
    kept = shares(chat, new)
    assert max(kept[:5]) < 0.35  # seen in blocks before the last but one
    assert all(0.35 < share < 0.75 for share in kept[5:8])
    assert kept[8:] == [1, 1]
    others = [i for i, message in enumerate(chat) if message["role"] != "tool"]
    assert [new[i] for i in others] == [chat[i] for i in others]
    assert await shortened(chat, every=None, rates={"tool": {1: 0.6}}) == chat  # one user turn


async def test_between_blocks_each_request_begins_with_the_one_before() -> None:
    options = {"rates": {"tool": {1: 0.6, 2: 0.2}}}
    sent = [await shortened(steps(num), **options) for num in range(1, 11)]
    begins = [new[: len(old)] == old for old, new in pairwise(sent)]
    assert [num for num, same in enumerate(begins, 2) if not same] == [3, 6, 9]


async def test_results_that_are_cut_at_once_never_change_again() -> None:
    sent = [await shortened(steps(num), rates={"tool": {0: 0.4}}) for num in range(1, 8)]
    assert all(new[: len(old)] == old for old, new in pairwise(sent))
    assert max(shares(steps(7), sent[-1])) < 0.6


async def test_a_user_turn_gets_old_with_the_block_in_which_the_next_one_came() -> None:
    new_turn = {"role": "user", "content": "And trademarks?"}
    for num in range(3, 8):
        chat = [*steps(3), new_turn, *steps(num)[8:]]
        after = await shortened(chat, rate=0.3)
        assert (after[1] == chat[1]) is (num < 6)


ROLES = st.lists(st.sampled_from(["system", "user", "assistant", "tool"]), min_size=1, max_size=40)


@given(ROLES, st.integers(1, 6))
def test_ages_never_fall_and_change_at_a_blocks_end_only(roles: list[str], every: int) -> None:
    messages = [Message(role, ()) for role in roles]
    before = ages(messages, every)
    grown = ages([*messages, Message("assistant", ())], every)[:-1]
    ends = (roles.count("assistant") + 1) % every == 0
    last = max((i for i, role in enumerate(roles) if role == "user"), default=-1)
    for at, (old, new) in enumerate(zip(before, grown, strict=True)):
        assert new - old in ((0, 1) if at == last else (int(ends),))
    assert before[-1] == 0 or roles[-1] == "assistant"
    assert min(before) >= 0


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "4"])
def test_blocks_are_whole_numbers(bad: Any) -> None:
    with pytest.raises(InvalidRequest, match="every"):
        Compress(0.5, every=bad)
