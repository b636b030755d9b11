"""JSON values as JSON Schema sees them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

EXACT = 2**53  # beyond it automata round numbers


def is_kind(value: Any, kind: str) -> bool:
    """Whether a JSON value is of a kind of JSON Schema; 1.0 is an integer."""
    match kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return type(value) is int or (isinstance(value, float) and value.is_integer())
        case "number":
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        case "string":
            return isinstance(value, str)
        case "array":
            return isinstance(value, list)
        case _:
            return isinstance(value, dict)


def is_exact(value: Any) -> bool:
    """Whether an automaton holds the value as it is."""
    if isinstance(value, (int, float)):
        return abs(value) <= EXACT
    if isinstance(value, list):
        return all(is_exact(one) for one in cast("Sequence[Any]", value))
    if isinstance(value, dict):
        return all(is_exact(one) for one in cast("dict[str, Any]", value).values())
    return True


def plain(value: Any) -> Any:
    """Write 5.0 as 5, as a model would."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [plain(one) for one in cast("Sequence[Any]", value)]
    if isinstance(value, dict):
        return {key: plain(one) for key, one in cast("dict[str, Any]", value).items()}
    return value
