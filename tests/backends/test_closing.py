"""Objects that are finished inside the limit of tokens."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from headrace import constraint, grammar
from headrace.backends import TransformersBackend
from headrace.backends.decoding.automaton import Compiler, unpack
from headrace.backends.decoding.closing import Closing, ClosingOrder
from headrace.backends.local import LocalModel
from headrace.middleware.check import violation
from headrace.middleware.types import Constraint, Request, Sampling

pytestmark = pytest.mark.model
Ask = Callable[..., Awaitable[list[Any]]]

ORDER = constraint(
    {
        "type": "object",
        "properties": {
            "id": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$"},
            "note": {"type": "string", "minLength": 12},
            "lines": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "properties": {"sku": {"type": "string"}, "count": {"type": "integer"}},
                    "required": ["sku", "count"],
                    "additionalProperties": False,
                },
            },
            "day": {"type": "string", "format": "date"},
            "state": {"enum": ["open", "closed", None]},
        },
        "required": ["id", "note", "lines", "day", "state"],
        "additionalProperties": False,
    }
)
ANY_OBJECT = constraint({"type": "object"})
TAGS = constraint({"type": "array", "items": {"type": "string"}, "maxItems": 40})
SENTENCE = constraint(re.compile(r"[a-z ]{3,}\.(\n- [a-z]+)*"))


@pytest.fixture(scope="module")
def order(local: LocalModel) -> ClosingOrder:
    return local.closing_order


def wander(
    compiler: Compiler, order: ClosingOrder, held: Constraint, limit: int, seed: int
) -> tuple[list[int], bool, bool]:
    """Write tokens by lot; returns them, whether it is complete, and whether it was closed."""
    lot = random.Random(seed)
    matcher = compiler.matcher(held)
    closing = Closing(order, frozenset({2}), is_json=held.kind == "json_schema")
    tokens: list[int] = []
    while len(tokens) < limit and not matcher.is_finished:
        allowed = unpack(matcher.mask(), 49152).nonzero()[0].tolist()
        token = closing.choose(matcher, lot.choice(allowed), limit - len(tokens))
        matcher.advance(token)
        closing.advance(token)
        tokens.append(token)
    return tokens, matcher.is_complete, closing.was_needed


@pytest.mark.parametrize("held", [ORDER, ANY_OBJECT, TAGS], ids=["order", "object", "tags"])
@pytest.mark.slow
def test_whatever_is_written_ends_valid_where_a_short_way_exists(
    local: LocalModel, order: ClosingOrder, held: Constraint
) -> None:
    shortest = order.way(local.compiler.matcher(held), 500, held.kind == "json_schema")
    assert shortest is not None
    stepped_in = 0
    for seed in range(40):
        limit = random.Random(seed).randint(len(shortest) + 1, len(shortest) + 90)
        tokens, is_complete, was_needed = wander(local.compiler, order, held, limit, seed)
        text = local.decode([token for token in tokens if token not in local.eos])
        assert len(tokens) <= limit
        assert is_complete, (seed, limit, text)
        assert violation(text, held) is None, (seed, text)
        stepped_in += was_needed
    assert stepped_in > 0


def test_a_way_is_found_out_of_free_text_too(local: LocalModel, order: ClosingOrder) -> None:
    matcher = local.compiler.matcher(SENTENCE)
    for token in local.compiler.tokens_of(b"the sea and the"):
        matcher.advance(token)
    way = order.way(matcher, 10)
    assert way is not None
    assert violation("the sea and the" + local.decode(way), SENTENCE) is None


@pytest.mark.parametrize(
    "given",
    [
        {"type": "string", "format": "duration"},
        {"type": "string", "format": "date-time"},
        {"type": "string", "format": "email"},
        {"type": "string", "format": "uuid"},
        {"type": "string", "pattern": "^[0-9]+[A-Z]{2}#$"},
        {"type": "number", "multipleOf": 0.5, "minimum": 10},
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "number", "exclusiveMaximum": -0.5, "minimum": -2},
        {"type": "integer", "minimum": 2000, "maximum": 2500},
    ],
    ids=str,
)
def test_patterns_formats_and_bounds_are_closed_too(
    local: LocalModel, order: ClosingOrder, given: dict[str, Any]
) -> None:
    held = constraint(
        {"properties": {"d": given}, "required": ["d"], "additionalProperties": False}
        | {"type": "object"}
    )
    way = order.way(local.compiler.matcher(held), 60, is_json=True)
    assert way is not None
    assert violation(local.decode(way), held) is None
    tokens, is_complete, _ = wander(local.compiler, order, held, len(way) + 6, 1)
    assert is_complete, local.decode(tokens)


def test_no_way_is_promised_that_does_not_fit(local: LocalModel, order: ClosingOrder) -> None:
    assert order.way(local.compiler.matcher(ORDER), 10) is None
    assert order.way(local.compiler.matcher(ORDER), 0) is None


@pytest.mark.parametrize("more", [1, 12, 24])
async def test_a_small_limit_gives_a_whole_object_and_says_so(
    smollm2: TransformersBackend, ask: Ask, local: LocalModel, order: ClosingOrder, more: int
) -> None:
    shortest = order.way(local.compiler.matcher(ORDER), 500)
    assert shortest is not None
    limit = len(shortest) + more
    request = Request.of(
        "Write JSON with a long list of animals, with a long text about each.",
        constraint=ORDER,
        sampling=Sampling(max_tokens=limit),
    )
    [answer] = await ask(smollm2, [request])
    value = json.loads(answer.finished.text)
    assert violation(answer.finished.text, ORDER) is None
    assert value["lines"]
    assert answer.finished.usage.completion_tokens <= limit
    assert answer.finished.finish_reason == "length"
    assert answer.finished.enforced.was_closed
    assert 0 < answer.finished.enforced.closed_at < len(answer.finished.text)
    assert "".join(answer.deltas) == answer.finished.text


async def test_with_room_the_model_is_left_alone(smollm2: TransformersBackend, ask: Ask) -> None:
    held = constraint({"enum": ["red", "green", "blue"]})
    request = Request.of("A colour?", constraint=held, sampling=Sampling(max_tokens=16))
    [answer] = await ask(smollm2, [request])
    assert not answer.finished.enforced.was_closed
    assert answer.finished.finish_reason == "stop"


async def test_what_cannot_be_closed_is_cut_and_says_length(
    smollm2: TransformersBackend, ask: Ask
) -> None:
    request = Request.of("An order.", constraint=ORDER, sampling=Sampling(max_tokens=6))
    [answer] = await ask(smollm2, [request])
    assert answer.finished.finish_reason == "length"
    assert answer.finished.usage.completion_tokens == 6
    assert not answer.finished.enforced.was_closed
    assert answer.finished.text.lstrip().startswith("{")


async def test_a_number_that_is_cut_is_not_called_closed(
    smollm2: TransformersBackend, ask: Ask
) -> None:
    held = constraint(re.compile("[1-9][0-9]{5,}"))
    request = Request.of("A long number?", constraint=held, sampling=Sampling(max_tokens=8))
    [answer] = await ask(smollm2, [request])
    assert len(answer.finished.text) == 8
    assert answer.finished.finish_reason == "length"
    assert not answer.finished.enforced.was_closed


async def test_what_is_complete_is_not_spoilt_by_a_last_token(
    smollm2: TransformersBackend, ask: Ask
) -> None:
    held = constraint(re.compile("[a-z]+(\\.[a-z]+ )*"))
    for limit in (1, 2, 3):
        sampling = Sampling(max_tokens=limit)
        request = Request.of("Write: abc.def ghi", constraint=held, sampling=sampling)
        [answer] = await ask(smollm2, [request])
        assert violation(answer.finished.text, held) is None
        assert not answer.finished.enforced.was_closed


def test_a_long_way_that_fits_changes_nothing(local: LocalModel, order: ClosingOrder) -> None:
    held = constraint({"type": "array", "items": {"type": "integer"}, "minItems": 200})
    matcher = local.compiler.matcher(held)
    closing = Closing(order, local.eos)
    wanted = local.compiler.tokens_of(str([*range(100, 300)]).encode())
    for at, token in enumerate(wanted):
        assert closing.choose(matcher, token, 1300 - at) == token
        matcher.advance(token)
        closing.advance(token)
    assert not closing.was_needed


@pytest.mark.parametrize(
    "begun", ['{"price": 1', '{"price": 12.5', '{"price": 10', '{"price": -3e2']
)
def test_a_number_ends_where_the_next_key_must_come(
    local: LocalModel, order: ClosingOrder, begun: str
) -> None:
    properties = {"price": {"type": "number"}, "is_new": {"type": "boolean"}}
    held = constraint(
        {"type": "object", "properties": properties, "required": ["price", "is_new"]}
        | {"additionalProperties": False}
    )
    matcher = local.compiler.matcher(held)
    for token in local.compiler.tokens_of(begun.encode()):
        matcher.advance(token)
    way = order.way(matcher, 12)
    assert way is not None
    assert violation(begun + local.decode(way), held) is None
    assert (begun + local.decode(way)).startswith(begun + ",")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ('root ::= num "=" num "\\n"\nnum ::= [0-9]+', "12=3"),
        ('root ::= num ([-+*/] num)* "=" num\nnum ::= [0-9]+', "1+2"),
        ('start: num "=" num "\\n"\nnum: /[0-9]+/', ""),
        (r'''root ::= (expr "=" ws term "\n")+
expr ::= term ([-+*/] term)*
term ::= [a-z]+ ws | [0-9]+ ws | "(" ws expr ")" ws
ws ::= [ \t\n]*''', "(1+2"),
    ],
    ids=["line break", "marks", "lark", "nested"],
)  # fmt: skip
def test_grammars_are_closed_by_few_signs(
    local: LocalModel, order: ClosingOrder, text: str, written: str
) -> None:
    held = grammar(text)
    matcher = local.compiler.matcher(held)
    for token in local.compiler.tokens_of(written.encode()):
        matcher.advance(token)
    way = order.way(matcher, 6)
    assert way is not None
    assert violation(written + local.decode(way), held) is None


def test_a_grammar_that_never_ends_has_no_way_and_the_search_for_one_ends(
    local: LocalModel, order: ClosingOrder
) -> None:
    held = grammar('root ::= "a" rest\nrest ::= "c" rest')
    assert order.way(local.compiler.matcher(held), 50) is None
