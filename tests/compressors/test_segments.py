from __future__ import annotations

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.compressors import Budget, Compressed, Compressor, make_counter, make_scorer
from headrace.compressors.segments import segments
from headrace.middleware.errors import InvalidRequest

COMPRESSOR = Compressor(make_scorer("lexical"), make_counter())
LONG = (
    "The committee met on 12 May 2021 to talk about the new bridge. Ann Lee said that the costs"
    " would rise to 1,234.56 EUR, and that nobody should start before the permit is there."
)
RATED = "Afterwards they all had coffee and cake, and went home because it was late."


def squeeze(text: str, rate: float, **options: object) -> Compressed:
    budget = options.pop("budget", Budget(rate=rate))
    [result] = COMPRESSOR.compress([text], budget, segments=True, **options)  # type: ignore[arg-type]
    assert result.text == "".join(text[a:b] for a, b in result.spans)
    assert result.tokens_out == COMPRESSOR.counter.count(result.text)
    return result


def kept(text: str) -> str:
    return f"<headrace keep>{text}</headrace>"


def bare(text: str) -> str:
    return re.sub(r"</?headrace[^>]*>", "", text)


def test_a_kept_part_is_the_same_bytes_and_the_rest_has_its_rate() -> None:  # users' issue 114
    result = squeeze(f"{kept('ID A-1')}<headrace rate=.2>{LONG}</headrace>", 0.9)
    assert result.text.startswith("ID A-1 ")
    assert 0 < COMPRESSOR.counter.count(result.text[7:]) <= 0.2 * COMPRESSOR.counter.count(LONG)


@pytest.mark.parametrize(
    "content",
    [
        '{"a": [1,  2], "b": "<x> & </y>"}',
        "if a < b && c > d:\n    print('x  y')\n",
        "a < b, and <b>bold</b>  text\t\n\n\n",
        "<headracer keep> is no tag of ours",
        "é 東京 🚀\u200d",
    ],
)
@pytest.mark.parametrize("rate", [0, 0.3, 1])
def test_anything_but_a_tag_may_stand_in_a_kept_part(content: str, rate: float) -> None:
    result = squeeze(f"{LONG} {kept(content)} {RATED}", rate)
    assert content in result.text


def test_an_angle_bracket_in_a_shortened_part_loses_nothing_else() -> None:  # 1.6, defect 7
    text = f"<headrace rate=0.9>If a < 1 then stop. {LONG}</headrace> {RATED}"
    assert "a < 1" in squeeze(text, 0.5).text
    assert "coffee" in squeeze(text, 0.9).text


def test_each_part_keeps_to_its_budget_and_the_rest_to_the_common_one() -> None:
    text = f"{LONG}\n\n<headrace target=5>{RATED}</headrace>\n\n{LONG}"
    result = squeeze(text, 0.5)
    count = COMPRESSOR.counter.count
    assert result.tokens_in == count(bare(text))
    assert result.tokens_out <= 0.5 * 2 * count(LONG) + 3 + 5
    paragraphs = result.text.split("\n\n")
    assert len(paragraphs) == 3
    assert count(paragraphs[1]) <= 5
    whole = f"<headrace threshold=0>{RATED}</headrace> <headrace quality=1>{RATED}</headrace>"
    assert squeeze(whole, 0).text == f"{RATED} {RATED}"


def test_a_target_is_for_the_whole_text() -> None:
    text = f"{LONG} {kept(RATED)}"
    least = COMPRESSOR.counter.count(RATED)
    result = squeeze(text, 0, budget=Budget(target_tokens=least + 10))
    assert least < result.tokens_out <= least + 10
    over = squeeze(text, 0, budget=Budget(target_tokens=5))
    assert over.text == RATED
    assert over.reason is not None
    assert "5 were asked for" in over.reason


def test_rate_one_is_the_text_without_its_tags() -> None:
    text = f"{LONG}{kept(' x ')}{RATED}\n"
    assert squeeze(text, 1).text == bare(text)
    assert squeeze(text, 1).reason is None


def test_words_of_two_parts_are_not_written_as_one() -> None:
    text = f"Well, the total{kept('sum')} and then some <headrace rate=1>more</headrace> of it"
    for rate in (0, 0.2, 0.5, 0.8):
        words = squeeze(text, rate).text.split()
        assert set(words) <= {*bare(text).split(), "sum"}


def test_the_parts_of_several_texts_share_one_budget_when_joint() -> None:
    texts = [f"{LONG} {kept('A-1')}", RATED, f"<headrace rate=1>{RATED}</headrace>"]
    results = COMPRESSOR.compress(texts, Budget(rate=0.3), segments=True, joint=True)
    count = COMPRESSOR.counter.count
    most = math.floor(0.3 * (count(LONG) + count(RATED))) + count(RATED) + count("A-1")
    assert sum(result.tokens_out for result in results) <= most
    assert "A-1" in results[0].text
    assert results[2].text == RATED


def test_a_text_that_mentions_the_tag_is_text_unless_asked() -> None:
    text = f"Write <headrace keep>..</headrace> around it, or <headrace odd>. {LONG}"
    [result] = COMPRESSOR.compress([text], Budget(rate=1))
    assert result.text == text
    COMPRESSOR.compress([text], Budget(rate=0.5))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a <headrace keep>b", "column 3 is never closed"),
        ("a\nb</headrace>", "line 2, column 2 closes what is not open"),
        ("<headrace keep>b<headrace rate=1>c</headrace></headrace>", "column 17 is inside"),
        ("<headrace>b</headrace>", "has no attributes"),
        ("<headrace keep rate=1>b</headrace>", "has 2 attributes"),
        ("<headrace color=red>b</headrace>", "'color=red'"),
        ("<headrace keep=yes>b</headrace>", "'keep=yes'"),
        ("<headrace rate>b</headrace>", "'rate'"),
        ("<headrace rate=1.5>b</headrace>", "1.5"),
        ("<headrace rate=half>b</headrace>", "'half'"),
        ("<headrace target=2.5>b</headrace>", "'2.5'"),
        ("<headrace keep>b</headrace keep>", "closes with attributes"),
        ("b <headrace", "does not end"),
        ("b <headrace keep <i>x</i>", "does not end"),
    ],
)
def test_a_tag_that_makes_no_sense_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(said)) as caught:
        squeeze(text, 0.5)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", ["0.4", '"0.4"', "'0.4'", "4e-1"])
def test_values_may_be_quoted(value: str) -> None:
    assert segments(f"<headrace rate = {value} >x</headrace>")[0].budget == Budget(rate=0.4)


PARTS = st.lists(
    st.tuples(
        st.sampled_from(["", "keep", "rate=0.3", "rate=1", "target=4", "quality=.5"]),
        st.text(st.sampled_from("ab ,.\n東はé\u0301<>12-"), max_size=30),
    ),
    max_size=6,
)


@given(PARTS, st.floats(0, 1), st.booleans())
@settings(deadline=None)
def test_any_parts(parts: list[tuple[str, str]], rate: float, joint: bool) -> None:
    text = "".join(f"<headrace {a}>{t}</headrace>" if a else t for a, t in parts)
    assert bare(text) == "".join(t for _, t in parts)
    result = squeeze(text, rate, joint=joint)
    letters = iter(bare(text))
    assert all(char in letters for char in result.text)
    at = 0
    for attribute, content in parts:
        if attribute == "keep":
            at = result.text.find(content, at)
            assert at >= 0
            at += len(content)
    if "=" not in text:
        assert squeeze(text, 1).text == bare(text)
