"""Lark grammars for llama.cpp, read back by another implementation of GBNF."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.backends.remote.dialects import DIALECTS
from headrace.backends.remote.gbnf_grammar import from_lark
from headrace.middleware.errors import UnsupportedConstraint

xgrammar = pytest.importorskip("xgrammar")

LARK = r"""// a list of orders
start: "orders: " an_order (", " an_order)* end?
an_order: AMOUNT " of "i /[a-z]+(\/[a-z]+)?/
AMOUNT.2: "1".."9" ("0" | "5") ~ 1..2   # 10 to 955
!end: "." -> stop
"""


def _accepts(gbnf: str, text: str) -> bool:
    from xgrammar.testing import _is_grammar_accept_string

    return bool(_is_grammar_accept_string(xgrammar.Grammar.from_ebnf(gbnf), text))


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("orders: 10 of tea", True),
        ("orders: 955 OF tea/milk, 15 of tea.", True),
        ("orders: 5 of tea", False),
        ("orders: 10 of Tea", False),
        ("orders: 10 of tea..", False),
    ],
)
def test_signs_of_lark_keep_their_meaning(text: str, fits: bool) -> None:
    assert _accepts(from_lark(LARK), text) is fits


def test_names_get_gbnfs_letters_and_stay_apart() -> None:
    gbnf = from_lark(
        "start: a_b root a-b\n".replace("a-b", "_a_b") + 'a_b: "1"\n_a_b: "2"\nroot: "3"'
    )
    assert _accepts(gbnf, "132")
    assert not _accepts(gbnf, "122")


@pytest.mark.parametrize(
    "lark",
    [
        'start: %json {"type": "object"}',
        '%ignore / /\nstart: "a"',
        "start: /a/i",
        'start[max_tokens=3]: "a"',
        'first: "a"',
        'start: "a"\nstart: "b"',
        "start: other",
        'start: "ß"i',
        "start: /(?=a)a/",
        'start: A & B\nA: "a"\nB: "b"',
    ],
)
def test_what_gbnf_cannot_say_is_refused(lark: str) -> None:
    with pytest.raises(UnsupportedConstraint):
        from_lark(lark)


def test_llama_gets_gbnf_and_the_grammar_itself_where_gbnf_cannot_say_it() -> None:
    fields: Any = DIALECTS["llama.cpp"].fields["grammar"]
    assert fields[0].write('start: "yes"') == {"grammar": 'root ::= "yes"'}
    with pytest.raises(UnsupportedConstraint):
        fields[0].write('start: "yes"i /x/i')
    assert fields[1].write("start: /x/i")["grammar"].startswith("%llguidance {}")
