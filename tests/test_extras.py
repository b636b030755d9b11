"""A step whose framework is not installed says in one line what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest

MISSING = {
    "langchain": ("langchain_core", "langchain"),
    "langchain_agent": ("langchain", "langchain"),
    "llamaindex": ("llama_index", "llamaindex"),
    "haystack": ("haystack", "haystack"),
}


@pytest.mark.parametrize("module", MISSING)
def test_a_missing_framework_is_named_with_its_extra(module: str) -> None:
    package, extra = MISSING[module]
    code = f"import sys; sys.modules[{package!r}] = None; import headrace.middleware.{module}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    last = run.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: headrace's")
    assert f"pip install 'headrace[{extra}]'" in last
