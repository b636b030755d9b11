"""``headrace ask`` under a constraint, as a person at a terminal runs it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest


def run(*arguments: str, check: int = 0) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "headrace.middleware.cli", *arguments]
    result = subprocess.run(command, capture_output=True, timeout=300)
    assert result.returncode == check, result.stderr.decode()
    return result


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--regex", "a", "--template", "{a}"], b"--regex and --template exclude each other"),
        (["--grammar", "g.lark", "--choice", "a"], b"--choice and --grammar exclude each other"),
        (["--schema", "s.json", "--regex", "a"], b"--schema and --regex exclude each other"),
        (["--grammar", "no/such.lark"], b"cannot read the grammar no/such.lark"),
        (["--grammar", "LICENSE"], b"grammar cannot be read"),
        (["--template", "no field"], b"a template has 1 to 100 fields"),
        (["--template", "{a"], b"cannot be read"),
        (["--template", "{a:date}"], b"none of str, int, float, bool"),
        (["--choice", ""], b"non-empty texts"),
        (["--regex", ""], b"empty"),
    ],
)
def test_what_cannot_be_asked_is_said_in_one_line(arguments: list[str], says: bytes) -> None:
    result = run("ask", "Who?", *arguments, check=2)
    assert says in result.stderr
    assert result.stderr.startswith(b"headrace: error: ")
    assert result.stderr.count(b"\n") == 1
    assert result.stdout == b""


@pytest.mark.model
@pytest.mark.slow
def test_each_kind_gives_what_it_promises(tmp_path: Path) -> None:
    grammar = tmp_path / "g.gbnf"
    grammar.write_text('root ::= "yes" | "no" | "may" "be"+\n')
    schema = tmp_path / "s.json"
    fields = {"sky": {"enum": ["blue", "red"]}, "sure": {"type": "boolean"}}
    schema.write_text(
        json.dumps(
            {"type": "object", "properties": fields, "required": [*fields]}
            | {"additionalProperties": False}
        )
    )
    cases = {
        ("--grammar", str(grammar)): r"(yes|no|may(be)+)\n",
        ("--choice", "blue"): r"blue\n",
        ("--regex", "[a-z]{3}"): r"[a-z]{3}\n",
        ("--template", "The sky is {colour:blue|red}, {sure:bool}."): (
            r"The sky is (blue|red), (true|false)\.\n"
        ),
        ("--schema", str(schema)): r'\{\s*"sky".*\}\n',
    }
    for arguments, pattern in cases.items():
        out = run("ask", "What colour is the sky?", *arguments, "--max-tokens", "40").stdout
        assert re.fullmatch(pattern, out.decode(), re.DOTALL), (arguments, out)


@pytest.mark.model
def test_a_templates_fields_are_values_in_the_json() -> None:
    arguments = ["--template", "Legs of a cat: {legs:int}.", "--json", "--max-tokens", "20"]
    result = json.loads(run("ask", "How many legs has a cat?", *arguments).stdout)
    assert set(result["parsed"]) == {"legs"}
    assert isinstance(result["parsed"]["legs"], int)
    assert result["text"] == f"Legs of a cat: {result['parsed']['legs']}."


@pytest.mark.model
def test_an_answer_that_is_cut_fails_and_says_what_it_lacks() -> None:
    arguments = ["--regex", "[a-z ]{500}", "--max-tokens", "5"]
    result = run("ask", "Why?", *arguments, check=1)
    assert b"cut after 5 tokens" in result.stderr
    assert result.stdout == b""
