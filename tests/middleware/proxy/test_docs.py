"""docs/proxy.md names tests, settings and metrics that exist."""

from __future__ import annotations

import ast
import re
import tomllib
from dataclasses import fields
from pathlib import Path

from headrace.middleware.proxy.config import Config, Live, read_config
from headrace.middleware.proxy.metrics import Metrics
from headrace.middleware.wrap_options import Options

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT.joinpath("docs", "proxy.md").read_text("utf-8")
NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")


def test_every_fault_has_a_test_that_exists_or_a_reason() -> None:
    table = PAGE.split("## Faults")[1]
    rows = [line.split(" | ") for line in table.splitlines() if re.match(r"\| \d+ ", line)]
    assert [int(row[0].split()[1]) for row in rows] == [*range(1, 32)]
    for row in rows:
        named = NAMED.findall(row[2])
        assert named or row[2].startswith("No test:")
        for file, name in named:
            tree = ast.parse(ROOT.joinpath("tests", file).read_text("utf-8"))
            found = (ast.FunctionDef, ast.AsyncFunctionDef)
            assert name in {node.name for node in tree.body if isinstance(node, found)}


def test_the_example_is_a_configuration() -> None:
    [example] = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    config = read_config(tomllib.loads(example))
    assert config.policy("gpt-4o")[1].off
    assert config.policy("qwen")[1].constrain
    assert dict(config.policy("other")[1].rates) == {"tool": ((1, 0.5), (4, 0.2))}


def test_every_setting_option_and_metric_is_told() -> None:
    table = PAGE.split("## Settings")[1].split("\n\n")[1]
    settings = {one.name for one in fields(Config)} - {"models", "keys", "backend_key"}
    assert {name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row[:30])} \
        >= settings  # fmt: skip
    text = ROOT.joinpath("docs", "wrap.md").read_text("utf-8")
    assert all(f"`{one.name}`" in text for one in fields(Options))
    metrics = Metrics(Live(backend="http://127.0.0.1:1"))
    for family in metrics.registry.collect():
        assert family.name in PAGE
