"""Every example runs, as its reader would run it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine.wire import serves, serving

from headrace.backends import TransformersBackend

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
SAYS = {
    "constraints.py": ["a type: kind=", "tokens were forced", "whole: kind="],
    "demo.py": ["overshot.md", "parsed: Wheel(", "rerank", "compress", "dispatch"],
    "langchain_rag.py": ["(3, ", "1913"],
    "openai_client.py": ["tokens"],
    "ray_serve.py": ["saved", "whole: ", "streamed: ", "2"],
    "sdk_in_ten_lines.py": ["7F3A-99B", "12 May 2021", "Ann bought the red car.", "Ann"],
    "shell_pipeline.sh": ["->", '"id": "log-1"'],
}


@pytest.fixture
def environment() -> dict[str, str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PORT": port}


def test_the_readme_shows_the_example_that_is_tried() -> None:
    example = (EXAMPLES / "sdk_in_ten_lines.py").read_text().split('"""\n', 1)[1].strip()
    assert example in (ROOT / "README.md").read_text()


def test_every_example_is_tried() -> None:
    names = {path.name for path in EXAMPLES.iterdir() if path.is_file()}
    assert names == set(SAYS)


@pytest.fixture(scope="module")
def server_url() -> Iterator[str]:
    with serving() as server:
        server.script = serves(TransformersBackend())
        yield f"{server.url}/v1"


@pytest.mark.model
@pytest.mark.parametrize("name", SAYS)
def test_an_example_prints_what_it_promises(
    name: str, environment: dict[str, str], server_url: str
) -> None:
    if name == "ray_serve.py":
        pytest.importorskip("ray", reason="ray is not installed")
        if not os.environ.get("HEADRACE_TEST_RAY"):
            pytest.skip("Ray Serve needs an idle machine to start: set HEADRACE_TEST_RAY=1")
    command = ["sh" if name.endswith(".sh") else sys.executable, str(EXAMPLES / name)]
    result = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env={**environment, "OPENAI_BASE_URL": server_url},
        timeout=600,
    )
    assert result.returncode == 0, result.stderr
    for words in SAYS[name]:
        assert words in result.stdout
