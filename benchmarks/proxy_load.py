"""What the proxy costs: added latency and requests a second on one core, on the loopback.

    python benchmarks/proxy_load.py [--requests 300] [--concurrency 16] [--litellm PATH]

A server of this file answers at once, in a process of its own, so that everything left is the way
there. It is asked directly; through `headrace serve` without a policy; with `Lexical` compression
of a chat that is new each time (about 1,000 tokens of old turns) and of one that is known; and,
with ``--litellm``, through LiteLLM's proxy (the path of its ``litellm`` program, in an environment
of its own). "Added": one request at a time, median and 99th percentile in milliseconds, less the
server's own. "CPU" is the proxy's processor time for a request (user and system, from /proc), and
"one core" what that makes in a second: wall time on a busy machine says little. Linux only.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import multiprocessing
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

NUM_CHUNKS = 20
TICKS = os.sysconf("SC_CLK_TCK")
Body = Callable[[], bytes]

_numbers = itertools.count()


def short() -> bytes:
    """Return a chat of one short turn."""
    return _json([{"role": "user", "content": "Who built mill 7?"}])


def streamed() -> bytes:
    """Return the same, streamed."""
    return _json([{"role": "user", "content": "Who built mill 7?"}], stream=True)


def known() -> bytes:
    """Return a chat with 1,000 tokens of old turns."""
    return _chat(0)


def new() -> bytes:
    """Return a chat with 1,000 tokens of old turns that nobody has seen."""
    return _chat(next(_numbers) + 1)


def _chat(number: int) -> bytes:
    text = " ".join(
        f"Mill {number}-{i} on the river was built in {1700 + i} by a careful and slow mason."
        for i in range(50)
    )
    turns = [("user", text), ("assistant", "I see."), ("user", "Who built mill 7?")]
    return _json([{"role": role, "content": said} for role, said in turns])


def _json(messages: list[dict[str, str]], **fields: Any) -> bytes:
    return json.dumps({"model": "tiny", "messages": messages, **fields}).encode()


def serve(sock: socket.socket) -> None:
    """Answer every request at once, whole or as 20 events."""
    message = {"role": "assistant", "content": "Ann."}
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "tiny"}
    whole = json.dumps({**body, "choices": [choice], "usage": usage}).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    plain = head % len(whole) + whole
    delta = {"index": 0, "delta": {"content": "Ann"}, "finish_reason": None}
    chunk = {**body, "object": "chat.completion.chunk", "choices": [delta]}
    event = b"data: " + json.dumps(chunk).encode() + b"\n\n"
    pieces = [*[event] * NUM_CHUNKS, b"data: [DONE]\n\n"]
    chunked = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    events = (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    )

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                found = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"(?i)content-length: (\d+)", found)
                asked = await reader.readexactly(int(length[1]) if length else 0)
                is_stream = re.search(rb'"stream":\s*true', asked)
                writer.write(events + chunked if is_stream else plain)
                await writer.drain()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(handle, sock=sock)
        await server.serve_forever()

    asyncio.run(run())


async def ask(url: str, body: Body, num: int, concurrency: int) -> list[float]:
    """Make requests over connections that stay open, and return their seconds."""
    host, port = re.sub(r"^http://|/.*", "", url).split(":")
    seconds: list[float] = []
    left = iter(range(num))

    async def work() -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        for _ in left:
            data = body()
            head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {host}:{port}\r\n"
            head += f"content-type: application/json\r\ncontent-length: {len(data)}\r\n"
            started = time.perf_counter()
            writer.write(f"{head}authorization: Bearer sk-none\r\n\r\n".encode() + data)
            found = (await reader.readuntil(b"\r\n\r\n")).lower()
            assert found.startswith(b"http/1.1 200"), found
            if length := re.search(rb"content-length: (\d+)", found):
                await reader.readexactly(int(length[1]))
            else:
                await reader.readuntil(b"\r\n0\r\n\r\n")
            seconds.append(time.perf_counter() - started)
        writer.close()

    await asyncio.gather(*(work() for _ in range(concurrency)))
    return seconds


@contextlib.contextmanager
def running(line: list[str], url: str, **environment: str) -> Iterator[int]:
    """Run a proxy on one core for as long as the block lasts."""
    process = subprocess.Popen(
        line,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        preexec_fn=lambda: os.sched_setaffinity(0, {max(os.sched_getaffinity(0))}),
    )
    try:
        for _ in range(600):
            with contextlib.suppress(OSError, AssertionError, asyncio.IncompleteReadError):
                asyncio.run(ask(url, short, 1, 1))
                break
            assert process.poll() is None, f"{line[0]} ended with status {process.returncode}"
            time.sleep(0.2)
        yield process.pid
    finally:
        process.terminate()
        process.wait(60)


def cpu(pid: int) -> float:
    """Return the seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def measure(name: str, url: str, body: Body, pid: int, options: Any, bare: list[float]) -> None:
    """Print a row: alone, then many at a time."""
    asyncio.run(ask(url, body, max(10, options.requests // 10), 1))
    alone = asyncio.run(ask(url, body, options.requests, 1))
    before = cpu(pid)
    started = time.perf_counter()
    asyncio.run(ask(url, body, options.requests, options.concurrency))
    wall = time.perf_counter() - started
    spent = (cpu(pid) - before) / options.requests
    added = [at(alone, share) - (at(bare, share) if bare else 0.0) for share in (0.5, 0.99)]
    print(
        f"| {name} | {1000 * added[0]:.1f} | {1000 * added[1]:.1f} | {1000 * spent:.2f} |"
        f" {f'{1 / spent:,.0f}' if spent else '-'} | {options.requests / wall:,.0f} |",
        flush=True,
    )


def at(seconds: list[float], share: float) -> float:
    """Return the value that this share of all stays below."""
    return statistics.quantiles(seconds, n=100)[round(100 * share) - 1]


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--litellm", default="")
    options = parser.parse_args()
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    sock.listen(1024)
    server = f"http://127.0.0.1:{sock.getsockname()[1]}/v1"
    process = multiprocessing.get_context("fork").Process(target=serve, args=(sock,), daemon=True)
    process.start()
    assert process.pid is not None
    print(
        "| | added p50, ms | added p99, ms | CPU a request, ms | a second, one core |"
        " a second, as it was |\n|---|---|---|---|---|---|"
    )
    bare = {body: asyncio.run(ask(server, body, options.requests, 1)) for body in (short, streamed)}
    measure("the server itself", server, short, process.pid, options, [])
    headrace = [sys.executable, "-m", "headrace.middleware.cli", "serve", "--quiet"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "lexical.toml")
        file.write_text('[models."*"]\nrate = 0.5\ncompressor = "lexical"\n')
        for policy, cases in (
            ([], {"headrace, passed through": short, "headrace, a stream of 20 events": streamed}),
            (
                ["--config", str(file)],
                {"headrace, Lexical, a known chat": known, "headrace, Lexical, a new chat": new},
            ),
        ):
            port = free_port()
            url = f"http://127.0.0.1:{port}/v1"
            line = [*headrace, "--backend", server, "--port", str(port), *policy]
            with running(line, url) as pid:
                for name, body in cases.items():
                    measure(name, url, body, pid, options, bare.get(body, bare[short]))
        if options.litellm:
            port = free_port()
            url = f"http://127.0.0.1:{port}/v1"
            models = Path(folder, "litellm.yaml")
            model = {"model": "openai/tiny", "api_base": server, "api_key": "none"}
            entry = {"model_name": "tiny", "litellm_params": model}
            models.write_text(json.dumps({"model_list": [entry]}))
            line = [options.litellm, "--config", str(models), "--port", str(port)]
            line += ["--host", "127.0.0.1", "--num_workers", "1", "--telemetry", "False"]
            open_to_all = "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY"
            alone = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", open_to_all: "true"}
            with running(line, url, **alone) as pid:
                for name, body in (("passed through", short), ("a stream of 20 events", streamed)):
                    measure(f"LiteLLM, {name}", url, body, pid, options, bare[body])
    process.terminate()


if __name__ == "__main__":
    main()
