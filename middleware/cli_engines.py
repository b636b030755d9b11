"""``headrace serve-engine``: somebody else's engine, as a process."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer


def serve_engine(
    name: Annotated[
        str, typer.Argument(help="llama (llama.cpp's llama-server) or vllm.")
    ] = "llama",
    port: Annotated[int, typer.Option(help="Port on the loopback.", min=1, max=65535)] = 8080,
    slots: Annotated[int, typer.Option(help="Requests at a time.", min=1)] = 8,
    threads: Annotated[int, typer.Option(help="Threads of a step.", min=1)] = 2,
    model: Annotated[
        Path | None,
        typer.Option(help="llama: a GGUF file, vllm: a folder; the embedded SmolLM2 by default."),
    ] = None,
) -> None:
    """Start an engine that `make engines` (vllm: its own command) has installed; Ctrl-C ends it."""
    from ..backends import engines
    from ..backends.recipes import Start
    from .errors import InvalidRequest
    from .ports import listening

    if model is not None and not model.exists():
        raise InvalidRequest(f"there is no model {model}; pass a GGUF file, or a folder for vllm")
    listening("127.0.0.1", port).close()  # engines say it in many lines, or share the port
    line, variables = engines.command(name, Start(port, model, slots, threads=threads))
    sys.stderr.write(f"http://127.0.0.1:{port}/v1 (metrics: http://127.0.0.1:{port}/metrics)\n")
    sys.stderr.flush()
    os.execve(line[0], line, {**os.environ, **variables})
