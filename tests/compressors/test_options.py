from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.compressors import Budget, Compressed, Compressor, make_counter, make_scorer
from headrace.middleware.errors import InvalidRequest

COMPRESSOR = Compressor(make_scorer("lexical"), make_counter())
PROSE = (
    "The committee met on 12 May 2021 to talk about the new bridge. Ann Lee said that the costs"
    " would rise to 1,234.56 EUR (not counting the lights), and that nobody should start before"
    " the permit KA-01-HH-1234 is there. See https://example.com/plan?x=1 for details.\n\n"
    "- The river is 40 m wide.\n- Work must not begin in winter.\n\n"
    "Afterwards they had coffee and went home, because it was late."
)
RATES = [x / 10 for x in range(11)]


def squeeze(text: str, rate: float, **options: object) -> Compressed:
    [result] = COMPRESSOR.compress([text], Budget(rate=rate), **options)  # type: ignore[arg-type]
    assert result.text == "".join(text[a:b] for a, b in result.spans)
    return result


@pytest.mark.parametrize("rate", RATES)
def test_forced_words_stay_at_every_rate(rate: float) -> None:
    words = squeeze(PROSE, rate, force_keep=["because", "coffee", "river"]).text
    assert [w for w in re.findall(r"\w+", words) if w in ("because", "coffee", "river")] == [
        "river",
        "coffee",
        "because",
    ]


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        ("The party saw art there.", "art", "art"),
        ("The party saw Art there.", "art", ""),
        ("party party party", "art", ""),
        ("Go to New  York now please.", "New  York", "New  York"),
        ("I use C++ and C here.", "C++", "C++"),
        ("हिन्दी और हिन्द", "हिन्द", "हिन्द"),
        ("東京は首都です", "東京", "東京"),
        ("Is it? No.", "?", "?"),
    ],
)
def test_a_literal_is_a_whole_word_with_its_case(text: str, word: str, expected: str) -> None:
    result = squeeze(text, 0, force_keep=[word]).text
    assert result.startswith(expected) if expected == "東京" else result.rstrip(".") == expected


def test_forced_line_breaks_stay_where_they_were() -> None:
    text = "one two\nthree four\n\nfive six\n"
    kept = squeeze(text, 0.5, force_keep=["\n"]).text
    assert re.sub(r"[^\n]", "", kept) == "\n\n\n\n"
    assert squeeze(text, 0, force_keep=["\n"]).text == "\n\n\n\n"
    assert squeeze(text, 0, force_keep=["\n"], drop_consecutive=True).text == "\n\n\n\n"[:4]


@pytest.mark.parametrize("rate", RATES)
def test_forced_drops_go_at_every_rate_and_nothing_else_does_at_one(rate: float) -> None:
    text = "Um, the plan, um, is good. Umbrellas help; I mean it, um."
    result = squeeze(text, rate, force_drop=["um", "Um", re.compile(r"I mean\b")])
    assert not re.search(r"\b[Uu]m\b|I mean", result.text)
    if rate == 1:
        assert result.text == "the plan, is good. Umbrellas help; it."
        assert result.reason is None


def test_a_forced_drop_breaks_no_unit_and_what_must_stay_stays() -> None:
    drops = ["May", "1,234", "EUR", "plan", "Ann Lee", "coffee"]
    text = squeeze(PROSE, 1, force_drop=drops, keep=["Ann Lee"], force_keep=["coffee"]).text
    assert text == PROSE
    assert "bridge" not in squeeze(PROSE, 1, force_drop=["bridge"], keep=["Ann"]).text
    code = "```\nbridge = 1\n```"
    assert code in squeeze(f"The bridge.\n\n{code}", 1, force_drop=["bridge"]).text
    data = '{"bridge": 1}'
    assert squeeze(data, 1, force_drop=["bridge"]).text == data


def test_dropping_a_list_item_s_words_leaves_what_hangs_under_it() -> None:
    text = squeeze("- TODO\n  - buy milk today", 1, force_drop=["TODO"]).text
    assert "buy milk today" in text
    assert "TODO" not in text


@pytest.mark.parametrize("rate", RATES)
def test_every_word_with_a_digit_stays(rate: float) -> None:
    text = squeeze(PROSE, rate, keep_digits=True).text
    for whole in ("12 May 2021", "1,234.56 EUR", "KA-01-HH-1234", "plan?x=1", "40 m"):
        assert whole in text


