"""Records among words, and values that only look like JSON: no key, number or record ever goes."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shorter import assert_shorter

from headrace.compressors import Budget, Compressed, Compressor, make_counter, make_scorer
from headrace.compressors.structured.loose import records
from headrace.compressors.structured.policy import JsonPolicy

COMPRESSOR = Compressor(make_scorer("lexical"), make_counter())
PROSE = (
    "The meeting about the bridge was very long, and everyone in the room said something about the"
    " rising costs of the work, which nobody liked at all in the end, and it's at 12.50 euros."
)
RECORDS: list[dict[str, Any]] = [
    {"id": i, "ok": True, "x": None, "note": f"{PROSE} {i}", "at": [1.5, -0.0, {"n": 10**25 + i}]}
    for i in range(4)
]
LINES = [json.dumps(record) for record in RECORDS]
RATES = [0.1, 0.3, 0.6, 0.9]


def squeeze(text: str, rate: float, **options: Any) -> Compressed:
    (result,) = COMPRESSOR.compress([text], Budget(rate=rate), **options)
    assert result.text == "".join(text[a:b] for a, b in result.spans)
    assert result.reason or result.tokens_out <= (Budget(rate=rate).limit(result.tokens_in) or 0)
    return result


def inner(text: str) -> str:
    """Return what is between the first and the last bracket."""
    start = min(at for at in (text.find("{"), text.find("[")) if at >= 0)
    return text[start : max(text.rfind("}"), text.rfind("]")) + 1]


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize(
    "around",
    ["{}", "Observation: {} and that is all that was found.", "Here they are:\n{}\n\nBye."],
)
def test_what_python_prints_keeps_its_keys_and_values(rate: float, around: str) -> None:
    text = around.format(repr(RECORDS))
    new = squeeze(text, rate).text
    assert_shorter(ast.literal_eval(inner(new)), RECORDS)
    assert len(new) < len(text)
    assert new.startswith(text.split("[", maxsplit=1)[0].strip()[:4])


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("indent", [None, 2])
def test_json_with_words_around_it_is_cut_by_key(rate: float, indent: int | None) -> None:
    text = f"{PROSE}\nResult: {json.dumps(RECORDS, indent=indent)}, {PROSE}"
    new = squeeze(text, rate).text
    assert "Result: [" in new
    assert_shorter(json.loads(inner(new)), RECORDS)
    assert len(new) < len(text)


@pytest.mark.parametrize("rate", RATES)
def test_a_short_record_in_prose_is_whole_with_the_word_that_names_it(rate: float) -> None:
    text = (
        f"{PROSE} Before: {{'speed': 3, 'dir': 'NW'}} and after {{'speed': 4, 'dir': 'N'}}. {PROSE}"
    )
    new = squeeze(text, rate).text
    assert "Before: {'speed': 3, 'dir': 'NW'} and after {'speed': 4, 'dir': 'N'}." in new


@pytest.mark.parametrize("rate", RATES)
def test_several_records_in_prose_all_stay_in_order(rate: float) -> None:
    text = f"First there was {LINES[0]} and then {LINES[1]} came, and at last {RECORDS[2]!r} too."
    new = squeeze(text, rate).text
    found = [ast.literal_eval(_as_python(new[one.start : one.end])) for one in records(new)]
    assert_shorter(found, RECORDS[:3])


def _as_python(text: str) -> str:
    return text.replace(":true", ":True").replace(":null", ":None")


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("broken", [0, 1, 3])
def test_a_broken_line_of_json_lines_is_whole_and_the_others_are_cut_by_key(
    rate: float, broken: int
) -> None:
    lines = [line[:-50] if i == broken else line for i, line in enumerate(LINES)]
    new = squeeze("\n".join(lines), rate).text.split("\n")
    assert len(new) == 4
    for i, line in enumerate(new):
        if i == broken:
            assert line.startswith(f'{{"id": {i}, "ok": true, "x": null, "note": "')
            assert line == lines[i] or i == 3  # at the end it is known where it stops
        else:
            assert_shorter(json.loads(line), RECORDS[i])


@pytest.mark.parametrize("rate", RATES)
def test_a_result_that_was_cut_off_keeps_its_records(rate: float) -> None:
    text = json.dumps(RECORDS)[:-90]
    new = squeeze(text, rate).text
    assert [f'"id": {i}' in new for i in range(4)] == [True] * 4
    assert new.count('"note": "') == 4
    assert text.endswith(new[-60:])


@pytest.mark.parametrize("rate", RATES)
def test_json5_keeps_keys_commas_and_comments(rate: float) -> None:
    text = (
        f"{{id: 1, ok: true, note: '{PROSE.replace(chr(39), '')}', // what, for?\n list: [1, 2,],}}"
    )
    new = squeeze(text, rate).text
    assert new.startswith("{id: 1, ok: true, note: '")
    assert new.endswith("', // what, for?\n list: [1, 2,],}")


@pytest.mark.parametrize("rate", RATES)
def test_what_classes_print_of_themselves_keeps_its_fields(rate: float) -> None:
    text = (
        "[Document(id='a', metadata={'page': 1, 'at': datetime.date(2024, 1, 2)},"
        f" text={PROSE!r}), Document(id='b', text={PROSE!r})]"
    )
    new = squeeze(text, rate).text
    assert new.startswith(
        "[Document(id='a', metadata={'page': 1, 'at': datetime.date(2024, 1, 2)}, "
    )
    assert ", Document(id='b', text=\"" in new
    assert new.endswith('")]')
    assert rate == 0.9 or len(new) < len(text)


@pytest.mark.parametrize("rate", RATES)
def test_numbers_are_the_bytes_that_they_were(rate: float) -> None:
    numbers = '"n":[1e400,-0,-0.0,1E+2,0.10000000000000000000001,' + "9" * 40 + '],"k":1,"k":2'
    body = f'{{"body":{json.dumps(PROSE)},{numbers}}}'
    assert numbers in squeeze(body, rate).text
    assert numbers in squeeze(f"{PROSE}\nResult: {body}\n{PROSE}", rate).text
    python = numbers.replace('"', "'")
    assert python in squeeze(f"{{'body':{PROSE!r},{python}}}", rate).text


OTHERS = {
    "pydantic": "id=3 name='Ann' tags=['a', 'b'] note={!r}",
    "go": "{{ID:3 Name:Ann Note:{}}}",
    "ruby": "{{:id=>3, :note=>{!r}}}",
    "php": "Array\n(\n    [id] => 3\n    [note] => {}\n)\n",
    "java": "User{{id=3, name='Ann', note={!r}}}",
    "kotlin": "User(id=3, name=Ann, note={})",
    "a quote too few": "{{'id': 3, 'name: 'Ann', 'note': {!r}}}",
    "a link without quotes": "{{url: http://example.org/?a=1, note: {!r}}}",
    "a text of many lines": "{{'a': '''x\ny''', 'id': 3}}",
    "a break in a string": '{{"id": 3, "code": "def f(x):\nreturn x\n", "n": 4}}',
}


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize(
    "around", ["{}", "It said:\n{}\nand nothing else came back from it at all."]
)
@pytest.mark.parametrize("form", OTHERS.values(), ids=OTHERS)
def test_what_is_like_a_record_and_cannot_be_read_is_whole(
    form: str, around: str, rate: float
) -> None:
    record = form.format(PROSE)
    assert record.strip() in squeeze(around.format(record), rate).text


@pytest.mark.parametrize(
    "text",
    [
        "See [12, 13] and [[4]], {name}, {{ a }}, {x : x > 0}, f(x) and [a link](http://x.org/y).",
        "It is {'a word in quotes'} and [1], (2), {3, 4}.",
        "\\frac{a}{b} and a[i] = b[j] are no records.",
        'x=3 is what <a href="http://x.org" title="y"> says, and f(x = 3) too.',
    ],
)
def test_brackets_of_prose_are_no_records(text: str) -> None:
    assert records(text) == []


def test_rules_hold_for_records_among_words() -> None:
    policy = JsonPolicy({"note": 0.1, "x": "drop"})
    new = squeeze(f"Found: {RECORDS[0]!r} and no more.", 0.9, json=policy).text
    found = ast.literal_eval(inner(new))
    assert list(found) == ["id", "ok", "note", "at"]
    assert len(found["note"]) < 0.2 * len(PROSE)


TEXTS = st.lists(
    st.sampled_from([*PROSE.split(), "'", '"', "\\", "\n", "é", "🚀", "it's"]), max_size=50
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    TEXTS.map(" ".join) | st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False),
    lambda deeper: (
        st.lists(deeper, max_size=4)
        | st.dictionaries(st.text(max_size=5), deeper)
        | st.tuples(deeper, deeper)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=4), VALUES, min_size=1), st.floats(0, 1))
def test_any_python_value_keeps_its_structure(value: dict[str, Any], rate: float) -> None:
    text = repr(value).replace("inf", "1e999")
    new = squeeze(f"Found: {text} in it.", rate).text
    assert new.startswith("Found: {")
    assert new.endswith(" in it.")
    assert_shorter(ast.literal_eval(inner(new)), value)


@given(st.dictionaries(st.text(max_size=4), VALUES, min_size=1), st.floats(0, 1), st.data())
def test_json_cut_off_anywhere_keeps_the_keys_that_it_has(
    value: dict[str, Any], rate: float, data: st.DataObject
) -> None:
    text = json.dumps({"key": 1, **value})
    text = text[: data.draw(st.integers(len('{"key": 1'), len(text)))]
    new = squeeze(text, rate).text
    assert new.startswith('{"key":')
    assert new.count('":') == text.count('":')
