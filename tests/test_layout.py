"""The promises that the repository's shape makes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import headrace

ROOT = Path(__file__).resolve().parents[1]
PARTS = ["backends", "compressors", "middleware", "planners"]
HEAVY = {
    "bm25s",
    "diskcache",
    "jsonschema",
    "langchain_core",
    "llguidance",
    "networkx",
    "numpy",
    "openai",
    "outlines",
    "pydantic",
    "rich",
    "sentence_transformers",
    "tokenizers",
    "torch",
    "transformers",
}


@pytest.mark.parametrize("part", PARTS)
def test_a_folder_at_the_top_is_the_subpackage_of_its_name(part: str) -> None:
    link = ROOT / "src" / "headrace" / part
    assert link.is_symlink(), f"{link} is no link: set git core.symlinks, check out again"
    assert link.resolve() == ROOT / part


def test_exported_names_are_sorted_and_there() -> None:
    assert headrace.__all__ == sorted(headrace.__all__)
    assert all(hasattr(headrace, name) for name in headrace.__all__)


@pytest.mark.parametrize(
    "code",
    [
        "import headrace",
        "import sys; sys.argv = ['headrace', '--help']; from headrace.middleware.cli import main\n"
        "try: main()\nexcept SystemExit: pass",
    ],
    ids=["import", "help"],
)
def test_start_is_light(code: str) -> None:
    show = f"import sys; print('HEAVY', *sorted({HEAVY!r} & set(sys.modules)))"
    command = [sys.executable, "-c", f"{code}\n{show}"]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert out.splitlines()[-1].split() == ["HEAVY"]


def test_nothing_but_headrace_is_importable() -> None:
    code = f"import importlib.util as u; print(*[n for n in {PARTS} if u.find_spec(n)])"
    out = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    )
    assert out.stdout.split() == []
