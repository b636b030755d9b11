"""The option --rule: what it fits, and what is said of one that fits nothing."""

from __future__ import annotations

import json
import subprocess
import sys

from headrace.compressors import JsonPolicy
from headrace.middleware.cli_rules import plain_rules

NOTE = "The old mill was built of grey stone by a careful and quite patient builder long ago. " * 4
ITEMS = json.dumps({"items": [{"body": NOTE, "id": 7}, {"body": NOTE, "id": 8}]})


def run(text: str, *rules: str) -> tuple[str, str]:
    command = [sys.executable, "-m", "headrace.middleware.cli", "compress", "-"]
    command += ["--compressor", "lexical", "--rate", "1"]
    for rule in rules:
        command += ["--rule", rule]
    done = subprocess.run(command, input=text.encode(), capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode(), done.stderr.decode()


def test_a_rule_that_fits_nothing_is_said_and_the_others_act() -> None:
    out, said = run(ITEMS, "items[*].body=0.3", "items[*].bdy=drop", "items[*].id=keep")
    assert "note: --rule 'items[*].bdy' fits no value of JSON in the text" in said
    assert said.count("--rule") == 1
    assert all(len(item["body"]) < 0.5 * len(NOTE) for item in json.loads(out)["items"])


def test_a_rule_hidden_by_a_later_one_has_still_fitted() -> None:
    _, said = run(ITEMS, "items[*].body=0.3", "**.body=keep")
    assert "--rule" not in said


def test_a_text_without_json_fits_no_rule() -> None:
    out, said = run(NOTE, "items[*].body=0.3")
    assert out == NOTE
    assert "--rule 'items[*].body' fits no value of JSON in the text" in said


def test_rules_for_many_rows_are_plain() -> None:
    assert plain_rules(["a=0.3", "b=keep"]) == JsonPolicy({"a": 0.3, "b": "keep"})
    assert type(plain_rules(["a=0.3"])) is JsonPolicy
    assert plain_rules(None) is None
