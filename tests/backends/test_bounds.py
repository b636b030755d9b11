"""Numbers between two bounds: every number that an automaton takes is between them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from decimal import Decimal

import pytest
from llguidance import LLMatcher

from headrace.backends.decoding.schema import lowered
from headrace.middleware.errors import HeadraceError
from headrace.middleware.grammars import byte_tokenizer

BOUNDS = (None, -10, -1.5, -1, -0.05, 0, 0.05, 0.5, 1, 1.5, 10)
NUMBERS = (
    *("0", "-0", "0.0", "0.001", "0.04", "0.05", "0.051", "0.49", "0.5", "0.51", "0.99", "1"),
    *("1.0", "1.01", "1.49", "1.5", "1.51", "2", "9", "9.9", "10", "10.1", "100"),
    *("-0.001", "-0.04", "-0.05", "-0.051", "-0.5", "-1", "-1.0", "-1.49", "-1.5", "-1.51", "-10"),
)


@pytest.mark.parametrize("low_key", ["minimum", "exclusiveMinimum"])
@pytest.mark.parametrize("high_key", ["maximum", "exclusiveMaximum"])
def test_fault_of_llguidance_a_strict_whole_bound_is_never_taken(
    low_key: str, high_key: str
) -> None:
    num_held = 0
    for low, high in itertools.product(BOUNDS, BOUNDS):
        bounds = {low_key: low, high_key: high}
        schema = {"type": "number"} | {k: v for k, v in bounds.items() if v is not None}
        try:
            prepared = lowered(json.dumps(schema))
        except HeadraceError:
            continue  # no number fits
        text = json.dumps(prepared.schema)
        held = LLMatcher(byte_tokenizer(), LLMatcher.grammar_from_json_schema(text))
        if held.is_error():
            continue
        num_held += not prepared.residual
        for number in NUMBERS:
            matcher = held.deep_copy()
            data = [*number.encode()]
            is_taken = matcher.try_consume_tokens(data) == len(data) and matcher.is_accepting()
            if is_taken and not prepared.residual:
                assert _fits(Decimal(number), schema), (schema, number)
    assert num_held > 50


def _fits(number: Decimal, schema: Mapping[str, object]) -> bool:
    def of(key: str) -> Decimal:
        return Decimal(str(schema[key]))

    return (
        ("minimum" not in schema or number >= of("minimum"))
        and ("exclusiveMinimum" not in schema or number > of("exclusiveMinimum"))
        and ("maximum" not in schema or number <= of("maximum"))
        and ("exclusiveMaximum" not in schema or number < of("exclusiveMaximum"))
    )
