"""What an agent's history costs, call by call, with and without compression.

    python benchmarks/agent_traces.py --data DIR [--chats 12] [--tokenizer NAME]

Replays real agents: tau-bench's airline chats (JSON results of tools; agent_traces/
tau_airline.jsonl.gz) and SWE-agent's sessions (files, tests and shells as text;
agent_traces/swe_agent.jsonl.gz). Each assistant message is a call of the model, and what was said
before it is the prompt. "sent" are the prompt tokens of all calls together, "cached" the share of
them that stands at the start of a prompt just as in the call before, so that an engine's prefix
cache, or a paid API's discount, applies; "read" is what is left to compute. Each call has a stage
of its own, so nothing but the text decides. "unpaired" and "broken" count what should never happen:
a tool call or result that lost its other half or changed its id, JSON that no longer parses; "lost"
counts JSON results that have fewer records, keys or numbers, which one way asks for.

SWE-agent writes results as user turns; they are replayed as tools' results, with ids.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headrace import Compress, JsonPolicy, Request
from headrace.compressors import TokenCounter, make_counter

Chat = list[dict[str, Any]]
FEW = JsonPolicy(max_records=3)
WAYS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "half at once": {"rates": {"tool": {0: 0.5}}},
    "half at once, lists of 3 records": {"rates": {"tool": {0: 0.5}}, "json": FEW},
    "half at once, old a fifth; every 8": {"rates": {"tool": {0: 0.5, 2: 0.2}}, "every": 8},
    "half at once, old a fifth; every 16": {"rates": {"tool": {0: 0.5, 2: 0.2}}, "every": 16},
    "seen half, old a fifth; every 8": {"rates": {"tool": {1: 0.5, 3: 0.2}}, "every": 8},
    "seen half, old a fifth; every 4": {"rates": {"tool": {1: 0.5, 3: 0.2}}, "every": 4},
    "seen half, old a fifth; every call": {"rates": {"tool": {1: 0.5, 3: 0.2}}, "every": 1},
}


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a gzipped JSON Lines file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def airline(folder: Path, most: int) -> Iterator[Chat]:
    """Yield tau-bench's longest chats."""
    rows = lines(folder / "tau_airline.jsonl.gz")
    yield from sorted((row["messages"] for row in rows), key=len, reverse=True)[:most]


def software(folder: Path) -> Iterator[Chat]:
    """Yield SWE-agent's sessions, each action as a call and what came of it as a result."""
    for row in lines(folder / "swe_agent.jsonl.gz"):
        chat: Chat = []
        for number, message in enumerate(row["messages"]):
            role, text = message["role"], message["content"]
            if role == "assistant":
                function = {"name": "bash", "arguments": json.dumps({"thought": text})}
                call = {
                    "id": f"call-{len(row['id'])}-{number}",
                    "type": "function",
                    "function": function,
                }
                chat.append({"role": role, "content": None, "tool_calls": [call]})
            elif number > 2:
                call_id = f"call-{len(row['id'])}-{number - 1}"
                chat.append({"role": "tool", "tool_call_id": call_id, "content": text})
            else:
                chat.append({"role": role, "content": text})
        yield chat


def one_after_another(chats: list[Chat]) -> Chat:
    """Return one long chat: the first system message, and what follows in each."""
    return chats[0][:1] + [message for chat in chats for message in chat[1:]]


def skeleton(value: Any) -> Any:
    """Return a JSON value with its strings blank."""
    if isinstance(value, dict):
        return {key: skeleton(one) for key, one in value.items()}
    if isinstance(value, list):
        return [skeleton(one) for one in value]
    return "" if isinstance(value, str) else value


def what_broke(old: Any, new: Any) -> str | None:
    """Return "broken" for a JSON result that is none any more, "lost" for one with less in it."""
    try:
        value = json.loads(old)
    except (TypeError, ValueError):
        return None
    try:
        return "lost" if skeleton(value) != skeleton(json.loads(new)) else None
    except ValueError:
        return "broken"


def num_unpaired(old: Chat, new: Chat) -> int:
    """Count messages whose role, calls, ids or names are not what they were."""
    bare = [[{k: v for k, v in m.items() if k != "content"} for m in chat] for chat in (old, new)]
    return abs(len(old) - len(new)) + sum(bool(a != b) for a, b in zip(*bare, strict=False))


def num_same(old: str, new: str) -> int:
    """Return how many characters are the same from the start."""
    for at, (a, b) in enumerate(zip(old, new, strict=False)):
        if a != b:
            return at
    return min(len(old), len(new))


async def measure(name: str, chats: list[Chat], counter: TokenCounter, **options: Any) -> None:
    """Print a row for one way to compress."""
    started = time.process_time()
    sent = read = before_sent = unpaired = calls = 0
    faults = Counter[str | None]()
    for chat in chats:
        before = ""
        for at, message in enumerate(chat):
            if message["role"] != "assistant":
                continue
            prompt = new = chat[:at]
            if options:
                after = await Compress(rate=1, **options).transform(Request.of(prompt))
                new = [one.to_dict() for one in after.messages]
            unpaired += num_unpaired(prompt, new)
            pairs = zip(prompt, new, strict=True)
            faults.update(what_broke(a["content"], b["content"]) for a, b in pairs)
            texts = ["".join(json.dumps(m, ensure_ascii=False) for m in c) for c in (prompt, new)]
            sent += counter.count(texts[1])
            before_sent += counter.count(texts[0])
            read += counter.count(texts[1][num_same(before, texts[1]) :])
            before = texts[1]
            calls += 1
    cells = (
        name,
        calls,
        f"{sent:,}",
        f"{1 - sent / before_sent:.0%}",
        f"{1 - read / sent:.0%}",
        f"{read:,}",
        unpaired,
        faults["broken"],
        faults["lost"],
        f"{time.process_time() - started:.1f}",
    )
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


async def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--chats", type=int, default=12)
    parser.add_argument("--tokenizer")
    options = parser.parse_args()
    counter = make_counter(options.tokenizer)
    folder = options.data / "agent_traces"
    sessions = list(software(folder))
    given = {
        "tau-bench": list(airline(folder, options.chats)),
        "SWE-agent": sessions,
        "SWE-agent, one session after another": [one_after_another(sessions)],
    }
    for name, chats in given.items():
        print(f"\n{name}: {len(chats)} chats\n")
        print("| way | calls | sent | saved | cached | read | unpaired | broken | lost | CPU-s |")
        print("|---|---|---|---|---|---|---|---|---|---|")
        for way, settings in WAYS.items():
            extra = {"tokenizer": options.tokenizer} if settings else {}
            await measure(way, chats, counter, **settings, **extra)


if __name__ == "__main__":
    asyncio.run(main())
