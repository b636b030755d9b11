"""What is compared of two answers of the openai client: everything but ids, times and durations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import openai

CHANGING = frozenset(
    ("id", "created", "timings", "created_at", "completed_at", "system_fingerprint", "item_id")
)
Ask = Callable[[openai.OpenAI], Any]


def result(ask: Ask, client: openai.OpenAI) -> tuple[Any, str]:
    """Return what is compared, and a few words about it."""
    try:
        answer = ask(client)
        if isinstance(answer, openai.Stream):
            chunks = [plain(chunk) for chunk in answer]
            return joined(chunks), f"{len(chunks)} chunks"
    except openai.APIStatusError as error:
        return (type(error).__name__, error.status_code, error.body), f"{error.status_code}"
    except openai.OpenAIError as error:
        return (type(error).__name__, str(error)), type(error).__name__
    found = plain(answer)
    return found, found if isinstance(found, str) else "200"


def plain(value: Any) -> Any:
    """Return JSON values, without what changes from one request to the next."""
    if hasattr(value, "model_dump"):
        value = value.model_dump(exclude_unset=True)
    if isinstance(value, dict):
        kept = {k: plain(v) for k, v in value.items() if k not in CHANGING}
        if isinstance(kept.get("tool_calls"), list):
            kept["tool_calls"] = [{**call, "id": ""} for call in kept["tool_calls"]]
        return kept
    return [plain(one) for one in value] if isinstance(value, list) else value


def joined(chunks: list[Any]) -> Any:
    """Return a stream as one value: the texts of each choice, and everything else as it came."""
    texts: dict[int, str] = {}
    for chunk in chunks:
        for choice in (chunk.get("choices") or ()) if isinstance(chunk, dict) else ():
            delta = choice.get("delta") or {}
            piece = delta.pop("content", None) or choice.pop("text", None) or ""
            texts[choice["index"]] = texts.get(choice["index"], "") + piece
    rest = [chunk for chunk in chunks if chunk.get("usage") or says_something(chunk)]
    return texts, rest


def says_something(chunk: dict[str, Any]) -> bool:
    """Whether more than a text is in a chunk."""
    if "choices" not in chunk:
        return True
    return any(
        choice.get("finish_reason") or choice.get("logprobs") or (choice.get("delta") or {})
        for choice in chunk["choices"]
    )
