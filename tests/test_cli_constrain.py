"""``headrace constrain check`` as a script sees it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.model, pytest.mark.slow]

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
    },
    "required": ["name"],
    "additionalProperties": False,
}


def check(*arguments: str, stdin: Any = PERSON, code: int = 0) -> tuple[bytes, bytes]:
    done = subprocess.run(
        [sys.executable, "-m", "headrace.middleware.cli", "constrain", "check", *arguments],
        input=(stdin if isinstance(stdin, str) else json.dumps(stdin)).encode(),
        capture_output=True,
        check=False,
    )
    assert done.returncode == code, done.stderr.decode()
    return done.stdout, done.stderr


def file(folder: Path, text: str) -> str:
    path = folder / "instance.json"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_json_says_who_takes_it_at_what_cost_and_what_is_left() -> None:
    report = json.loads(check("-", "--json")[0])
    assert list(report) == ["draft", "unknown", "engines"]
    assert report["unknown"] == []
    assert report["draft"] == "2020-12"
    by_name = {one["engine"]: one for one in report["engines"]}
    assert list(by_name) == ["auto", "llguidance", "xgrammar", "outlines_core"]
    assert by_name["auto"]["enforced"] == "partial"
    assert by_name["auto"]["residual"] == ["/properties/tags/uniqueItems"]
    assert by_name["auto"]["cpu_ms"] > 0
    assert "not a json_schema" in by_name["outlines_core"]["error"]


def test_an_instance_is_accepted_and_valid(tmp_path: Path) -> None:
    path = file(tmp_path, '{"name":"x",\t"tags":["a"]}\n')
    report = json.loads(check("-", "--json", "--instance", path)[0])
    assert report["instance"] == {
        "accepted": True,
        "refused_at": None,
        "valid": True,
        "problem": None,
    }


def test_an_instance_that_only_the_check_refuses(tmp_path: Path) -> None:
    path = file(tmp_path, '{"name": "x", "tags": ["a", "a"]}')
    out, _ = check("-", "--instance", path, code=1)
    assert b"accepted by the automaton, invalid: /tags: " in out


def test_an_instance_that_the_automaton_refuses(tmp_path: Path) -> None:
    path = file(tmp_path, '{"name": 1}')
    report = json.loads(check("-", "--json", "--instance", path, code=1)[0])
    assert report["instance"]["accepted"] is False
    assert report["instance"]["refused_at"] in (8, 9)
    assert report["instance"]["valid"] is False


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ("{", "not JSON"),
        ('{"type": "wibble"}', "type must be one or more of"),
        ('{"$ref": "#"}', "no finite value"),
    ],
)
def test_what_is_no_schema_is_bad_usage(schema: str, named: str) -> None:
    _, error = check("-", stdin=schema, code=2)
    assert named in error.decode()
    assert len(error.decode().strip().splitlines()) == 1


def test_an_instance_that_is_no_json_is_bad_usage(tmp_path: Path) -> None:
    _, error = check("-", "--instance", file(tmp_path, "{"), code=2)
    assert b"is no JSON" in error


def test_misspelt_keywords_are_named_and_a_missing_file_is_bad_usage(tmp_path: Path) -> None:
    schema = {"type": "object", "requird": ["a"], "properties": {"a": {"maxLenght": 3, "x-y": 1}}}
    report = json.loads(check("-", "--json", stdin=schema)[0])
    assert report["unknown"] == ["/requird", "/properties/a/maxLenght"]
    _, error = check(str(tmp_path / "none.json"), code=2)
    assert b"no such file" in error
