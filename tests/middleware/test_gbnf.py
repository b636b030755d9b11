"""GBNF as Lark, held against another implementation of GBNF."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import constraint, grammar
from headrace.backends.remote.gbnf_grammar import from_lark
from headrace.middleware.errors import InvalidRequest, UnsupportedConstraint
from headrace.middleware.gbnf import lark_of
from headrace.middleware.grammars import grammar_violation

xgrammar = pytest.importorskip("xgrammar")

# The first example of llama.cpp's documentation has a rule that can eat what comes behind it.
SUMS = r"""root  ::= (expr "=" ws term "\n")+   # lines
expr  ::= term ([-+*/] term)*
term  ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num   ::= [0-9]+ ws
ws    ::= [ \t\n]*
"""


def _accepts(gbnf: str, text: str) -> bool:
    from xgrammar.testing import _is_grammar_accept_string

    return bool(_is_grammar_accept_string(xgrammar.Grammar.from_ebnf(gbnf), text))


def _takes(lark: str, text: str) -> bool:
    return grammar_violation(lark, text) is None


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("1+2=x\n", True),
        ("(a1 *2)=3\nb =\tb\n", True),
        ("1+=x\n", False),
        ("1+2=x", False),
        ("", False),
    ],
)
def test_what_a_rule_could_eat_is_left_for_the_next(text: str, fits: bool) -> None:
    held = grammar(SUMS)
    assert isinstance(held.spec, str)
    assert _accepts(SUMS, text) is fits
    assert _takes(held.spec, text) is fits
    assert _accepts(from_lark(held.spec), text) is fits  # what llama-server is given again


_ATOMS = st.sampled_from(
    ['"a"', '"ab"', '"b"', "[ab]", "[^a]", '""', '("a" | "bc")', "[a-c]", '"\\x61\\u0062"']
)
_PARTS = st.tuples(_ATOMS, st.sampled_from(["", "", "?", "{2}", "{1,3}"])).map("".join)
_ALTERNATIVES = st.lists(_PARTS, min_size=1, max_size=3).map(" ".join)
_BODIES = st.lists(_ALTERNATIVES, min_size=1, max_size=3).map(" | ".join)


@settings(max_examples=150, deadline=None)
@given(_BODIES, _BODIES, st.lists(st.text("abc", max_size=6), min_size=5, max_size=5))
def test_any_grammar_takes_the_same_texts(root: str, other: str, texts: list[str]) -> None:
    gbnf = f'root ::= {root} other-rule? "c"*\nother-rule ::= {other}\n'
    lark = lark_of(gbnf)
    for text in texts:
        assert _takes(lark, text) is _accepts(gbnf, text)


def test_every_sign_means_itself() -> None:
    lark = lark_of(
        r"""root ::= "a/b" Item "AB" x-y # "AB" C
Item ::= [A-Z/]+ | "\x41\u00e9" | "\\" | "\"" | [\]^-] | "\U0001F642"
x-y ::= "//" AB | . "%"
AB ::= "漢" [^A/]"""
    )
    fits = ("a/bZ/ABAB//漢🙂", 'a/b"AB//漢x', "a/bAéAB\n%", "a/b\\AB%%", "a/b]^-AB🙂%", "a/b🙂ABé%")
    for text in fits[:4] + fits[5:]:
        assert _takes(lark, text), text
    for text in ("a/b[AB%%", "a/baAB%%", "a/bZAB//漢A", "a/bZAB%", fits[4]):
        assert not _takes(lark, text), text


def test_an_alternative_may_be_empty() -> None:
    lark = lark_of('root ::= "a" ws ("b" |) "c"\nws ::= | " " | "\\n" [ \\t]{0,2}\n')
    for text in ("ac", "a bc", "a\n\t bc"):
        assert _takes(lark, text), text
    assert not _takes(lark, "a  c")


@pytest.mark.parametrize(
    ("gbnf", "why"),
    [
        ('root ::= "a" other', "has no rule other (line 1)"),
        ('root ::= "a"\nroot ::= "b"', "defines root twice"),
        ('root ::= "a', "cannot be read at '\"a' (line 1)"),
        ('root ::= "a"\n  | @', "cannot be read at '@' (line 2)"),
        ("root ::= []", "empty class []"),
        ('root ::= "\\q"', "cannot be read"),
        ('root ::= ("a"', "the grammar cannot be read"),
    ],
)
def test_a_wrong_grammar_is_one_clear_error(gbnf: str, why: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        grammar(gbnf)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


def test_rules_that_lead_too_deep_are_refused_before_the_compiler_ends_the_process() -> None:
    for start, sign in (("root", "::="), ("start", ":")):
        lines = [f'r{at} {sign} r{at + 1} | "{at}"' for at in range(3000)]
        text = "\n".join([f"{start} {sign} r0", *lines, f'r3000 {sign} "z"'])
        with pytest.raises(UnsupportedConstraint, match="500 deep"):
            grammar(text)
    lines = [f'r{at} ::= r{at + 1} | "{at}"' for at in range(300)]
    assert grammar("\n".join(["root ::= r0", *lines, 'r300 ::= "z"'])).kind == "grammar"


def test_a_mark_of_the_byte_order_is_no_part_of_a_grammar() -> None:
    assert grammar('\ufeffroot ::= "a"') == grammar('root ::= "a"')


def test_gbnf_without_a_root_is_said() -> None:
    with pytest.raises(InvalidRequest, match="begins with the rule root"):
        grammar('first ::= "a"')


def test_a_pattern_with_too_many_groups_is_one_clear_error() -> None:
    with pytest.raises(UnsupportedConstraint, match="simplify"):
        constraint(re.compile("(?:" * 200 + "a" + ")" * 200))
