from __future__ import annotations

import json
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.compressors import (
    Budget,
    Compressed,
    Compressor,
    make_counter,
    make_scorer,
)
from headrace.middleware.errors import InvalidRequest, ModelUnavailable

COMPRESSOR = Compressor(make_scorer("lexical"), make_counter())
PROSE = (
    "The committee met on 12 May 2021 to talk about the new bridge. Ann Lee said that the costs"
    " would rise to 1,234.56 EUR (not counting the lights), and that nobody should start before"
    " the permit KA-01-HH-1234 is there. See https://example.com/plan?x=1 for details.\n\n"
    "- The river is 40 m wide.\n- Work must not begin in winter.\n\n"
    "Afterwards they had coffee and went home, because it was late."
)


def squeeze(text: str, rate: float, **options: object) -> Compressed:
    return COMPRESSOR.compress([text], Budget(rate=rate), **options)[0]  # type: ignore[arg-type]


TEXTS = st.one_of(
    st.text(max_size=200),
    st.text(
        st.sampled_from("ab ,.()[]\"'*_`|#-\n<>{}/:12東はé🚀\u200d\ud800\0\r\u2028"), max_size=120
    ),
)


@given(TEXTS, st.floats(0, 1))
@settings(max_examples=300)
def test_any_text_at_any_rate(text: str, rate: float) -> None:
    result = squeeze(text, rate)
    assert "".join(text[a:b] for a, b in result.spans) == result.text
    assert all(a < b for a, b in result.spans)
    assert all(x[1] < y[0] for x, y in zip(result.spans, result.spans[1:], strict=False))
    assert result.tokens_out == COMPRESSOR.counter.count(result.text)
    assert result.tokens_out <= math.floor(rate * result.tokens_in + 1e-9) or result.reason
    assert squeeze(text, rate).spans == result.spans


@given(TEXTS, st.integers(0, 80))
def test_never_more_than_the_target(text: str, target: int) -> None:
    [result] = COMPRESSOR.compress([text], Budget(target_tokens=target))
    assert result.tokens_out <= target or result.reason


@given(TEXTS)
def test_rate_one_changes_nothing(text: str) -> None:
    result = squeeze(text, 1)
    assert result.text == text
    assert result.reason is None


@given(TEXTS)
def test_threshold_zero_keeps_all_and_rate_zero_nothing(text: str) -> None:
    assert COMPRESSOR.compress([text], Budget(threshold=0))[0].text == text
    nothing = squeeze(text, 0)
    assert nothing.text == "" or (nothing.text == text and nothing.reason)


@given(st.lists(TEXTS, max_size=4), st.floats(0, 1))
def test_one_budget_for_many_texts(texts: list[str], rate: float) -> None:
    results = COMPRESSOR.compress(texts, Budget(rate=rate), joint=True)
    assert [result.original for result in results] == texts
    limit = math.floor(rate * sum(result.tokens_in for result in results) + 1e-9)
    spent = sum(result.tokens_out for result in results)
    assert spent <= limit or any(result.reason for result in results)


@pytest.mark.parametrize("words", [20, 200, 2000, 8000])
@pytest.mark.parametrize("rate", [0.1, 0.33, 0.5, 0.9])
def test_the_asked_rate_is_reached_at_every_length(words: int, rate: float) -> None:
    text = " ".join((PROSE.split() * 200)[:words])
    result = squeeze(text, rate)
    assert result.tokens_out <= rate * result.tokens_in
    assert result.tokens_out >= rate * result.tokens_in - 12


def test_a_dense_text_takes_tokens_from_a_dull_one() -> None:
    dull = "Well, you know, it is what it is and so on, and then we would just go on with it. " * 3
    dense = "Ann Lee signed contract KA-01-HH-1234 on 12 May 2021 for 1,234.56 EUR in Turin. " * 3
    first, second = COMPRESSOR.compress([dull, dense], Budget(rate=0.5), joint=True)
    assert first.rate < 0.3 < 0.6 < second.rate


