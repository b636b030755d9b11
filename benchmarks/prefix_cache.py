"""How much of a prompt an engine's prefix cache can use again, turn by turn of real chats.

    python benchmarks/prefix_cache.py --data DIR [--rate 0.5] [--chats 8] [--tokenizer NAME]

Sends the first six user turns of tau-bench's airline chats (agent_traces/tau_airline.jsonl.gz)
through ``Compress``, with tool results cut too, and compares the bytes of each request with those
of the one before: the share that is the same from the start. Without compression that share is
everything sent before. "read" are the tokens that an engine with a prefix cache computes, all turns
together; "sent" those that it is billed for. Each turn has a stage of its own, so nothing but the
text decides. Also counts what should never happen: a tool call that changed, JSON that lost a
record or a number.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headrace import Compress, Request
from headrace.compressors import TokenCounter, make_counter

TURNS = 6


def chats(folder: Path, most: int) -> Iterator[list[dict[str, Any]]]:
    """Yield the messages of chats with enough user turns, up to the last of those."""
    with gzip.open(
        folder / "agent_traces" / "tau_airline.jsonl.gz", "rt", encoding="utf-8"
    ) as file:
        for line in file:
            messages = json.loads(line)["messages"]
            asked = [i for i, message in enumerate(messages) if message["role"] == "user"]
            if len(asked) >= TURNS and most:
                most -= 1
                yield messages[: asked[TURNS - 1] + 1]


def faults(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> int:
    """Count messages that lost what they must not lose."""
    count = abs(len(old) - len(new))
    for one, other in zip(old, new, strict=False):
        fields = [{k: v for k, v in m.items() if k != "content"} for m in (one, other)]
        count += fields[0] != fields[1] or (bool(one.get("tool_calls")) and one != other)
        if one["role"] == "tool" and str(one["content"])[:1] in ("{", "["):
            count += skeleton(json.loads(one["content"])) != skeleton(json.loads(other["content"]))
    return count


def skeleton(value: Any) -> Any:
    """Return a JSON value with its strings blank."""
    if isinstance(value, dict):
        return {key: skeleton(one) for key, one in value.items()}
    if isinstance(value, list):
        return [skeleton(one) for one in value]
    return "" if isinstance(value, str) else value


async def measure(
    name: str, given: list[list[dict[str, Any]]], counter: TokenCounter, **options: Any
) -> None:
    """Print a row for one way to compress."""
    started = time.process_time()
    sent = read = broken = 0
    shares: list[float] = []
    for messages in given:
        before = ""
        asked = [i for i, message in enumerate(messages) if message["role"] == "user"]
        for last in asked:
            chat = messages[: last + 1]
            new = chat
            if options:
                after = await Compress(**options).transform(Request.of(chat))
                new = [message.to_dict() for message in after.messages]
            broken += faults(chat, new)
            text = "".join(json.dumps(message, ensure_ascii=False) for message in new)
            same = next(
                (i for i, (a, b) in enumerate(zip(before, text, strict=False)) if a != b),
                len(before),
            )
            if before:
                shares.append(same / len(before))
            sent += counter.count(text)
            read += counter.count(text[min(same, len(text)) :])
            before = text
    shares.sort()
    cells = (
        name,
        f"{sent:,}",
        f"{read:,}",
        f"{sum(shares) / len(shares):.3f}",
        f"{shares[0]:.3f}",
        broken,
        f"{time.process_time() - started:.1f}",
    )
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


async def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rate", type=float, default=0.5)
    parser.add_argument("--chats", type=int, default=8)
    parser.add_argument("--tokenizer")
    options = parser.parse_args()
    counter = make_counter(options.tokenizer)
    given = list(chats(options.data, options.chats))
    common = {"rate": options.rate, "tokenizer": options.tokenizer}
    common["rates"] = {"tool": options.rate}
    print(f"{len(given)} chats of {TURNS} user turns, rate {options.rate:g}\n")
    print("| way | sent | read | same prefix, mean | least | broken | CPU-s |")
    print("|---|---|---|---|---|---|---|")
    await measure("as it is", given, counter)
    await measure("stable", given, counter, **common)
    await measure("for the question", given, counter, **common, stable=False)


if __name__ == "__main__":
    asyncio.run(main())