def test_repeats_of_forced_words_side_by_side_stay_once() -> None:
    text = "ha ha ha said the man, ha and ha ha he went"
    many = squeeze(text, 0.3, force_keep=["ha"]).text
    once = squeeze(text, 0.3, force_keep=["ha"], drop_consecutive=True).text
    assert many.split().count("ha") == 6
    assert not re.search(r"\bha,? ha\b", once)
    assert squeeze(text, 1, force_keep=["ha"], drop_consecutive=True).text == text


def test_each_text_may_have_a_budget_of_its_own() -> None:
    budgets = [Budget(rate=0.2), None, Budget(target_tokens=7)]
    for joint in (False, True):
        first, second, third = COMPRESSOR.compress(
            [PROSE] * 3, Budget(rate=0.6), budgets=budgets, joint=joint
        )
        assert first.text == squeeze(PROSE, 0.2).text
        assert second.text == squeeze(PROSE, 0.6).text
        assert third.tokens_out <= 7
    with pytest.raises(InvalidRequest, match="budgets needs one entry a text"):
        COMPRESSOR.compress([PROSE], Budget(rate=0.6), budgets=[])


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("force_keep", "abc", "force_keep must be a list"),
        ("force_drop", [""], "empty string"),
        ("force_drop", [7], "7"),
        ("force_keep", [re.compile(b"x")], "bytes"),
    ],
)
def test_wishes_that_make_no_sense_are_refused(option: str, value: object, said: str) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(said)):
        squeeze("x", 0.5, **{option: value})


def test_a_quality_floor_keeps_the_fewest_words_with_that_share_of_all_scores() -> None:
    words = " ".join(f"w{chr(97 + i)}x" * (1 + i % 3) for i in range(20)).split()
    text = " ".join(words)
    [result] = COMPRESSOR.compress([text], Budget(quality=0.5))
    stays = [any(a <= start and end <= b for a, b in result.spans) for start, end, _ in
             result.scores]  # fmt: skip
    scores = sorted((score for *_, score in result.scores), reverse=True)
    wanted = 0.5 * sum(scores)
    fewest = next(n for n in range(len(scores)) if sum(scores[: n + 1]) >= wanted) + 1
    assert sum(stays) == fewest


@given(st.floats(0, 1), st.floats(0, 1))
@settings(deadline=None)
def test_a_higher_quality_keeps_what_a_lower_one_does(one: float, two: float) -> None:
    low, high = (
        COMPRESSOR.compress([PROSE], Budget(quality=quality))[0] for quality in sorted((one, two))
    )
    kept = {i for a, b in high.spans for i in range(a, b)}
    assert {i for a, b in low.spans for i in range(a, b) if not PROSE[i].isspace()} <= kept


@given(st.text(max_size=60))
@settings(deadline=None)
def test_quality_one_keeps_all_and_zero_nothing(text: str) -> None:
    assert COMPRESSOR.compress([text], Budget(quality=1))[0].text == text
    nothing = COMPRESSOR.compress([text], Budget(quality=0))[0]
    assert nothing.text == "" or nothing.reason


TEXTS = st.one_of(
    st.text(max_size=150),
    st.lists(
        st.sampled_from(
            [
                "the",
                "Ann",
                "not",
                "1,234.56 EUR",
                "12 May",
                "(so)",
                "東京は",
                "สวัสดี",
                "مرحبا",
                "नमस्ते",
                "🚀",
                "\n",
                "\n\n- ",
                "`x`",
                "a_b",
                "—",
                "https://a.b/c",
                "e\u0301",
            ]
        ),
        max_size=40,
    ).map(" ".join),
)
WORDS = st.lists(st.sampled_from(["the", "Ann", "東", "\n", "?", "12", " "]), max_size=3)


@given(TEXTS, st.floats(0, 1), WORDS, WORDS, st.booleans(), st.booleans())
@settings(max_examples=200, deadline=None)
def test_any_text_with_any_wishes(
    text: str, rate: float, keeps: list[str], drops: list[str], digits: bool, once: bool
) -> None:
    result = squeeze(
        text, rate, force_keep=keeps, force_drop=drops, keep_digits=digits, drop_consecutive=once
    )
    assert all(a < b for a, b in result.spans)
    assert all(x[1] < y[0] for x, y in pairwise(result.spans))
    assert result.tokens_out <= rate * result.tokens_in + 1e-9 or result.reason
    assert result.text.count("\ufffd") <= text.count("\ufffd")
    if not drops and rate == 1:
        assert result.text == text


