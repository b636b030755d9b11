"""Long texts in JSON get shorter where they stand; everything else is what it was."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shorter import assert_shorter

from headrace.compressors import Budget, Compressed, Compressor, make_counter, make_scorer
from headrace.compressors.structured.policy import JsonPolicy
from headrace.middleware.errors import InvalidRequest

COMPRESSOR = Compressor(make_scorer("lexical"), make_counter())
PROSE = (
    "The meeting about the bridge was long, and everyone said something about the costs.\n\n"
    'Ann thinks that it is "too dear"; Bob does not. It opens on 3 May 2027 at the earliest, '
    "costs 12.5 million euros, and the plan is at https://example.org/plan?id=7 for all to read."
)
CAFE = "Das Café an der Brücke öffnet 🚀 im Mai, und alle sagten etwas über die Kosten dafür. " * 2


def squeeze(text: str, rate: float, **options: Any) -> Compressed:
    (result,) = COMPRESSOR.compress([text], Budget(rate=rate), **options)
    assert result.text == "".join(text[a:b] for a, b in result.spans)
    assert result.tokens_out == COMPRESSOR.counter.count(result.text)
    assert result.reason or result.tokens_out <= (Budget(rate=rate).limit(result.tokens_in) or 0)
    return result


def parsed(text: str) -> Any:
    """Read JSON with its pairs as lists, for keys that come twice, and numerals as written."""
    body = text.removeprefix("\ufeff")
    return json.loads(
        body, object_pairs_hook=list, parse_int=str, parse_float=str, parse_constant=str
    )


RECORDS = [
    {"id": i, "key": f'sk-a{i}\\b"c', "body": f"No. {i}: {PROSE}", "x": [1.50, None, True]}
    for i in range(8)
]


@pytest.mark.parametrize("rate", [0.9, 0.7, 0.6])
@pytest.mark.parametrize("ascii", [True, False])
@pytest.mark.parametrize("indent", [None, 2])
def test_records_keys_and_short_values_stay_and_the_budget_is_used(
    rate: float, ascii: bool, indent: int | None
) -> None:
    text = json.dumps(RECORDS, indent=indent, ensure_ascii=ascii)
    result = squeeze(text, rate)
    new = json.loads(result.text)
    assert_shorter(new, RECORDS)
    short = ("id", "key", "x")
    assert [{k: r[k] for k in short} for r in new] == [{k: r[k] for k in short} for r in RECORDS]
    assert all(len(r["body"]) < len(PROSE) for r in new) or rate == 0.9
    assert result.tokens_out >= 0.95 * int(rate * result.tokens_in)
    assert result.reason is None


def test_eight_records_on_one_line_are_eight_records() -> None:
    text = json.dumps(RECORDS)
    result = squeeze(text, 0.05)
    assert len(json.loads(result.text)) == 8
    assert result.reason is not None
    assert "white space and words of the long texts" in result.reason


def test_a_budget_below_what_must_stay_leaves_no_more_than_that() -> None:
    text = json.dumps(RECORDS)
    least = squeeze(text, 0.05)
    assert least.text == squeeze(text, 0.01).text
    assert all(0 < len(r["body"].split()) < 4 for r in json.loads(least.text))


def test_rows_of_json_lines_stay_rows() -> None:
    text = "\n".join(map(json.dumps, RECORDS)) + "\n"
    result = squeeze(text, 0.6)
    rows = [json.loads(line) for line in result.text.splitlines()]
    assert_shorter(rows, RECORDS)
    assert len(result.text) < 0.8 * len(text)


@pytest.mark.parametrize("rate", [0.8, 0.5, 0.3, 0.1])
def test_an_escape_is_never_cut(rate: float) -> None:
    value = f'{CAFE}\n\t\\ "quoted" \\n \u0000 {PROSE}'
    text = json.dumps({"a": value})
    assert "\\ud83d\\ude80" in text
    assert_shorter(json.loads(squeeze(text, rate).text), {"a": value})


@pytest.mark.parametrize("rate", [0.7, 0.4])
def test_a_shortened_value_keeps_numbers_and_urls_whole_and_its_negation(rate: float) -> None:
    new = json.loads(squeeze(json.dumps({"a": PROSE}), rate).text)["a"]
    for unit in ("3 May 2027", "12.5 million", "https://example.org/plan?id=7", "not"):
        head = unit.split()[0][:6]
        assert unit in new or head not in new
    assert not new[0].isspace()


@pytest.mark.parametrize(
    "value",
    [
        "sk-" + "aB3" * 60,
        " ".join(f"https://example.org/{i}" for i in range(30)),
        " ".join(f"{i:064x}" for i in range(30)),
        "QUJD" * 90,
        "def f(x):\n    y = x + 1\n    if y > 2:\n        return g(y)\n    return h(y)\n" * 4,
        json.dumps({"body": PROSE, "n": 1}),
        "name,city,age\n" + "Ann,Rome,31\n" * 20,
        "half a pair \ud83d " + PROSE,
        "twenty words are the least that a text must have to be cut, and so many it has not",
    ],
    ids=["key", "urls", "hashes", "base64", "code", "json", "csv", "surrogate", "short"],
)
def test_a_value_that_is_no_long_prose_stays(value: str) -> None:
    text = json.dumps([{"v": value, "body": PROSE}])
    new = json.loads(squeeze(text, 0.3).text)
    assert new[0]["v"] == value
    assert len(new[0]["body"]) < len(PROSE)


def test_what_json_allows_and_python_does_not_expect_survives() -> None:
    body = json.dumps(PROSE)
    text = (
        f'\ufeff{{"a": {body}, "a": {body}, "n": [NaN, -Infinity, 1E400, {"9" * 5000}, 1.0, -0.0],'
        f' "": {{"": {{}}}}, "e": ""}} '
    )
    result = squeeze(text, 0.8)
    assert_shorter(parsed(result.text), parsed(text))
    assert result.text.startswith("\ufeff{")
    assert result.text.count('"a":') == 2
    assert "9" * 5000 in result.text
    assert "[NaN,-Infinity,1E400," in result.text


@pytest.mark.parametrize("depth", [50, 400, 100_000])
def test_deep_nesting_is_no_matter(depth: int) -> None:
    text = '[{"a":' * depth + json.dumps(PROSE) + "}]" * depth
    result = squeeze(text, 0.9, formats=["json"])
    assert result.text.count("[{") == depth
    if depth == 50:
        assert_shorter(parsed(result.text), parsed(text))
        assert len(result.text) < len(text)


WORDS = (PROSE.split() + CAFE.split()) * 2
SIGNS = ["\n", '"', "\\", "/", "\n\n", "\t", "é", "🚀", "日本", "\u2028"]
TEXTS = st.lists(st.sampled_from(WORDS + SIGNS), max_size=60).map(" ".join)
VALUES = st.recursive(
    TEXTS | st.integers() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(st.lists(VALUES, min_size=1), st.floats(0, 1), st.booleans(), st.sampled_from([None, 1]))
def test_any_json_keeps_its_structure(
    value: Any, rate: float, ascii: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii, indent=indent)
    result = squeeze(text, rate, formats=["x.json"])
    assert_shorter(json.loads(result.text), value)
    assert squeeze(text, rate, formats=["x.json"]).text == result.text


def test_a_question_says_which_words_stay() -> None:
    text = json.dumps({"a": PROSE.replace("\n", " ")})
    found = squeeze(text, 0.35, question="What does Bob think?").text
    assert "Bob" in found
    assert "Bob" not in squeeze(text, 0.35, question="When is the bridge open?").text


def test_what_must_stay_stays_in_a_value() -> None:
    text = json.dumps({"a": PROSE})
    assert "everyone said something" in squeeze(text, 0.5, keep=["everyone said something"]).text
    assert "Ann" not in squeeze(text, 0.9, force_drop=["Ann"]).text


def test_json_and_prose_share_a_budget_and_neither_starves() -> None:
    text = json.dumps(RECORDS)
    both = COMPRESSOR.compress([text, PROSE * 4], Budget(rate=0.6), joint=True)
    assert sum(r.tokens_out for r in both) <= 0.6 * sum(r.tokens_in for r in both)
    assert_shorter(json.loads(both[0].text), RECORDS)
    few = COMPRESSOR.compress([text, PROSE * 4], Budget(rate=0.1), joint=True)
    assert few[1].text
    assert few[0].reason


def ruled(rules: dict[str, Any], rate: float = 0.6, **options: Any) -> Any:
    policy = JsonPolicy(rules, **options)
    return json.loads(squeeze(json.dumps({"items": RECORDS}), rate, json=policy).text)["items"]


def test_a_rule_gives_a_key_its_own_rate() -> None:
    count = COMPRESSOR.counter.count
    for new, old in zip(ruled({"items[*].body": 0.3}), RECORDS, strict=True):
        assert_shorter(new, old)
        assert 0.2 * count(str(old["body"])) < count(new["body"]) <= 0.3 * count(str(old["body"]))


def test_a_rate_of_a_key_counts_also_when_the_budget_asks_for_nothing() -> None:
    assert all(len(r["body"]) < 0.5 * len(PROSE) for r in ruled({"**.body": 0.3}, rate=1))


def test_a_rule_can_keep_a_value_and_all_under_it() -> None:
    assert ruled({"items[2]": "keep"}, rate=0.4)[2] == RECORDS[2]
    assert ruled({"items[2]": "keep"}, rate=0.4)[3] != RECORDS[3]


@pytest.mark.parametrize("key", ["id", "body", "x"])
def test_a_rule_can_drop_a_key_with_its_comma(key: str) -> None:
    new = ruled({f"items[*].{key}": "drop"}, rate=1)
    assert new == [{k: v for k, v in r.items() if k != key} for r in RECORDS]


def test_keys_and_places_can_all_go() -> None:
    assert ruled({"items[*].*": "drop"}, rate=1) == [{}] * 8
    assert ruled({"items[0]": "drop", "items[7]": "drop"}, rate=1) == RECORDS[1:7]
    assert ruled({"items[*]": "drop", "items[3]": "keep"}, rate=1) == [RECORDS[3]]


def test_fewer_records_only_when_asked_and_it_is_said() -> None:
    records = [*RECORDS[:5], {"id": 77, "body": "The zebra is here."}, *RECORDS[5:]]
    policy = JsonPolicy(max_records=3)
    result = squeeze(json.dumps(records), 0.5, json=policy, question="Where is the zebra?")
    assert [r["id"] for r in json.loads(result.text)] == [0, 77, 7]
    assert result.reason is not None
    assert "3 of 9 records stay" in result.reason


def test_fewer_rows_of_json_lines() -> None:
    text = "\n".join(map(json.dumps, RECORDS))
    result = squeeze(text, 0.9, json=JsonPolicy(max_records=2))
    assert [json.loads(line)["id"] for line in result.text.splitlines()] == [0, 7]


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ({"a[": 0.5}, "no path"),
        ({"a": 1.5}, "1.5"),
        ({"a": "remove"}, "remove"),
        ({"a": True}, "True"),
        ({3: 0.5}, "string"),
    ],
)
def test_a_wrong_rule_is_said(rules: Any, said: str) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(said)):
        JsonPolicy(rules)


@pytest.mark.parametrize(
    ("rule", "path", "fits"),
    [
        ('a["b.c"]', ("a", "b.c"), True),
        ("**", (), True),
        ("**.x", ("a", 3, "x"), True),
        ("a.**.x", ("a", "x"), True),
        ("a.*.x", ("a", 3, "x"), False),
        ("a[*].x", ("a", 3, "x"), True),
        ("a", ("a", "b"), False),
        ("[*].a", (0, "a"), True),
    ],
)
def test_a_path_fits(rule: str, path: tuple[str | int, ...], fits: bool) -> None:
    assert (JsonPolicy({rule: 0.5}).rule(path) is not None) == fits
