"""The page about constraints runs, from top to bottom."""

from __future__ import annotations

import asyncio
import re
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[1] / "docs" / "constraints.md"


@pytest.mark.model
@pytest.mark.slow
def test_the_page_runs_from_top_to_bottom(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", page)
    names: dict[str, Any] = page.__dict__
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 9
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # transformers speaks of generation flags in Outlines' loop
        for block in blocks:
            exec(compile(block, str(PAGE), "exec", dont_inherit=True), names)
    asyncio.run(names["show"]())
    out = capsys.readouterr().out
    assert "kind=" in out
    assert "level='full'" in out
    assert "cut after 8 tokens" in out