@given(
    st.lists(TEXTS, min_size=1, max_size=5),
    st.floats(0, 1),
    st.sampled_from([None, "Is Ann not May?"]),
)
def test_a_text_compresses_the_same_alone_and_among_others(
    texts: list[str], rate: float, question: str | None
) -> None:
    together = COMPRESSOR.compress(texts, Budget(rate=rate), question=question)
    alone = [COMPRESSOR.compress([t], Budget(rate=rate), question=question)[0] for t in texts]
    assert [result.spans for result in together] == [result.spans for result in alone]


def test_with_a_question_too_a_text_compresses_the_same_among_others() -> None:
    other = "The bridge needs a permit. The bridge is old. " * 3
    question = "Who has the permit for the bridge?"
    alone, together = (
        COMPRESSOR.compress(texts, Budget(rate=0.3), question=question)[0]
        for texts in (
            [PROSE.replace("permit", "licence")],
            [PROSE.replace("permit", "licence"), other],
        )
    )
    assert alone.scores == together.scores
    assert alone.text == together.text


def test_threads_give_the_same_bytes() -> None:
    texts = [PROSE[i:] for i in range(0, 240, 10)]
    expected = [squeeze(text, 0.5).text for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda text: squeeze(text, 0.5).text, texts)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "桥梁由安娜在一九三一年夏天建成。它横跨河流，全长四十米，每天有一千二百辆汽车通过。" * 4,
        "สะพานนี้สร้างโดยแอนในฤดูร้อนปี 1931 และยาว 40 เมตร รถยนต์ผ่านวันละพันคัน" * 3,
        "بُني الجسر في صيف عام 1931 على يد آن لي، ويبلغ طوله 40 مترًا، ولا يجوز البدء. " * 3,
        "पुल 1931 की गर्मियों में ऐन ली ने बनाया था। इसकी लंबाई 40 मीटर है, और यह शहर में है। " * 3,
    ],
    ids=["Chinese", "Thai", "Arabic", "Hindi"],
)  # fmt: skip
@pytest.mark.parametrize("rate", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("tokenizer", [None, pytest.param("smollm2", marks=pytest.mark.model)])
def test_other_scripts_get_no_space_and_lose_no_half_character(
    text: str, rate: float, tokenizer: str | None
) -> None:
    compressor = Compressor(make_scorer("lexical"), make_counter(tokenizer))
    [result] = compressor.compress([text], Budget(rate=rate))
    assert result.text
    assert "\ufffd" not in result.text
    assert result.text.count(" ") <= text.count(" ")
    assert result.tokens_out <= rate * result.tokens_in
    assert result.tokens_out >= 0.9 * rate * result.tokens_in - 6


@pytest.mark.model
@pytest.mark.parametrize("tokenizer", ["smollm2", "minilm"])
@given(text=TEXTS, rate=st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_the_budget_holds_in_a_model_s_tokens(tokenizer: str, text: str, rate: float) -> None:
    compressor = Compressor(make_scorer("lexical"), make_counter(tokenizer))
    [result] = compressor.compress([text], Budget(rate=rate))
    assert result.tokens_out == compressor.counter.count(result.text)
    assert result.tokens_out <= rate * result.tokens_in + 1e-9 or result.reason


def test_progress_ends_at_the_whole() -> None:
    seen: list[tuple[int, int]] = []
    COMPRESSOR.compress(
        [PROSE] * 3, Budget(rate=0.5), progress=lambda done, total: seen.append((done, total))
    )
    assert seen[-1] == (3 * len(PROSE), 3 * len(PROSE))
    assert seen == sorted(seen)


@pytest.mark.parametrize(
    "budget", [Budget(rate=0), Budget(target_tokens=0), Budget(threshold=1), Budget(quality=0)]
)
def test_a_budget_for_nothing_leaves_nothing_of_prose_but_what_must_stay(budget: Budget) -> None:
    engine = Compressor(make_scorer("lexical"), make_counter())
    text = "The wheel was built by hand in the winter of that year."
    [result] = engine.compress([text], budget)
    assert result.text == ""
    [kept] = engine.compress([text], budget, force_keep=["by hand"])
    assert kept.text.rstrip(".") == "by hand"


@pytest.mark.parametrize("value", [1.5, 1e9, -1, float("inf"), float("nan")])
def test_a_threshold_that_no_score_can_reach_is_refused(value: float) -> None:
    with pytest.raises(InvalidRequest, match=r"threshold must be in \[0, 1\], got "):
        Budget(threshold=value)
