"""What the dispatcher costs: 1,000 mixed requests at concurrency 64, beside a bare asyncio client.

    python benchmarks/dispatch.py [--requests 1000] [--concurrency 64] [--runs 5]

Two engines that answer at once, so that everything left is overhead: one in this process (a few
events a request), and an HTTP server on the loopback in a process of its own, asked
through the OpenAI client. The bare client is the same loop over the same engine with a semaphore
and nothing else. Requests are mixed: short and long, interactive and bulk; a quarter share a
long beginning. "overhead" is the CPU time of this process a request, dispatcher less bare client
(median of the runs): wall time on a busy machine says little. "alone" is the latency with one
request at a time. Also checked: every request is
answered once, by its own answer, and memory does not grow from run to run.

    python benchmarks/dispatch.py --prefix

instead counts the prompt tokens that a simulated engine with a prefix cache reads, with requests
as they come, with those of one beginning next to each other, and with a leader.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import multiprocessing
import socket
import statistics
import sys
import time
import tracemalloc
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, closing
from pathlib import Path

from headrace import Dispatcher, Finished, HeadraceError, Request, TextDelta
from headrace.backends import Capabilities, Job, OpenAIBackend
from headrace.backends.base import Backend
from headrace.middleware.types import Event, Response

Ask = Callable[[Request], Awaitable[str]]
BEGINNING = "The rules of this house, which all must know. " * 60
GATE = 1.0  # milliseconds


class AtOnce:
    """An engine in this process: four events a request, without any work."""

    async def capabilities(self) -> Capabilities:
        """Return what a server would."""
        return Capabilities("at once", max_batch=1, max_concurrency=64)

    async def generate(
        self, batch: Sequence[Job]
    ) -> AsyncGenerator[tuple[int, Event | HeadraceError], None]:
        """Say the last word of each prompt."""
        for index, job in enumerate(batch):
            word = job.request.question.split()[-1]
            for piece in (word[:1], word[1:2], word[2:]):
                await asyncio.sleep(0)
                yield index, TextDelta(piece)
            yield index, Finished(Response(word))

    async def close(self) -> None:
        """Hold nothing."""


def serve(port: int) -> None:
    """Answer chat completions with the last word of the prompt, streamed; runs in its process."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer):
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode().lower().split("\r\n")
                length = [int(x.split(":")[1]) for x in lines if x.startswith("content-length:")]
                body = await reader.readexactly(length[0]) if length else b""
                writer.write(answer(lines[0], body))
                await writer.drain()

    async def guarded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handle(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            return

    async def main() -> None:
        server = await asyncio.start_server(guarded, "127.0.0.1", port, limit=2**20)
        await server.serve_forever()

    asyncio.run(main())


def answer(line: str, body: bytes) -> bytes:
    """Return a whole HTTP response."""
    if not body:
        kind, text = "application/json", '{"object": "list", "data": [{"id": "m"}]}'
        if "/models" not in line:
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
    else:
        kind = "text/event-stream"
        word = json.loads(body)["messages"][-1]["content"].split()[-1]
        deltas = [({"content": word[:2]}, None), ({"content": word[2:]}, None), ({}, "stop")]
        chunks = [
            {
                "id": "c",
                "object": "chat.completion.chunk",
                "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
            }
            for delta, reason in deltas
        ]
        text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    data = text.encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


def requests(num: int) -> list[Request]:
    """Return mixed requests; each ends with a word of its own."""
    made: list[Request] = []
    for number in range(num):
        text = BEGINNING if number % 4 == 0 else "word " * (20 if number % 2 else 1500)
        tags = {"priority": "bulk"} if number % 3 == 0 else {}
        made.append(Request.of(f"{text}answer{number:05}", tags=tags))
    return made


def through(dispatcher: Dispatcher) -> Ask:
    """Return a way to ask through the dispatcher."""

    async def ask(request: Request) -> str:
        async with aclosing(dispatcher(request)) as events:
            async for event in events:
                if isinstance(event, Finished):
                    return event.response.text
        raise AssertionError("no answer")

    return ask


def bare(engine: Backend) -> Ask:
    """Return a way to ask the engine itself."""

    async def ask(request: Request) -> str:
        async with aclosing(engine.generate([Job(request)])) as events:
            async for _, event in events:
                if isinstance(event, HeadraceError):
                    raise event
                if isinstance(event, Finished):
                    return event.response.text
        raise AssertionError("no answer")

    return ask


async def run(ask: Ask, made: Sequence[Request], concurrency: int) -> tuple[float, float, float]:
    """Return wall and CPU milliseconds a request, and the median latency; checks the answers."""
    gate = asyncio.Semaphore(concurrency)
    took: list[float] = []

    async def one(request: Request) -> str:
        async with gate:
            started = time.perf_counter()
            text = await ask(request)
            took.append(time.perf_counter() - started)
            return text

    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    texts = await asyncio.gather(*(one(request) for request in made))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    assert texts == [request.question.split()[-1][-11:] for request in made], "lost or doubled"
    each = 1000 / len(made)
    return wall * each, cpu * each, statistics.median(took) * 1000


async def compare(name: str, make: Callable[[], Backend], options: argparse.Namespace) -> float:
    """Print a row an engine; returns the overhead."""
    made = requests(options.requests)
    engine, dispatcher = make(), Dispatcher(make())
    sides = {"bare": bare(engine), "dispatcher": through(dispatcher)}
    seen: dict[str, list[tuple[float, float, float]]] = {side: [] for side in sides}
    for ask in sides.values():
        await run(ask, made[:100], options.concurrency)
    for _ in range(options.runs):
        for side, ask in sides.items():
            seen[side].append(await run(ask, made, options.concurrency))
    pairs = zip(seen["dispatcher"], seen["bare"], strict=True)
    overhead = statistics.median(ours[1] - theirs[1] for ours, theirs in pairs)
    alone: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range(5):
        for side, ask in sides.items():
            alone[side].append((await run(ask, made[:50], 1))[2])
    tracemalloc.start()
    sizes: list[int] = []
    for _ in range(3):
        await run(sides["dispatcher"], made[:250], options.concurrency)
        gc.collect()
        sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    await dispatcher.close()
    await engine.close()
    for side, rows in seen.items():
        wall, cpu, latency = (statistics.median(column) for column in zip(*rows, strict=True))
        last = f"{overhead:.3f} | {(sizes[2] - sizes[1]) / 1024:+.0f}"
        print(
            f"| {name} | {side} | {wall:.3f} | {cpu:.3f} | {latency:.2f}"
            f" | {statistics.median(alone[side]):.3f}"
            f" | {last if side == 'dispatcher' else ' | '} |"
        )
    return overhead


def free_port() -> int:
    """Return a port of the loopback that nobody uses."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


async def overheads(options: argparse.Namespace) -> bool:
    """Print the table; returns whether the gate holds."""
    port = free_port()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(port,), daemon=True)
    server.start()
    try:
        while True:  # until it listens
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                break
            except OSError:
                await asyncio.sleep(0.05)
        print(f"{options.requests} requests at concurrency {options.concurrency}, milliseconds\n")
        print("| engine | side | wall | CPU | latency p50 | alone p50 | overhead | kB more |")
        print("|---|---|---|---|---|---|---|---|")
        found = [
            await compare("in process", AtOnce, options),
            await compare(
                "HTTP, loopback",
                lambda: OpenAIBackend(f"http://127.0.0.1:{port}", max_concurrency=64),
                options,
            ),
        ]
    finally:
        server.terminate()
        server.join()
    holds = max(found) < GATE
    print(f"\noverhead a request below {GATE:g} ms: {'yes' if holds else 'NO'}")
    return holds


def prefix() -> None:
    """Print how many prompt tokens are read, by order and by room in the engine's cache."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    from engine import Cost, SimulatedEngine, run_virtual

    from headrace.middleware.queueing import Order

    documents = [f"Document {name}. " + f"{name}word " * 400 for name in "ABCDEFGH"]
    asked = [Request.of(f"{doc}\n\nQuestion {i}?") for i in range(5) for doc in documents]
    orders = {
        "as they come": Order(shared_prefix=None),
        "next to each other": Order(leader=False),
        "with a leader": Order(leader=True),
    }

    async def read(order: Order, room: int) -> int:
        engine = SimulatedEngine(
            lambda request: "An answer of six words, say.",
            cost=Cost(prefill=0.001),
            slots=4,
            max_concurrency=4,
            prefix_cache=True,
            cache_prompts=room,
        )
        dispatcher = Dispatcher(engine, order=order)

        async def ask(request: Request) -> int:
            async with aclosing(dispatcher(request)) as events:
                async for event in events:
                    if isinstance(event, Finished):
                        usage = event.response.usage
                        return usage.prompt_tokens - usage.cached_tokens
            raise AssertionError("no answer")

        return sum(await asyncio.gather(*(ask(request) for request in asked)))

    print("40 questions about 8 documents of 400 words, 4 rows; prompt tokens read\n")
    print("| order | " + " | ".join(f"room for {room}" for room in (4, 6, 8)) + " |")
    print("|---|---|---|---|")
    for name, order in orders.items():
        cells = [f"{run_virtual(read(order, room)):,}" for room in (4, 6, 8)]
        print(f"| {name} | " + " | ".join(cells) + " |")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--prefix", action="store_true")
    options = parser.parse_args()
    if options.prefix:
        prefix()
        return
    sys.exit(0 if asyncio.run(overheads(options)) else 1)


if __name__ == "__main__":
    main()
