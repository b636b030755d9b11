"""A proxy over real HTTP, and what its tests say to it."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import openai
import uvicorn

from headrace.middleware.proxy.app import Proxy, make_app
from headrace.middleware.proxy.config import Live
from headrace.middleware.proxy.routes import Routes

SENTENCE = "The old mill number {} was built of grey stone by a careful and quite patient builder. "
LONG = "".join(SENTENCE.format(i) for i in range(20))
LEXICAL = '[models."*"]\nrate = 0.3\ncompressor = "lexical"\n'


@dataclass
class Running:
    """A proxy that answers at ``url``; ``file`` is its configuration."""

    url: str
    proxy: Proxy
    file: Path
    runner: uvicorn.Server

    def metric(self, name: str, **labels: str) -> float:
        return self.proxy.metrics.registry.get_sample_value(f"headrace_{name}", labels) or 0.0

    def counts(self, value: float, name: str, **labels: str) -> None:
        """Wait until a metric is what it should be: it is written after the answer is sent."""
        until(lambda: self.metric(name, **labels) == value)

    def client(self, **fields: Any) -> openai.OpenAI:
        settings = {"api_key": "sk-caller", "max_retries": 0, **fields}
        return openai.OpenAI(base_url=self.url, **settings)


Start = Callable[..., Running]


@contextlib.contextmanager
def serving(file: Path, routes: Routes | None = None) -> Iterator[Running]:
    app = make_app(Live(file), routes)
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    sock.listen()
    config = uvicorn.Config(
        app, log_level="critical", ws="none", date_header=False, timeout_graceful_shutdown=1
    )
    runner = uvicorn.Server(config)
    thread = threading.Thread(target=runner.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{sock.getsockname()[1]}/v1"
    yield Running(url, app.state.proxy, file, runner)
    runner.should_exit = True
    thread.join(10)
    sock.close()


def until(found: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait until something has become true; it does, unless it never does."""
    end = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < end, "it never became true"
        time.sleep(0.01)


@contextlib.contextmanager
def asking(url: str, body: Any) -> Iterator[socket.socket]:
    """Ask by hand, and go away at the end of the block, whatever has come until then."""
    parts = urlsplit(url)
    data = json.dumps(body).encode()
    head = f"POST {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Length: {len(data)}"
    with socket.create_connection((parts.hostname or "", parts.port or 80), 30) as sock:
        sock.sendall(head.encode() + b"\r\n\r\n" + data)
        yield sock


def chat(text: str = "Hi", **fields: Any) -> dict[str, Any]:
    return {"model": "tiny", "messages": [{"role": "user", "content": text}], **fields}


def history(**fields: Any) -> dict[str, Any]:
    messages = [
        {"role": "system", "content": LONG},
        {"role": "user", "content": LONG},
        {"role": "assistant", "content": "I see."},
        {"role": "user", "content": "Who built mill 7?"},
    ]
    return {"model": "tiny", "messages": messages, **fields}
