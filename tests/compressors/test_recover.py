from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.compressors import Budget, Compressed, Compressor, make_counter, make_scorer
from headrace.compressors.recover import aligned, recover, restored
from headrace.middleware.errors import InvalidRequest

COMPRESSOR = Compressor(make_scorer("lexical"), make_counter())
TEXT = (
    "The old bridge, built in the summer of 1931 by Ann van der Lee, carries 1,200 cars a day.\n"
    "The new bridge was built by Bob Hill. It is closed on 12 May 2021. Nobody likes it."
)


def kept(original: str, *words: str) -> Compressed:
    """Return the original with only these stretches left, in order."""
    spans: list[tuple[int, int]] = []
    at = 0
    for word in words:
        start = original.index(word, at)
        at = start + len(word)
        spans.append((start, at))
    text = "".join(original[a:b] for a, b in spans)
    return Compressed(text, original, tuple(spans), 30, 9, "by hand")


SHORT = kept(TEXT, "bridge", " built", " 1931", " by Ann", " Lee", ", carries 1,200", " cars")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("It was built 1931.", "It was built in the summer of 1931."),
        ("Ann Lee did it.", "Ann van der Lee did it."),
        ("built 1931 by Ann Lee", "built in the summer of 1931 by Ann van der Lee"),
        ("Lee, carries 1,200 cars", "Lee, carries 1,200 cars"),
        ("1931", "1931"),
        ("Built 1931", "Built 1931"),
        ("Lee Ann built", "Lee Ann built"),
        ("built\n1931", "built\n1931"),
        ("", ""),
        ("  ?! ", "  ?! "),
    ],
)
def test_what_was_dropped_inside_a_repeated_phrase_comes_back(answer: str, expected: str) -> None:
    assert recover(SHORT, answer) == expected


def test_nothing_is_added_before_or_after_a_phrase() -> None:
    short = kept(TEXT, "May 2021", " likes")
    assert recover(short, "In May 2021.") == "In May 2021."


def test_a_gap_is_bounded_and_ends_with_its_sentence() -> None:
    assert recover(SHORT, "built 1931", max_gap=3) == "built 1931"
    assert recover(SHORT, "built 1931", max_gap=4) == "built in the summer of 1931"
    assert recover(kept(TEXT, "Bob", " is closed"), "Bob is closed") == "Bob is closed"
    assert recover(kept(TEXT, "a day", "\nThe new"), "a day The new") == "a day The new"
    assert recover(kept(TEXT, "cars", " new"), "cars new") == "cars new"


def test_of_two_places_the_one_with_less_between_is_meant() -> None:
    assert recover(kept(TEXT, "built", " by", " built by"), "built by Bob") == "built by Bob"


def test_the_longest_run_is_taken_first() -> None:
    text = "a b x c. b c y d."
    short = kept(text, "a b", " c.", " b c", " d.")
    assert recover(short, "a b c d") == "a b x c d"


def test_scripts_without_spaces() -> None:
    text = "桥梁由安娜在一九三一年夏天建成。"
    assert recover(kept(text, "桥梁", "一九三一年", "建成"), "桥梁一九三一年建成") == text[:-1]


def test_a_real_compression_is_recovered_in_full_when_the_answer_repeats_it() -> None:
    [result] = COMPRESSOR.compress([TEXT], Budget(rate=0.7))
    sentence = result.text.split("\n")[0]
    assert sentence != TEXT.split("\n")[0]
    found = recover(result, sentence)
    assert found in TEXT
    assert len(found) > len(sentence)


@given(st.text(max_size=80), st.text(max_size=30), st.floats(0, 1))
@settings(deadline=None)
def test_any_answer_to_any_text(text: str, answer: str, rate: float) -> None:
    [result] = COMPRESSOR.compress([text], Budget(rate=rate))
    found = recover(result, answer)
    if result.text == text:
        assert found == answer
    letters = iter(found)
    assert all(char in letters for char in answer if not char.isspace())


@given(st.lists(st.sampled_from("abc,"), max_size=40), st.data())
@settings(deadline=None)
def test_a_text_without_spans_is_aligned(words: list[str], data: st.DataObject) -> None:
    left = [word for word in words if data.draw(st.booleans())]
    found = aligned(" ".join(words), " ".join(left))
    assert [" ".join(words)[a:b] for a, b in found] == left
    assert all(a[1] <= b[0] for a, b in pairwise(found))


def test_alignment_prefers_long_runs_and_says_what_is_not_there() -> None:
    spans = aligned("the man saw the old dog", "the old dog")
    assert spans[0][0] == 12
    assert restored("the man saw the old dog", spans, "the old dog") == "the old dog"
    with pytest.raises(InvalidRequest, match="no place for 'cat', word 2"):
        aligned("the dog", "the cat")


@pytest.mark.timeout(60)
def test_repetition_takes_no_more_than_a_moment() -> None:
    text = "the dog " * 4_000
    [result] = COMPRESSOR.compress([text], Budget(rate=0.5))
    assert recover(result, "the dog the " * 300)
    assert aligned(text, result.text)


def test_a_negative_gap_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="-1"):
        recover(SHORT, "a b", max_gap=-1)
