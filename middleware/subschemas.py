"""Walking a JSON schema as a schema: the names of properties are no keywords, values no schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

VALUES = frozenset({"const", "enum", "examples", "example", "default"})
"""What these keywords hold are values, which may look like schemas."""
NAMED = frozenset(
    {
        *("properties", "patternProperties", "dependentSchemas", "dependencies"),
        *("$defs", "definitions"),
    }
)
"""What these hold are schemas (or, in dependencies, names) by names that anybody chooses."""


def subschemas(schema: Mapping[str, Any]) -> Iterator[Any]:
    """Yield what may be a schema right in a schema, of any draft; a keyword nobody knows may be.

    >>> [*subschemas({"const": {"a": 1}, "properties": {"const": {"type": "string"}}})]
    [{'type': 'string'}]
    """
    for key, value in schema.items():
        if key in NAMED and isinstance(value, Mapping):
            yield from cast("Mapping[str, Any]", value).values()
        elif key not in VALUES:
            many = isinstance(value, list)
            yield from cast("Sequence[Any]", value) if many else (value,)


def all_schemas(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and all that may be schemas in it, at any depth, outer ones first."""
    left = [schema]
    while left:
        one = left.pop()
        if isinstance(one, Mapping):
            fields = cast("Mapping[str, Any]", one)
            yield fields
            left += [*subschemas(fields)][::-1]


def with_subschemas(schema: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return a schema with ``change`` of each of its ``subschemas`` in their places.

    >>> with_subschemas({"enum": [{}], "properties": {"enum": {}}}, lambda one: True)
    {'enum': [{}], 'properties': {'enum': True}}
    """
    changed: dict[str, Any] = {}
    for key, value in schema.items():
        if key in NAMED and isinstance(value, Mapping):
            named = cast("Mapping[str, Any]", value)
            changed[key] = {name: change(one) for name, one in named.items()}
        elif key in VALUES:
            changed[key] = value
        elif isinstance(value, list):
            changed[key] = [change(one) for one in cast("Sequence[Any]", value)]
        else:
            changed[key] = change(value)
    return changed
