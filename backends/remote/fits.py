"""Did the server keep to the constraint? Enough to choose a rung; the stage Constrain validates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from ...middleware.types import Constraint

SECONDS = 2.0  # for one match of a caller's pattern


def keeps(text: str, constraint: Constraint) -> bool | None:
    """Whether the text keeps the constraint; None where it is not looked at (grammars)."""
    if constraint.kind == "choice":
        return text in constraint.spec
    if constraint.kind == "regex":
        return matches(cast("str", constraint.spec), text)
    if constraint.kind == "json_schema":
        try:
            value = strict_json(text)
        except (ValueError, RecursionError):
            return False
        return fits(value, json.loads(cast("str", constraint.spec)))
    return None


def fits(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether the schema accepts the value, but for patterns and formats, which can be slow."""
    from jsonschema import validators
    from referencing.exceptions import Unresolvable

    library: Any = validators
    draft = library.validator_for(schema)
    try:
        return bool(library.extend(draft, {"pattern": None})(schema).is_valid(value))
    except (Unresolvable, RecursionError):  # the stage Constrain says what is wrong
        return True


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern matches the whole text; one that takes for ever does not."""
    import regex

    try:
        return regex.fullmatch(pattern, text, timeout=SECONDS) is not None
    except TimeoutError:
        return False


def strict_json(text: str) -> Any:
    """Return the value of a JSON text; NaN and Infinity, which are none, raise ValueError."""

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)
