"""docs/faults.md names tests that exist, and says why where it names none."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")


def rows() -> list[list[str]]:
    """Return the cells of every row, headings left out."""
    lines = ROOT.joinpath("docs", "faults.md").read_text("utf-8").splitlines()
    found = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines if line.startswith("|")]
    return [row for row in found if not row[0].startswith((" what", "---"))]


@cache
def functions(file: str) -> frozenset[str]:
    tree = ast.parse(TESTS.joinpath(file).read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in tree.body if isinstance(node, kinds))


def test_every_row_names_a_test_or_says_why_not() -> None:
    assert len(rows()) >= 56
    for row in rows():
        assert len(row) == 3, row
        assert NAMED.search(row[2]) or row[2].strip().startswith("No test:"), row


def test_every_named_test_exists() -> None:
    named = {pair for row in rows() for pair in NAMED.findall(row[2])}
    assert len(named) > 60
    missing = [
        f"{file}::{name}"
        for file, name in sorted(named)
        if not TESTS.joinpath(file).is_file() or name not in functions(file)
    ]
    assert missing == []


def test_every_test_of_a_fault_is_in_the_table() -> None:
    file = "compressors/test_faults.py"
    named = {name for row in rows() for other, name in NAMED.findall(row[2]) if other == file}
    assert {name for name in functions(file) if name.startswith("test_")} == named
