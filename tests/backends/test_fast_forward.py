"""Tokens that take no pass of their own: forced ones, and guesses that turn out right."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

import headrace
from headrace import constraint
from headrace.backends.decoding.batch import Batch
from headrace.backends.decoding.guessing import Guesser
from headrace.backends.decoding.layout import Layout
from headrace.backends.decoding.lookup import Lookup
from headrace.backends.decoding.loop import Loop
from headrace.backends.decoding.row import Row
from headrace.backends.local import LocalModel
from headrace.middleware.types import Constraint, Request, Sampling

pytestmark = pytest.mark.model

PERSON = constraint(
    {
        "type": "object",
        "properties": {
            "first_name": {"type": "string", "maxLength": 20},
            "age_in_years": {"type": "integer", "minimum": 0, "maximum": 150},
            "address": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "is_abroad": {"type": "boolean"}},
                "required": ["city", "is_abroad"],
                "additionalProperties": False,
            },
        },
        "required": ["first_name", "age_in_years", "address"],
        "additionalProperties": False,
    }
)
CITY = constraint(["New", "New York City"])
PRICE = Constraint("regex", r"The price is [0-9]{1,3}(\.[0-9]{2})? EUR\.")


def of(prompt: str, held: Constraint | None, **sampling: Any) -> Request:
    return Request.of(prompt, constraint=held, sampling=Sampling(**{"max_tokens": 96, **sampling}))


def write(local: LocalModel, requests: Sequence[Request], *, ahead: bool) -> list[Row]:
    """Answer the requests together; the rows, done."""
    import torch

    rows = [local.row(at, one, 96, fast_forward=ahead) for at, one in enumerate(requests)]
    loop = Loop(local.model)
    with torch.inference_mode():
        for _, what in loop.admit(rows):
            assert isinstance(what, str)
        while loop.rows:
            for _, what in loop.step():
                assert isinstance(what, str)
    return rows


@pytest.mark.slow
def test_the_text_is_the_same_with_fewer_passes(local: LocalModel) -> None:
    requests = [
        of("Describe Ann from Oslo as JSON.", PERSON),
        of("Describe a sailor as indented JSON, please.", PERSON),
        of("What does the bread cost?", PRICE),
    ]
    for request in requests:
        [plain] = write(local, [request], ahead=False)
        [fast] = write(local, [request], ahead=True)
        assert fast.text == plain.text
        assert fast.tokens == plain.tokens
        assert plain.num_passes == len(plain.tokens)
        assert plain.num_forced == 0
        assert fast.num_passes < 0.75 * plain.num_passes
        assert fast.usage.forced_tokens > 0


def test_rows_of_a_batch_run_ahead_each_for_itself(local: LocalModel) -> None:
    requests = [
        of("Describe Ann from Oslo as JSON.", PERSON),
        of("What is the capital of France?", None, max_tokens=20),
        of("What does the bread cost?", PRICE),
        of("Which city is called the Big Apple?", CITY),
    ]
    together = write(local, requests, ahead=True)
    alone = [write(local, [request], ahead=False)[0] for request in requests]
    assert [row.text for row in together] == [row.text for row in alone]
    assert together[3].text == "New York City"


def test_the_same_draws_with_and_without(local: LocalModel) -> None:
    request = of("Describe a sailor as JSON.", PERSON, temperature=0.8, seed=3)
    texts = {row.text for _ in range(2) for row in write(local, [request], ahead=True)}
    assert len(texts) == 1
    assert set(json.loads(texts.pop())) == {"first_name", "age_in_years", "address"}


def test_forced_text_at_the_start_is_read_with_the_prompt(local: LocalModel) -> None:
    held = headrace.template("Dear reader, the weather today is {weather}.", weather=["wet", "dry"])
    [row] = write(local, [of("Write.", held)], ahead=True)
    assert row.text in (
        "Dear reader, the weather today is wet.",
        "Dear reader, the weather today is dry.",
    )
    assert row.num_passes <= 3
    assert row.num_forced >= len(row.tokens) - 3


def test_an_answer_without_any_choice_takes_no_pass(local: LocalModel) -> None:
    [row] = write(local, [of("Write.", constraint(["certainly not"]))], ahead=True)
    assert (row.text, row.finish_reason, row.num_passes) == ("certainly not", "stop", 0)


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6, 7])
def test_a_limit_inside_a_forced_span_holds(local: LocalModel, limit: int) -> None:
    [row] = write(local, [of("What does it cost?", PRICE, max_tokens=limit)], ahead=True)
    assert len(row.tokens) == limit
    assert row.finish_reason == "length"
    assert row.usage.completion_tokens == limit


def test_a_stop_string_inside_a_forced_span_ends_the_answer(local: LocalModel) -> None:
    [row] = write(local, [of("What does it cost?", PRICE, stop=("ice is",))], ahead=True)
    assert (row.text, row.finish_reason) == ("The pr", "stop")
    held = constraint({"type": "object", "properties": {"abc": {"const": 1}}, "required": ["abc"]})
    [row] = write(local, [of("Write.", held, stop=('"abc',))], ahead=True)
    assert row.finish_reason == "stop"
    assert row.text.strip() == "{"


def test_a_long_forced_text_is_read_in_parts_beside_others(local: LocalModel) -> None:
    long = " ".join(f"item {number}," for number in range(60))
    held = headrace.template("{first}; " + long + " and {last}", first=["a", "b"], last=["c", "d"])
    requests = [of("Write.", held, max_tokens=600), of("Name a colour.", None, max_tokens=12)]
    together = write(local, requests, ahead=True)
    alone = [write(local, [request], ahead=True)[0] for request in requests]
    assert [row.text for row in together] == [row.text for row in alone]
    assert long in together[0].text


def test_guesses_follow_the_layout_of_the_row(local: LocalModel) -> None:
    compact = local.compiler.compact(PERSON)
    assert compact is not None
    guesser = Guesser(compact, local.compiler.tokens_of)
    assert local.decode(guesser.guess()).replace(" ", "").startswith('{"first_name":')
    guesser.push('{\n    "first_name": "Ann"')
    assert local.decode(guesser.guess()) == ',\n    "age_in_years":'
    guesser.push(',\n    "age_in_years": 4, ')
    assert local.decode(guesser.guess()).startswith('"address": {\n        "city": "')


def test_a_guesser_that_is_wrong_stops(local: LocalModel) -> None:
    compact = local.compiler.compact(PERSON)
    assert compact is not None
    guesser = Guesser(compact, local.compiler.tokens_of)
    for _ in range(6):
        guesser.learn(8, 0)
    assert guesser.guess() == []
    lost = Guesser(compact, local.compiler.tokens_of)
    lost.push("[1,")
    assert lost.guess() == []


@pytest.mark.parametrize(
    ("seen", "bare", "styled"),
    [
        ('{"a": 1', ',"b":2}', ', "b": 2}'),
        ('{"a":1', ',"b":2}', ', "b":2}'),
        ('{\n\t"a": 1', ',"b":', ',\n\t"b":'),
        ('[\n  {\n    "a": 1', "}", "\n  }"),
        ('[\n  {\n    "a": 1\n  ', "}", "}"),
        ('{"a, {b": "x, y', '"}', '"}'),
        ('{"a\\"": "', '"', '"'),
        ("", "{", "{"),
    ],
)
def test_a_layout_sets_text_as_its_writer_would(seen: str, bare: str, styled: str) -> None:
    layout = Layout()
    layout.push(seen)
    assert layout.styled(bare) == styled
    assert layout.styled(bare) == styled  # asking changes nothing


def test_what_is_copied_from_the_prompt_takes_fewer_passes(local: LocalModel) -> None:
    import torch

    text = "The mill has 12 wheels, 3 floors and a red roof; it was built in 1687 by two brothers."
    request = of(f"Repeat exactly: {text}", None, max_tokens=40, temperature=0)
    rows = [local.row(at, request, 40, prompt_lookup=at) for at in (0, 8)]
    for row in rows:
        loop = Loop(local.model)
        with torch.inference_mode():
            list(loop.admit([row]))
            while loop.rows:
                list(loop.step())
    assert rows[1].tokens == rows[0].tokens
    assert rows[1].num_passes < 0.7 * rows[0].num_passes


def test_a_lookup_takes_the_latest_place_and_the_longest_run() -> None:
    lookup = Lookup(2)
    assert lookup.guess([1, 2, 3]) == []
    assert lookup.guess([1, 2, 3, 7, 8, 2, 3]) == [7, 8]
    assert lookup.guess([1, 2, 3, 7, 8, 2, 3, 5, 6, 2, 3]) == [5, 6]
    assert lookup.guess([1, 2, 3, 7, 8, 2, 3, 5, 6, 2, 3, 9, 1, 2, 3]) == [7, 8]


def test_a_model_that_counts_columns_takes_one_token_a_pass_and_writes_the_same(
    local: LocalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = [of("What does the bread cost?", PRICE), of("A city?", CITY), of("Hi", None)]
    requests[2] = of("Name a colour.", None, max_tokens=8)
    usual = [row.text for row in write(local, requests, ahead=True)]
    monkeypatch.setattr(Batch, "is_plain", property(lambda self: False))
    rows = write(local, requests, ahead=True)
    assert [row.text for row in rows] == usual
    assert rows[2].num_passes == len(rows[2].tokens)
    loop = Loop(local.model)
    assert loop.is_open
    import torch

    with torch.inference_mode():
        list(loop.admit([local.row(0, requests[2], 8)]))
    assert not loop.is_open  # nobody joins before all have left
