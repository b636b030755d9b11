"""A proxy over real HTTP in front of a server that a test scripts."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from engine.proxied import Running, Start, serving
from engine.upstream import Upstream, openai_like, running

from headrace.middleware.proxy.routes import Routes


@pytest.fixture
def server() -> Iterator[Upstream]:
    with running(openai_like()) as upstream:
        yield upstream


@pytest.fixture
def start(server: Upstream, tmp_path: Path) -> Iterator[Start]:
    """Start a proxy with these lines in its file, before the server unless it names another."""
    with contextlib.ExitStack() as stack:

        def start(text: str = "", routes: Routes | None = None) -> Running:
            file = tmp_path / "proxy.toml"
            head = "" if "backend =" in text else f'backend = "{server.url}"\n'
            file.write_text(head + text)
            return stack.enter_context(serving(file, routes))

        yield start


@pytest.fixture
def damaged(tmp_path: Path) -> str:
    """Return a folder that says it holds a compressor's model, and does not: its weights are cut.

    That much is seen when the configuration is read; the rest only when the weights are loaded.
    """
    folder = tmp_path / "damaged"
    folder.mkdir()
    says = {"architectures": ["BertForTokenClassification"], "model_type": "bert", "num_labels": 2}
    (folder / "config.json").write_text(json.dumps(says))
    (folder / "model.safetensors").write_bytes(b"\x10")
    return str(folder)


@pytest.fixture
def http() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=30) as client:
        yield client
