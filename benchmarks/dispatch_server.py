"""1,000 mixed requests at concurrency 64 to a real server, beside a bare asyncio client.

    python benchmarks/dispatch_server.py [--url http://localhost:8080/v1] [--requests 1000]

Without ``--url`` it starts llama-server (``make engines``) with SmolLM2 and 8 slots. Both sides
send like bodies through the openai package, stream, and hold 64 requests at a time: the bare client
with a semaphore and nothing else, the dispatcher with all that it does. Requests are short and
long, interactive and bulk, and a quarter shares a long beginning; one letter of it differs between
the sides, so that neither finds what the other has let the server read. TTFT is from the moment a
request is given to its side (queueing included). "read" is what the server has read of the prompts,
by its own usage. Checked: every request is answered once, its answer is billed for its own prompt
and keeps its own limit. Memory is the process's peak after each side. Each side
asks once before, which is not counted: the first request loads packages and probes the server.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import resource
import statistics
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, aclosing
from dataclasses import dataclass
from typing import Any

from headrace import Dispatcher, Finished, Request, Sampling, TextDelta
from headrace.backends import OpenAIBackend
from headrace.backends.engines import running

RULES = "These are the rules of the house. Shoes stay at the door, and doors stay shut. " * 8
SUBJECTS = (
    "mill",
    "river",
    "bread",
    "salmon",
    "bridge",
    "lock",
    "canal",
    "turbine",
    "wheel",
    "dam",
)


@dataclass(slots=True)
class Answer:
    """What came back for one request; times in seconds."""

    text: str = ""
    first: float = 0.0
    whole: float = 0.0
    prompt: int = 0
    cached: int = 0
    written: int = 0


Ask = Callable[[Request], Awaitable[Answer]]


def requests(number: int, seed: int, letter: str) -> list[Request]:
    """Return different requests: each names its own number."""
    lot = random.Random(seed)
    made: list[Request] = []
    for at in range(number):
        subject = lot.choice(SUBJECTS)
        text = f"Request {at}: say something about a {subject}."
        if at % 4 == 0:
            text = f"{RULES}\n{text}"
        elif at % 4 == 1:
            text += " " + " ".join(lot.choices(SUBJECTS, k=40))
        made.append(
            Request.of(
                f"{letter}: {text}",
                sampling=Sampling(temperature=0, max_tokens=lot.choice((2, 4, 8, 16))),
                tags={"priority": lot.choice(("interactive", "bulk"))},
            )
        )
    return made


def dispatched(url: str, concurrency: int) -> Ask:
    """Ask through the dispatcher."""
    dispatcher = Dispatcher(OpenAIBackend(url, max_concurrency=concurrency))

    async def ask(request: Request) -> Answer:
        answer, start = Answer(), time.perf_counter()
        async with aclosing(dispatcher(request)) as events:
            async for event in events:
                answer.first = answer.first or time.perf_counter() - start
                if isinstance(event, TextDelta):
                    answer.text += event.text
                elif isinstance(event, Finished):
                    usage = event.response.usage
                    answer.prompt, answer.cached = usage.prompt_tokens, usage.cached_tokens
                    answer.written = usage.completion_tokens
        answer.whole = time.perf_counter() - start
        return answer

    return ask


def bare(url: str, concurrency: int, model: str) -> Ask:
    """Ask with the openai package and a semaphore."""
    import openai

    client = openai.AsyncOpenAI(base_url=url, api_key="none")  # it retries, too
    gate = asyncio.Semaphore(concurrency)

    async def ask(request: Request) -> Answer:
        answer, start = Answer(), time.perf_counter()
        async with gate:
            stream: Any = await client.chat.completions.create(
                model=model,
                messages=[{"role": "user", "content": request.messages[0].text}],
                temperature=0,
                max_tokens=request.sampling.max_tokens,
                stream=True,
                stream_options={"include_usage": True},
            )
            async for chunk in stream:
                if chunk.choices and (text := chunk.choices[0].delta.content):
                    answer.first = answer.first or time.perf_counter() - start
                    answer.text += text
                if chunk.usage:
                    details = chunk.usage.prompt_tokens_details
                    answer.prompt = chunk.usage.prompt_tokens
                    answer.cached = (details and details.cached_tokens) or 0
                    answer.written = chunk.usage.completion_tokens
        answer.whole = time.perf_counter() - start
        return answer

    return ask


async def side(name: str, ask: Ask, asked: list[Request]) -> list[Answer]:
    """Print one row of the table."""
    wall, cpu = time.perf_counter(), time.process_time()
    answers = await asyncio.gather(*(ask(request) for request in asked))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if lost := sum(not answer.written for answer in answers):
        raise SystemExit(f"{name}: {lost} requests have no answer")
    first = statistics.quantiles([answer.first for answer in answers], n=20)
    read = sum(answer.prompt - answer.cached for answer in answers)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"| {name} | {wall:.1f} | {first[9]:.2f} | {first[18]:.2f} "
        f"| {1000 * cpu / len(asked):.2f} | {read:,} | {peak:.0f} |",
        flush=True,
    )
    return answers


async def compare(url: str, options: argparse.Namespace) -> None:
    """Run both sides in turns."""
    probe = OpenAIBackend(url)
    model = (await probe.capabilities()).model
    await probe.close()
    number = options.requests
    print(f"{number} requests at concurrency {options.concurrency}; seconds\n")
    print("| side | wall | TTFT p50 | TTFT p95 | CPU ms a request | read | peak MB |")
    print("|---|---|---|---|---|---|---|")
    for run in range(options.runs):
        billed: list[list[int]] = []
        for letter in "AB" if run % 2 == 0 else "BA":
            asked = requests(number, options.seed + run, letter)
            if letter == "A":
                name, ask = "bare client", bare(url, options.concurrency, model)
            else:
                name, ask = "dispatcher", dispatched(url, options.concurrency)
            await ask(Request.of("Ready?", sampling=Sampling(temperature=0, max_tokens=1)))
            answers = await side(name, ask, asked)
            billed.append([answer.prompt for answer in answers])
            limits = [request.sampling.max_tokens or 0 for request in asked]
            if any(a.written > limit for a, limit in zip(answers, limits, strict=True)):
                raise SystemExit(f"{name}: an answer is longer than its own request allows")
        if billed[0] != billed[1]:
            raise SystemExit("an answer is billed for the prompt of another request")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url")
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of llama-server")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with ExitStack() as stack:
        url = options.url or stack.enter_context(
            running(slots=options.slots, threads=options.threads)
        )
        asyncio.run(compare(url, options))


if __name__ == "__main__":
    main()
