"""What an engine is known to enforce of a JSON schema, and what has to be checked afterwards.

The lists are short on purpose: a keyword is on one only when no version of the engine's automata
is known to ignore it. A keyword that is missing costs a level "partial" instead of "full"; one too
many would make "full" a lie.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "$schema", "$id", "$comment", "deprecated"}
    | {"readOnly", "writeOnly"}
)
CORE = frozenset(
    {"type", "enum", "const", "properties", "required", "additionalProperties", "items"}
    | {"minItems", "maxItems", "anyOf", "$ref", "$defs", "definitions"}
)
LLAMA = CORE | {"minLength", "maxLength"}  # not prefixItems: beside items it is dropped
_ALONE = ("$ref", "anyOf", "enum", "const")  # xgrammar and outlines drop what stands beside them


def residual(schema: Any, enforced: frozenset[str]) -> tuple[str, ...]:
    """Return the keywords, each as a JSON pointer, that are not surely enforced.

    >>> residual({"type": "array", "items": {"not": {}}, "uniqueItems": True}, CORE)
    ('/items/not', '/uniqueItems')
    """
    return tuple(_residual(schema, enforced, ""))


def subschemas(schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the schemas directly inside a schema with their places, such as "/properties/age"."""
    for key, value in schema.items():
        if key in ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"):
            for name, one in cast("Mapping[str, Any]", value).items():
                yield f"/{key}/{escaped(name)}", one
        elif key in ("anyOf", "oneOf", "allOf", "prefixItems") or (
            key == "items" and isinstance(value, list)
        ):
            for i, one in enumerate(cast("Sequence[Any]", value)):
                yield f"/{key}/{i}", one
        elif key in ("items", "additionalProperties") and isinstance(value, Mapping):
            yield f"/{key}", value


def escaped(name: str) -> str:
    """Return a property's name as a step of a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


def _residual(schema: Any, enforced: frozenset[str], where: str) -> Iterator[str]:
    if not isinstance(schema, Mapping):
        if schema is False:
            yield where or "/"
        return
    fields = cast("Mapping[str, Any]", schema)
    inside = dict(subschemas(fields))
    alone = next((key for key in _ALONE if key in fields), None)
    for key, value in fields.items():
        if key in ANNOTATIONS:
            continue
        if not _is_enforced(key, value, fields, enforced, alone):
            yield f"{where}/{escaped(key)}"
            continue
        for place, one in inside.items():
            if place == f"/{key}" or place.startswith(f"/{key}/"):
                yield from _residual(one, enforced, where + place)


def _is_enforced(
    key: str, value: Any, fields: Mapping[str, Any], enforced: frozenset[str], alone: str | None
) -> bool:
    if key not in enforced:
        return False
    if key == "required":  # of a property that is not declared, engines know nothing
        return set(value) <= set(fields.get("properties", ()))
    if key == "additionalProperties" and not isinstance(value, bool):
        return False
    if key == "items" and not isinstance(value, Mapping):
        return value is True
    if alone is None or key == alone or key in ("$defs", "definitions"):
        return True
    return key == "type" and alone in ("enum", "const")
