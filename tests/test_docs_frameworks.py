"""The pages about agents and frameworks run, from top to bottom, and the site has every page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
SAYS = {
    "agents.md": (["tokens", "[None, None, 'call-1', None, 'call-2']", "decision"], 3),
    "frameworks.md": (["1913", "relevance_score", "Vikto 0.5", "'documents'"], 3),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SAYS)
def test_the_page_runs_from_top_to_bottom(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for package in ("langchain", "llama_index.core", "haystack"):
        pytest.importorskip(package)
    names: dict[str, Any] = {"__name__": "page"}
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / name).read_text(), re.DOTALL)
    words, num_blocks = SAYS[name]
    assert len(blocks) == num_blocks
    for block in blocks:
        exec(compile(block, name, "exec", dont_inherit=True), names)
    out = capsys.readouterr().out
    for said in words:
        assert said in out


def test_every_page_is_on_the_site() -> None:
    listed = set(re.findall(r": ([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert listed == pages | {"index.md"}  # which is the README


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="pip install 'headrace[docs]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "HeadraceMiddleware" in (tmp_path / "api" / "index.html").read_text("utf-8")
    assert "headrace" in (tmp_path / "index.html").read_text("utf-8")
