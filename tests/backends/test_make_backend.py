from __future__ import annotations

import subprocess
import sys

import pytest

from headrace.backends import OpenAIBackend, TransformersBackend, make_backend
from headrace.middleware.errors import HeadraceError, InvalidRequest


@pytest.mark.parametrize("name", [None, "transformers"])
def test_no_name_is_the_model_in_process(name: str | None) -> None:
    assert isinstance(make_backend(name), TransformersBackend)


def test_a_url_is_a_server() -> None:
    assert isinstance(make_backend("http://localhost:8000", "tiny"), OpenAIBackend)


@pytest.mark.parametrize("name", ["vLLM!", "", "localhost:8000"])
def test_anything_else_is_refused_with_the_choices(name: str) -> None:
    with pytest.raises(InvalidRequest, match="transformers"):
        make_backend(name)


def test_vllm_needs_a_model_and_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidRequest, match="needs a model"):
        make_backend("vllm")
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(HeadraceError, match=r"headrace\[vllm\]"):
        make_backend("vllm", "smollm2")


def test_making_a_backend_imports_no_engine() -> None:
    code = (
        "import sys; from headrace.backends import make_backend as make;"
        "make(); make('http://h');"
        "heavy = {'torch', 'transformers', 'outlines', 'llguidance', 'openai', 'numpy'};"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
