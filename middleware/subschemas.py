"""Walking a JSON schema as a schema: the names of properties are no keywords."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

# What these hold are values, which may look like schemas.
_VALUES = frozenset({"const", "enum", "examples", "example", "default"})
# What these hold are schemas (or, in dependencies, names) by names that anybody chooses.
_NAMED = frozenset(
    {
        *("properties", "patternProperties", "dependentSchemas", "dependencies"),
        *("$defs", "definitions"),
    }
)


def subschemas(schema: Mapping[str, Any]) -> Iterator[Any]:
    """Yield what may be a schema right in a schema, of any draft; a keyword nobody knows may be.

    >>> [*subschemas({"const": {"a": 1}, "properties": {"const": {"type": "string"}}})]
    [{'type': 'string'}]
    """
    for key, value in schema.items():
        if key in _NAMED and isinstance(value, Mapping):
            yield from cast("Mapping[str, Any]", value).values()
        elif key not in _VALUES:
            many = isinstance(value, list)
            yield from cast("Sequence[Any]", value) if many else (value,)
