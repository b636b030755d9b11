"""Which parts of a lowered schema have a finite value at all.

A node that must contain a node like itself never ends: an automaton would write it for ever.
"""

from __future__ import annotations

from typing import Any, cast

from .keywords import SCALARS, Schema


def without_endless(schema: Schema) -> Schema:
    """Return the schema with ``False`` for every part that no finite value fits.

    ``schema`` is a lowered one. The least fixed point over its definitions decides; bounds and
    patterns that exclude each other are left to the automaton.
    """
    if isinstance(schema, bool):
        return schema
    definitions = cast("dict[str, Schema]", schema["$defs"])
    ending: set[str] = set()
    while True:
        more = {
            name for name, one in definitions.items() if name not in ending and _ends(one, ending)
        }
        if not more:
            break
        ending |= more
    if not _ends(schema, ending):
        return False
    kept = {name: _pruned(one, ending) for name, one in definitions.items()}
    return {**cast("dict[str, Any]", _pruned(schema, ending)), "$defs": kept}


def _ends(schema: Schema, ending: set[str]) -> bool:
    if isinstance(schema, bool):
        return schema
    if "$ref" in schema and schema["$ref"].removeprefix("#/$defs/") not in ending:
        return False
    if not all(_ends(one, ending) for one in schema.get("allOf", ())):
        return False
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema and not any(_ends(one, ending) for one in schema[keyword]):
            return False
    if "enum" in schema:
        return True
    kinds: Any = schema.get("type", (*SCALARS, "array", "object"))
    return (
        any(kind in SCALARS for kind in kinds)
        or ("array" in kinds and _array_ends(schema, ending))
        or ("object" in kinds and _object_ends(schema, ending))
    )


def _array_ends(schema: dict[str, Any], ending: set[str]) -> bool:
    fewest = schema.get("minItems", 0)
    prefix = schema.get("prefixItems", [])
    needed = prefix[:fewest]
    if fewest > len(prefix):
        needed = [*needed, schema.get("items", True)]
    return all(_ends(one, ending) for one in needed)


def _object_ends(schema: dict[str, Any], ending: set[str]) -> bool:
    properties = schema.get("properties", {})
    rest = schema.get("patternProperties") or schema.get("additionalProperties", True)
    if not isinstance(rest, bool):
        rest = True
    return all(_ends(properties.get(name, rest), ending) for name in schema.get("required", ()))


def _below(schema: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(key, value) for key, value in schema.items() if key not in ("enum", "$defs", "type")]


def _pruned(schema: Schema, ending: set[str]) -> Schema:
    if isinstance(schema, bool):
        return schema
    if not _ends(schema, ending):
        return False
    out = dict(schema)
    for key, value in _below(schema):
        if key in ("allOf", "anyOf", "oneOf", "prefixItems"):
            out[key] = [_pruned(one, ending) for one in value]
        elif key in ("properties", "patternProperties"):
            out[key] = {name: _pruned(one, ending) for name, one in value.items()}
        elif key in ("items", "additionalProperties"):
            out[key] = _pruned(value, ending)
    return out
