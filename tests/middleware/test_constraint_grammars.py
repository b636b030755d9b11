"""Grammars as constraints, from texts and from files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from headrace import InvalidRequest, constraint, grammar
from headrace.middleware.outcome import broken, parsed
from headrace.middleware.types import Response

LARK = 'start: "yes" | "no" WS?\nWS: / +/\n'
GBNF = 'root ::= "yes" | "no" ws\nws ::= [ ]*\n'


@pytest.mark.parametrize(("name", "text"), [("g.lark", LARK), ("g.gbnf", GBNF)])
def test_grammar_files_of_both_kinds(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    made = constraint(path)
    assert made == grammar(path) == grammar(text)
    assert broken("no  ", made) is None
    assert "at character 3" in str(broken("yes ", made))
    assert "ends in the middle" in str(broken("ye", made))
    assert parsed(Response("yes"), made) == "yes"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "Lark or GBNF"),
        (5, "Lark or GBNF"),
        ("start: foo", 'unknown name: "foo"'),
        ("start: /[/", "invalid regex"),
        ("root ::= foo", "no rule foo"),
        ('root ::= "a', "GBNF"),
        ("start: <|no-such-token|>", "cannot be read"),
        (Path("no/such.lark"), "cannot read the grammar"),
    ],
)
def test_what_is_no_grammar_is_refused_with_the_place(text: Any, says: str) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(says)) as caught:
        grammar(text)
    assert "\n" not in str(caught.value)


def test_a_gbnf_file_without_root_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "g.gbnf"
    path.write_text('start: "a"')
    with pytest.raises(InvalidRequest, match="root ::="):
        grammar(path)