def test_the_last_of_equal_paragraphs_fares_like_the_others() -> None:
    paragraph = PROSE.split("\n\n")[0]
    result = squeeze("\n\n".join([paragraph] * 10), 0.5)
    size = len(paragraph) + 2
    kept = [0] * 10
    for start, end in result.spans:
        for at in range(start, end):
            kept[min(at // size, 9)] += 1
    assert abs(kept[-1] - sum(kept) / 10) <= 0.15 * sum(kept) / 10  # one unit


@pytest.mark.parametrize("rate", [0.2, 0.4, 0.6, 0.8])
def test_every_output_word_is_an_input_word(rate: float) -> None:
    words = {word.strip(".,()") for word in PROSE.split()}
    assert {word.strip(".,()") for word in squeeze(PROSE, rate).text.split()} <= words


@pytest.mark.parametrize("rate", [x / 20 for x in range(1, 20)])
def test_ids_numbers_and_links_stay_whole_or_go(rate: float) -> None:
    wholes = [
        "12 May 2021",
        "1,234.56 EUR",
        "KA-01-HH-1234",
        "https://example.com/plan?x=1",
        "40 m",
    ]
    rest = squeeze(PROSE, rate).text
    for whole in wholes:
        rest = rest.replace(whole, "")
    assert not re.search(r"\d|://|EUR", rest)


@pytest.mark.parametrize("rate", [x / 20 for x in range(1, 20)])
def test_brackets_stay_in_pairs_and_no_space_is_doubled(rate: float) -> None:
    text = squeeze(PROSE, rate).text
    assert text.count("(") == text.count(")")
    assert "  " not in text
    assert not re.search(r"\s[.,)]|\(\s|,\.", text)
    assert not re.search(r"^- *$", text, re.MULTILINE)


def test_negations_outlive_the_rest_of_their_sentence() -> None:
    text = squeeze(
        "The gate is green. Workers must not open the blue valve under load today.", 0.5
    ).text
    assert "not" in text.split()


def test_lists_and_paragraphs_keep_their_shape() -> None:
    lines = squeeze(PROSE, 0.7).text.split("\n")
    assert "" in lines
    assert sum(line.startswith("- ") for line in lines) == 2


@pytest.mark.parametrize(
    "text", ["東京は日本の首都です。" * 20, "done 🚀🚀 ✅ " * 25, "สวัสดีครับ ผมชื่อแอน " * 9]
)
def test_scripts_without_spaces_get_none_and_break_nowhere(text: str) -> None:
    result = squeeze(text, 0.5)
    assert result.text
    assert "\ufffd" not in result.text
    assert result.text.count(" ") <= text.count(" ")
    assert 0.3 < result.rate <= 0.5


def test_a_dropped_character_joins_no_numbers() -> None:
    for rate in (0.2, 0.4, 0.6, 0.8):
        digits = re.findall(r"\d+", squeeze("买3个的5条的7只的9头的", rate).text)
        assert set(digits) <= {"3", "5", "7", "9"}


def test_a_markdown_table_keeps_rows_and_pipes() -> None:
    table = "| a | b |\n|---|---|\n| 1 | 2.50 |\n| 2 | 7.25 |\n| 3 | 9.00 |"
    text = squeeze(
        f"The prices follow.\n\n{table}\n\nThat is all there is to say about it.", 0.7
    ).text
    rows = [line for line in text.split("\n") if "|" in line]
    assert rows[:2] == ["| a | b |", "|---|---|"]
    assert set(rows) <= set(table.split("\n"))


@pytest.mark.parametrize(
    "text", ["Tokens such as <|endoftext|> end.", "a [SEP] b [PAD] c [NEW0] d"]
)
@pytest.mark.parametrize("rate", [0.3, 0.6, 0.9])
def test_special_tokens_are_text(text: str, rate: float) -> None:
    rest = re.sub(r"<\|endoftext\|>|\[[A-Z]+0?\]", "", squeeze(text, rate).text)
    assert not re.search(r"[<>|\[\]]", rest)


@pytest.mark.parametrize(
    "text", ["", " ", "\n\n", "Hello", "🚀", "\ud800", "\0", "\ufeffx", "!!!", "a" * 3000]
)
@pytest.mark.parametrize("rate", [0, 0.3, 0.99, 1])
def test_odd_texts_pass(text: str, rate: float) -> None:
    result = squeeze(text, rate)
    assert result.text in text
    assert result.rate <= 1
    assert result.reason or rate == 0 or not text.strip() or result.text


def test_empty_lists_and_one_empty_text_pass() -> None:
    assert COMPRESSOR.compress([], Budget(rate=0.5)) == []
    empty, other = COMPRESSOR.compress(["", PROSE], Budget(target_tokens=30), joint=True)
    assert (empty.text, empty.rate) == ("", 1.0)
    assert 20 < other.tokens_out <= 30


def test_a_short_text_meets_a_small_target() -> None:
    [result] = COMPRESSOR.compress(
        ["The quick brown fox jumps over the lazy dog again and again."], Budget(target_tokens=5)
    )
    assert 3 <= result.tokens_out <= 5


def test_threshold_keeps_what_scores_enough() -> None:
    [result] = COMPRESSOR.compress([PROSE], Budget(threshold=0.6))
    kept = {i for start, end in result.spans for i in range(start, end)}
    assert all((start in kept) == (score >= 0.6) for start, _, score in result.scores)


def test_what_matches_keep_stays_byte_for_byte() -> None:
    rule = "If unsure, say  I don't know."
    text = f"{PROSE}\n\n{rule}"
    assert rule in squeeze(text, 0.2, keep=[re.escape(rule)]).text


def test_keep_beyond_the_budget_is_kept_and_said() -> None:
    result = squeeze(PROSE, 0.05, keep=[r"Ann Lee.*lights\)"])
    assert "Ann Lee said that the costs would rise" in result.text
    assert result.reason is not None
    assert "must be kept" in result.reason


def test_a_question_brings_its_sentence() -> None:
    text = (
        "Founded in 1998 by Ann Lee, the company sells bicycles. Staff like the canteen and its"
        " view. The annual revenue was 12.5 million euros. The canteen opens at noon till two."
    )
    answer = squeeze(text, 0.35, question="How high was the annual revenue?").text
    assert "annual revenue was 12.5 million euros" in answer


@pytest.mark.parametrize(
    ("keep", "said"), [(["(a"], "'(a'"), ("abc", "list"), ([b"x"], "bytes"), ([7], "7")]
)
def test_a_bad_keep_is_named(keep: object, said: str) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(said)):
        squeeze("x", 0.5, keep=keep)


def test_texts_must_be_a_list_of_strings() -> None:
    with pytest.raises(InvalidRequest, match="list of texts"):
        COMPRESSOR.compress("abc", Budget(rate=0.5))
    with pytest.raises(InvalidRequest, match="got None"):
        COMPRESSOR.compress(None, Budget(rate=0.5))  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match="budget"):
        COMPRESSOR.compress(["a"], None)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match="NoneType"):
        COMPRESSOR.compress([None], Budget(rate=0.5))  # type: ignore[list-item]
    with pytest.raises(InvalidRequest, match="NoneType"):
        COMPRESSOR.compress(["a", None], Budget(rate=0.5))  # type: ignore[list-item]
    with pytest.raises(InvalidRequest, match="formats"):
        COMPRESSOR.compress(["a"], Budget(rate=0.5), formats=[])


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"rate": 1.5},
        {"rate": -0.1},
        {"rate": float("nan")},
        {"rate": "0.5"},
        {"rate": 0.5, "threshold": 0.5},
        {"target_tokens": -1},
        {"target_tokens": 2.5},
        {"target_tokens": True},
        {"threshold": 2},
    ],
)
def test_a_budget_that_makes_no_sense_is_refused(given: dict[str, float]) -> None:
    with pytest.raises(InvalidRequest):
        Budget(**given)  # type: ignore[arg-type]


