"""JSON schemas, made safe for the automaton."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ...middleware.errors import InvalidRequest, UnsupportedConstraint

# No answer has more of anything. An upper bound past it says nothing and is dropped; a lower
# bound past it cannot be met. (Bounds near 2**64 have aborted automata in the past.)
MAX_BOUND = 100_000
MAX_DEPTH = 100

_UPPER = frozenset({"maxItems", "maxLength", "maxProperties"})
_LOWER = frozenset({"minItems", "minLength", "minProperties"})
_VALUES = frozenset({"const", "enum", "default", "examples"})
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})


def prepare(spec: str) -> dict[str, Any]:
    """Return the schema without bounds that no answer can reach, and without engine options.

    The language of answers of less than ``MAX_BOUND`` items and characters stays the same.
    Raises InvalidRequest when the text is no JSON schema, UnsupportedConstraint when it is nested
    deeper than ``MAX_DEPTH`` or asks for more than ``MAX_BOUND`` of something.
    """
    try:
        schema: Any = json.loads(spec)
    except RecursionError as error:
        raise _too_deep() from error
    except ValueError as error:
        raise InvalidRequest(f"the JSON schema is not JSON ({error}): {spec!r:.80}") from error
    if schema is True:
        schema = {}
    if not isinstance(schema, dict):
        raise InvalidRequest(f"a JSON schema is an object, got {spec!r:.80}")
    safe = cast("dict[str, Any]", _schema(cast("dict[str, Any]", schema), 0))
    _check(cast("dict[str, Any]", schema))
    return safe


def _check(schema: dict[str, Any]) -> None:
    import jsonschema
    from jsonschema.validators import validator_for

    try:
        cast("Any", validator_for)(schema).check_schema(schema)
    except jsonschema.SchemaError as error:
        raise InvalidRequest(
            f"not a JSON schema: {error.message:.120} at {error.json_path}"
        ) from error


def _too_deep() -> UnsupportedConstraint:
    return UnsupportedConstraint(
        f"the JSON schema is nested deeper than {MAX_DEPTH} levels; move parts of it into $defs"
    )


def _schema(value: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise _too_deep()
    if isinstance(value, list):
        return [_schema(item, depth + 1) for item in cast("Sequence[Any]", value)]
    if not isinstance(value, Mapping):
        return value
    safe: dict[str, Any] = {}
    for keyword, inner in cast("Mapping[str, Any]", value).items():
        if keyword == "x-guidance":
            continue
        if isinstance(inner, (int, float)) and inner > MAX_BOUND:
            if keyword in _UPPER:
                continue
            if keyword in _LOWER:
                raise UnsupportedConstraint(
                    f"{keyword} {inner} is more than an answer can have; keep it <= {MAX_BOUND}"
                )
        if keyword in _VALUES:
            safe[keyword] = inner
        elif keyword in _NAMED and isinstance(inner, Mapping):
            named = cast("Mapping[str, Any]", inner)
            safe[keyword] = {name: _schema(item, depth + 1) for name, item in named.items()}
        else:
            safe[keyword] = _schema(inner, depth + 1)
    return safe
