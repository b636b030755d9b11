"""One pattern in two dialects: what Python searches for is what the automaton writes."""

from __future__ import annotations

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from llguidance import LLMatcher, LLTokenizer

from headrace.backends.decoding.formats import FORMATS, without_leap_second
from headrace.backends.decoding.patterns import (
    TooLarge,
    Unsupported,
    check_size,
    repeats,
    searched,
    whole,
)

BYTES = LLTokenizer("byte")
ATOMS = ["a", "b", ".", r"\d", r"\W", "[a1]", "[^a]", r"[\d-]", r"[\w-.]", r"\.", "-", r"\n", "[^]"]
ATOM = st.sampled_from(ATOMS)
REPEATED = st.builds(
    "{}{}".format, ATOM, st.sampled_from(["", "", "*", "+", "?", "{2}", "{1,2}", "*?"])
)
RUN = st.lists(REPEATED, min_size=1, max_size=4).map("".join)
BRANCH = st.builds("{}{}{}".format, st.sampled_from(["", "^"]), RUN, st.sampled_from(["", "$"]))
GROUP = st.lists(RUN, min_size=1, max_size=2).map(lambda runs: f"(?:{'|'.join(runs)})")
PATTERN = st.one_of(
    st.lists(BRANCH, min_size=1, max_size=3).map("|".join),
    st.builds("^{}{}$".format, RUN, GROUP),
    st.lists(BRANCH, min_size=1, max_size=2).map(lambda branches: f"({'|'.join(branches)})"),
)


def writes(pattern: str, text: str) -> bool:
    matcher = LLMatcher(BYTES, LLMatcher.grammar_from_regex(pattern), log_level=0)
    assert not matcher.is_error(), matcher.get_error()
    data = list(text.encode())
    return matcher.try_consume_tokens(data) == len(data) and matcher.is_accepting()


def finds(pattern: str, text: str) -> bool:
    return regex.search(searched(pattern), text, flags=regex.VERSION1) is not None


@given(PATTERN, st.text("ab1-.\n\r", max_size=6))
@settings(max_examples=400, deadline=None)
def test_what_is_found_is_what_is_written(pattern: str, text: str) -> None:
    assert writes(whole(pattern), text) == finds(pattern, text)


@pytest.mark.parametrize(
    ("pattern", "text", "is_found"),
    [
        ("^a$", "a\n", False),
        (r"^\u0041\u{1F600}$", "A😀", True),
        (r"\/x", "/x", True),
        ("a{,3}", "a{,3}", True),
        ("]", "]", True),
        (r"\A\d\Z", "1", True),
        ("(?<year>[0-9]{4})", "in 2024", True),
        ("[]", "a", False),
        (r"^[\s]$", "\ufeff", True),
    ],
)
def test_ecmascript_is_read_as_it_is_meant(pattern: str, text: str, is_found: bool) -> None:
    assert finds(pattern, text) is is_found
    assert writes(whole(pattern), text) is is_found


@pytest.mark.parametrize(
    "pattern", ["(?=a)b", "(?!a)", "(?<=a)b", r"(a)\1", r"\ba", "a^b", r"(?<n>a)\k<n>", "[a"]
)
def test_what_no_automaton_has_is_unsupported(pattern: str) -> None:
    with pytest.raises(Unsupported):
        whole(pattern)


def test_counts_are_multiplied_where_they_nest_and_added_where_they_do_not() -> None:
    assert repeats("a{3}b{4}") == 7
    assert repeats("(a{3}b{4}){10}") == 70
    assert repeats("(a{1000})*") == 1000
    with pytest.raises(TooLarge, match="1000000"):
        check_size("(a{1000}){1000}")
    with pytest.raises(TooLarge, match="characters"):
        check_size("a" * 30_000)


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_a_format_is_a_pattern_in_both_dialects(name: str) -> None:
    assert regex.compile(FORMATS[name], flags=regex.VERSION1)
    assert not writes(FORMATS[name], "\x00")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("23:59:60Z", "23:59:59Z"),
        ("1998-12-31T15:59:60.5-08:00", "1998-12-31T15:59:59.5-08:00"),
        ("05:44:60+05:45", "05:44:59+05:45"),
        ("22:59:60Z", "22:59:60Z"),
        ("23:59:60+01:00", "23:59:60+01:00"),
    ],
)
def test_a_leap_second_is_one_only_at_midnight_in_utc(text: str, expected: str) -> None:
    assert without_leap_second(text) == expected
