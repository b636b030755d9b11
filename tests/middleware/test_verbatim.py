"""JSON changed in places: every other number, key and blank is what it was."""

from __future__ import annotations

import json
from typing import Any

from headrace.backends.remote.nulls import pruned
from headrace.middleware.bulk_jsonl import with_text
from headrace.middleware.files import read_records, record_document
from headrace.middleware.proxy.events import Counts
from headrace.middleware.verbatim import members, read_json, rewritten

ODD = "1e400, -0, 1.10, 0.1000000000000000055511151231257827, " + "9" * 5000
REST = f'"n" : [{ODD}],  "k": 1, "k": {{"a": -0.0}}'


def test_what_is_not_changed_is_the_same_characters() -> None:
    text = f'{{ "a": "t", {REST} }}'
    old = read_json(text)
    assert rewritten(text, old, old) == text
    wanted: list[tuple[dict[str, Any], str]] = [
        ({**old, "a": ["x"]}, f'{{ "a": ["x"], {REST} }}'),
        ({**old, "b": None}, f'{{ "a": "t", {REST}, "b": null }}'),
        ({"n": old["n"], "k": old["k"]}, f"{{ {REST} }}"),
        ({**old, "a": "\ud83d"}, f'{{ "a": "\\ud83d", {REST} }}'),
    ]
    for new, said in wanted:
        assert rewritten(text, old, new) == said


def test_items_that_go_come_or_change_leave_the_others_as_they_were() -> None:
    text = '[{"a": "x", "n": 1.10}, {"a": "y", "n": 1e400}, [-0]]'
    old = read_json(text)
    new = [{**old[1], "a": "z"}, old[2], {"a": 1}]
    assert rewritten(text, old, new[:2]) == '[{"a": "z", "n": 1e400}, [-0]]'
    assert rewritten(text, old, new[1:]) == '[[-0], {"a": 1}]'
    assert rewritten(text, old, new) == '[{"a": "z", "n": 1e400}, [-0], {"a": 1}]'
    assert rewritten(text, old, [*old, 5]) == text[:-1] + ", 5]"


def test_any_value_is_what_the_rewritten_text_says() -> None:
    text = '{"a\\"b": {"c": [1, {"d": "}"}]}, "e": {}, "f": []}'
    old = read_json(text)
    changed: list[Any] = [
        {},
        {"e": {"x": 1}, "f": [1]},
        {'a"b': {"c": [{"d": 2}]}},
        {"f": old["e"]},
    ]
    for new in changed:
        assert json.loads(rewritten(text, old, new)) == new
    deep = "[" * 500 + "]" * 500
    assert members(f'{{"a": 1, "a": {deep}}}') == {"a": deep}


def test_rows_and_records_hold_numbers_of_any_length() -> None:
    line = f'{{"id": {"9" * 5000}, "text": "a", {REST}}}'
    [(kept, record)] = read_records(line, "x.jsonl")
    assert kept == line
    assert record_document(record).id == "9" * 5000
    assert with_text(line, "text", "b") == line.replace('"text": "a"', '"text": "b"')


def test_an_answer_without_its_nulls_has_its_numbers() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "n": {}}}
    assert pruned(f'{{"n": [{ODD}], "a": null}}', schema) == f'{{"n": [{ODD}]}}'


def test_counts_are_put_beside_numbers_that_stay() -> None:
    usage = '{"prompt_tokens": 3, "cost": 1.10}'
    body = f'{{"x": [{ODD}], "usage": {usage}}}'
    block = usage[:-1] + ', "headrace": {"a": 1}}'
    assert Counts(block={"a": 1}).whole(body.encode()).decode() == body.replace(usage, block)
    event = f'data: {{"x": [{ODD}], "usage": null, "choices": [{{"finish_reason": "stop"}}]}}\n\n'
    hidden = Counts(is_hidden=True).event(event.encode()).decode()
    assert hidden == event.replace('"usage": null, ', "")
