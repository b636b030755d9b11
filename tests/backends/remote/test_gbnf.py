"""GBNF, read back by another implementation of the language."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.backends.remote.gbnf import from_choices, from_regex
from headrace.middleware.errors import UnsupportedConstraint

xgrammar = pytest.importorskip("xgrammar")


def accepts(grammar: str, text: str) -> bool:
    from xgrammar.testing import _is_grammar_accept_string

    return bool(_is_grammar_accept_string(xgrammar.Grammar.from_ebnf(grammar), text))


def test_choices_with_every_sign_are_exact() -> None:
    options = ["yes", 'no "x"\n', "a\\b", "[é]", "漢🙂", "New", "New York"]
    grammar = from_choices(options)
    assert all(accepts(grammar, option) for option in options)
    assert not any(accepts(grammar, text) for text in ("ye", "yesno", "ab", "é", "New Yor"))


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        (r"^\d{3}-\d{2,}(\.5)?$", ["123-45", "000-123.5"], ["123-4", "12-45", "123-45."]),
        (r"[^a\]-]+x?", ["bcx", "^"], ["a", "]", "-"]),
        (r"^a$|^b$", ["a", "b"], ["ab", "c"]),
        (r"(?:a|bc){0,2}", ["", "abc", "bcbc"], ["aaa", "b"]),
        (r"(?P<year>19|20)[0-9]{2}", ["1999"], ["1899"]),
        (r"[\w ]+\s\D", ["a b c"], ["a b 1"]),
        (r"a+?b*?", ["aab", "a"], ["b"]),
        (r"\x41B\n.", ["AB\n1"], ["ABn1", "AB\n\n"]),
        (r"[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?", ["-1.5e+3", "7"], ["1.", "e3"]),
        (r"|x", ["", "x"], ["xx"]),
        (r"[]a]", ["]", "a"], ["b"]),
    ],
)
def test_a_pattern_means_what_it_means_to_python(
    pattern: str, yes: list[str], no: list[str]
) -> None:
    grammar = from_regex(pattern)
    for text in yes + no:
        assert (re.fullmatch(pattern, text) is not None) == (text in yes), text
        assert accepts(grammar, text) == (text in yes), (grammar, text)


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)b", "(?!a)b", "(?i)a", r"(a)\1", r"\bword\b", r"\Aa\Z", r"\p{L}", "a++", "a{2",
        "(a*)*", "(a|)+", "a{1001}", "a$b", "(^a)", "(?>a)", "[[:alpha:]]", "[z-a]", "(a", "a)",
        "[a", "*a", "(" * 60 + "a" + ")" * 60, "a{,3}", "(?#x)a", r"\xZZ",
    ],
)  # fmt: skip
def test_fault_5_what_is_outside_the_subset_is_refused_with_its_place(pattern: str) -> None:
    with pytest.raises(UnsupportedConstraint, match=r"GBNF cannot say .* of '"):
        from_regex(pattern)


_ATOMS = st.sampled_from(["a", "b", "[ab]", "[^a]", r"\.", r"\d", "é", "(?:ab)", "."])


def _more(patterns: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    bounds = st.sampled_from(["+", "{2}", "{1,3}"])
    return (
        st.tuples(patterns, patterns).map("".join)
        | st.tuples(patterns, patterns).map(lambda two: f"({two[0]}|{two[1]})")
        | st.tuples(patterns, bounds).map(lambda two: f"(?:{two[0]}){two[1]}")
        | patterns.map(lambda one: f"x(?:{one})?")
    )


@settings(max_examples=100, deadline=None)
@given(st.recursive(_ATOMS, _more, max_leaves=5), st.text("ab.1éx\n", max_size=6))
def test_any_pattern_of_the_subset_agrees_with_python(pattern: Any, text: str) -> None:
    expected = re.fullmatch(pattern, text) is not None
    assert accepts(from_regex(pattern), text) == expected
