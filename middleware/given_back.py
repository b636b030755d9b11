"""Which results of tools are what ``retrieve`` gave back: asked for whole, they are not cut again.

A tool of the caller's may have that name too, so a call of it counts only with the one argument
that headrace's has, ``call_id``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from .types import Message

NAME = "retrieve"
ARGUMENT = "call_id"


def given_back(messages: Sequence[Message]) -> set[int]:
    """Return the places of the messages that hold what ``retrieve`` gave back.

    Calls are read as OpenAI and LangChain write them. An id that is used twice means the last call
    before the result.

    >>> call = {"id": "b", "name": "retrieve", "args": {"call_id": "a"}}
    >>> asks = Message("assistant", (), {"tool_calls": [call]})
    >>> given_back([asks, Message("tool", (), {"tool_call_id": "b"})])
    {1}
    """
    found: set[int] = set()
    asked: dict[Any, bool] = {}
    for at, message in enumerate(messages):
        for call_id, call in _calls(message):
            asked[call_id] = _is_ours(call)
        if message.role in ("tool", "function"):
            call_id = message.fields.get("tool_call_id")
            if asked.get(call_id if isinstance(call_id, str) else None):
                found.add(at)
    return found


def _calls(message: Message) -> Iterator[tuple[str | None, Mapping[str, Any]]]:
    """Yield the calls of a message with their ids; OpenAI's older ``function_call`` has none."""
    calls: Any = message.fields.get("tool_calls")
    for call in cast("Sequence[Any]", calls) if isinstance(calls, (list, tuple)) else ():
        fields = _fields(call)
        if isinstance(call_id := fields.get("id"), str):
            yield call_id, _fields(fields.get("function")) or fields
    if older := _fields(message.fields.get("function_call")):
        yield None, older


def _is_ours(call: Mapping[str, Any]) -> bool:
    if call.get("name") != NAME:
        return False
    given: Any = call.get("args", call.get("arguments"))
    if isinstance(given, str):
        try:
            given = json.loads(given, parse_int=str)
        except (ValueError, RecursionError):
            return False
    return list(_fields(given)) == [ARGUMENT]


def _fields(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
