"""docs/planning.md has a row for each of the 40 faults, with a test that exists or a reason."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")


def rows() -> list[list[str]]:
    text = ROOT.joinpath("docs", "planning.md").read_text("utf-8")
    lines = [line for line in text.splitlines() if re.match(r"\| \d+ ", line)]
    return [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines]


@cache
def functions(file: str) -> frozenset[str]:
    tree = ast.parse(ROOT.joinpath("tests", file).read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in tree.body if isinstance(node, kinds))


def test_every_fault_has_a_row() -> None:
    assert [int(row[0].split()[0]) for row in rows()] == list(range(1, 41))


def test_every_row_names_a_test_that_exists_or_says_why_not() -> None:
    for row in rows():
        assert len(row) == 3, row
        named = NAMED.findall(row[2])
        assert named or row[1].strip().startswith("No test:"), row
        for file, name in named:
            assert ROOT.joinpath("tests", file).is_file(), file
            assert name in functions(file), (file, name)
