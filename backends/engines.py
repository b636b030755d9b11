"""Engines of other people, installed once into environments of their own, run as processes.

``python -m headrace.backends.engines [llama] [vllm]`` installs (``make engines``: llama); what is
installed lies under ``cache_folder()/engines``.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path

from ..middleware.errors import BackendError, InvalidRequest, ModelUnavailable
from ..middleware.models import cache_folder
from .recipes import RECIPES, Recipe, Start

INSTALLED = ("llama",)  # by make engines; others are asked for by name

_BUILD_OPTIONS = "-DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DGGML_NATIVE=ON"


def install(name: str) -> Path:
    """Install an engine unless it is there, and return its program.

    llama.cpp is compiled: about 20 CPU-minutes once, with LLAMA_CPP_BUILD_JOBS jobs (default 2; it
    would take all cores), a C++ compiler and cmake. Raises BackendError with the step that failed.
    """
    if (program := find(name)) is not None:
        return program
    recipe, folder = _recipe(name), _folder(name)
    environment = {
        "LLAMA_CPP_BUILD_JOBS": "2",
        "CMAKE_ARGS": _BUILD_OPTIONS,
        **os.environ,
    }
    _run([sys.executable, "-m", "venv", str(folder)], environment)
    for step in recipe.steps(folder):
        _run(step, environment)
    program = find(name)
    if program is None:
        raise BackendError(f"{name} was installed into {folder}, but its program is not there")
    return program


def find(name: str) -> Path | None:
    """Return an installed engine's program, None when it is not installed.

    Raises InvalidRequest for an engine that there is no recipe for.
    """
    return _recipe(name).program(_folder(name))


def command(name: str, start: Start) -> tuple[list[str], Mapping[str, str]]:
    """Return the command line that starts the engine, and the variables that it needs.

    Raises ModelUnavailable when the engine or the embedded model is not installed.
    """
    recipe, program = _recipe(name), find(name)
    if program is None:
        how = "make engines" if name in INSTALLED else f"python -m headrace.backends.engines {name}"
        raise ModelUnavailable(f"the engine {name!r} is not installed; run: {how} ({recipe.note})")
    return recipe.command(program, start), recipe.environment(start)


@contextlib.contextmanager
def running(
    name: str = "llama", *, model: Path | None = None, slots: int = 2, threads: int = 1
) -> Generator[str]:
    """Run an engine on a free port of the loopback for as long as the block lasts.

    Yields the base URL of its API. Raises BackendError when it does not come up.
    """
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    line, variables = command(name, Start(port, model, slots, threads=threads))
    process = subprocess.Popen(
        line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **variables}
    )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait(process, f"{url}/health", _recipe(name).seconds)
        yield f"{url}/v1"
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], url: str, seconds: float) -> None:
    started = time.monotonic()
    while time.monotonic() - started < seconds and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    code = process.poll()
    reason = "did not answer in time" if code is None else f"ended with status {code}"
    raise BackendError(f"the engine {reason} ({url}); start it by hand to see what it says")


def _recipe(name: str) -> Recipe:
    if name not in RECIPES:
        raise InvalidRequest(f"no engine {name!r:.40}; choose one of {', '.join(RECIPES)}")
    return RECIPES[name]


def _folder(name: str) -> Path:
    return cache_folder() / "engines" / name


def _run(line: Sequence[str], environment: Mapping[str, str]) -> None:
    try:
        subprocess.run(line, env=environment, check=True)
    except (subprocess.CalledProcessError, OSError) as error:
        raise BackendError(f"installing the engine failed at: {' '.join(line)} ({error})") from None


if __name__ == "__main__":
    for wanted in sys.argv[1:] or INSTALLED:
        sys.stderr.write(f"{wanted}: {install(wanted)}\n")