def test_json_inside_prose_keeps_its_records() -> None:
    record = json.dumps({"items": [{"id": i, "note": 'a "quoted" \\n line'} for i in range(8)]})
    for rate in (0.5, 0.8, 0.9):
        text = squeeze(
            f"This came back from the server, please look at it: {record}. Thank you.", rate
        ).text
        assert json.loads(text[text.index("{") : text.rindex("}") + 1]) == json.loads(record)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "piece",
    [
        "not ",
        "if the ",
        "\\a{",
        "$x",
        "<tr> and more words ",
        " " * 300 + "- a\n",
        "- a\n  - b\n",
        " ",
        "1,",
        "1 ",
        "[",
        "<a ",
        "| - ",
        '{"a":',
        "{a=b, ",
        "{:a=>b ",
        "[1,",
        "f(a=b, ",
        "🇩",
        "\u200d",
        "(",
        "a.",
        "-",
        "=",
        "[\n",
        "(\n[",
        "<<EOF\n(",
        "@@ -1 +1 @@\n",
        "diff --git a b\n",
    ],
)
def test_a_hostile_text_takes_no_more_than_linear_time(piece: str) -> None:
    result = squeeze(piece * (100_000 // len(piece)), 0.5)
    why = {
        "@@ -1 +1 @@\n": "a diff is kept whole",
        "diff --git a b\n": "a diff is kept whole",
        "[\n": "JSON that does not parse is kept whole",
    }.get(piece, "records keep")
    assert result.rate <= 0.5 or why in (result.reason or "")


def test_a_mistyped_compressor_is_told_the_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ModelUnavailable, match="no compressor 'lexcial': choose auto, lexical"):
        make_scorer("lexcial")
    with pytest.raises(ModelUnavailable) as other:
        make_scorer("some-org/some-model")
    assert "choose auto" not in str(other.value)
