"""What is here, what is missing, and the command that fixes it."""

from __future__ import annotations

import asyncio
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

from .errors import HeadraceError

CORE = [
    "torch",
    "transformers",
    "sentence-transformers",
    "outlines",
    "llguidance",
    "networkx",
    "pydantic",
    "openai",
    "bm25s",
    "jsonschema",
]
EXTRAS = {
    "gguf": ["gguf", "accelerate"],
    "langchain": ["langchain-core"],
    "proxy": ["starlette", "uvicorn", "httpx", "prometheus-client"],
    "llamaindex": ["llama-index-core"],
    "haystack": ["haystack-ai"],
    "vllm": ["vllm"],
    "ray": ["ray"],
    "otel": ["opentelemetry-api"],
}
LOCAL_ENGINES = {
    "vLLM": "http://127.0.0.1:8000/v1",
    "llama.cpp": "http://127.0.0.1:8080/v1",
    "Ollama": "http://127.0.0.1:11434/v1",
    "SGLang": "http://127.0.0.1:30000/v1",
}


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the doctor's: ``fix`` is what to type when something is missing."""

    kind: Literal["package", "extra", "model", "engine"]
    name: str
    is_ok: bool
    found: str
    fix: str = ""


def examine(backends: Sequence[str] = ()) -> list[Check]:
    """Look at packages, models and engines; changes and downloads nothing.

    Engines are those of ``backends`` and OPENAI_BASE_URL, which count as missing when they do not
    answer, and the usual local ports, which are listed only when they do.
    """
    return [*_packages(), *_extras(), *_models(), *asyncio.run(_engines(backends))]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _packages() -> list[Check]:
    checks = [Check("package", "python", True, platform.python_version())]
    for name in CORE:
        found = _version(name)
        fix = "" if found else f"pip install {name}"
        checks.append(Check("package", name, found is not None, found or "not installed", fix))
    return checks


def _extras() -> list[Check]:
    checks: list[Check] = []
    for extra, names in EXTRAS.items():
        found = [_version(name) for name in names]
        is_here = all(found)
        text = ", ".join(f"{n} {v}" for n, v in zip(names, found, strict=True) if v)
        fix = "" if is_here else f"pip install 'headrace[{extra}]'"
        checks.append(Check("extra", extra, is_here, text or "not installed (optional)", fix))
    return checks


def _models() -> list[Check]:
    from .models import EMBEDDED, locate

    checks: list[Check] = []
    for model in EMBEDDED:
        where = locate(model.repo)
        found = f"{where.source}: {where.path}" if where else "not found"
        fix = "" if where else model.install
        checks.append(Check("model", model.repo, where is not None, found, fix))
    return checks


async def _engines(backends: Sequence[str]) -> list[Check]:
    from ..backends import shown_url

    named = [*backends, *filter(None, [os.environ.get("OPENAI_BASE_URL")])]
    probes = [_probe(shown_url(url), url) for url in named]
    local = [_probe(name, url, patience=1.0) for name, url in LOCAL_ENGINES.items()]
    results = await asyncio.gather(*probes, *local)
    return [
        Check("engine", "transformers", True, "in process"),
        *results[: len(named)],
        *(check for check in results[len(named) :] if check.is_ok),
    ]


async def _probe(name: str, url: str, patience: float = 5.0) -> Check:
    from ..backends import OpenAIBackend, shown_url

    backend: OpenAIBackend | None = None
    shown, fix = shown_url(url), "start it or check the URL"
    try:
        async with asyncio.timeout(patience):
            backend = OpenAIBackend(url)
            found = await backend.capabilities()
            return Check("engine", name, True, f"answers at {shown} with {found.model}")
    except TimeoutError:
        return Check("engine", name, False, f"no answer from {shown}", fix)
    except HeadraceError as error:
        return Check("engine", name, False, str(error), fix)
    finally:
        if backend is not None:
            await backend.close()
