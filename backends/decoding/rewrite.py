"""JSON Schema keywords that automata lack, said with those that they have.

Each function returns an equivalent schema, or None when there is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

_KINDS = ("null", "boolean", "number", "string", "array", "object")
_MOST = 4  # alternatives: each doubles the automaton
_ANNOTATIONS = frozenset({"title", "description", "default", "examples", "$comment"})
_APPLICATORS = frozenset(
    {"$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas"}
)


def negated(schema: Any) -> Any:
    """Return the schema of everything that this one refuses.

    >>> negated({"type": ["string", "number"]})
    {'type': ['null', 'boolean', 'array', 'object']}
    """
    if isinstance(schema, bool):
        return not schema
    given = {k: v for k, v in cast("dict[str, Any]", schema).items() if k not in _ANNOTATIONS}
    if not given:
        return False
    kind = given.pop("type", None)
    if kind is not None:
        kinds = [kind] if isinstance(kind, str) else cast("list[str]", kind)
        if "integer" in kinds and "number" not in kinds:
            return None  # 1.5, but not 1.0
        others = [one for one in _KINDS if one not in kinds]
        outside: Any = {"type": others} if others else False
        if not given:
            return outside
        inside = negated(given)
        if inside is None:
            return None
        return {"anyOf": [outside, {"allOf": [{"type": kinds}, inside]}]}
    if len(given) == 2 and given.keys() == {"properties", "required"}:
        return _lacking_or_other(given)
    if len(given) != 1:
        return None
    ((keyword, value),) = given.items()
    match keyword:
        case "not":
            return value
        case "required" if 0 < len(value) <= _MOST:
            lacking = [{"properties": {name: False}} for name in value]
            return {"type": "object", "anyOf": lacking}
        case "anyOf" | "allOf" if len(value) <= 2 * _MOST:
            parts = [negated(one) for one in value]
            other = "allOf" if keyword == "anyOf" else "anyOf"
            return None if any(one is None for one in parts) else {other: parts}
        case "enum" if all(one is None or isinstance(one, bool) for one in value):
            return _other_constants(value)
        case "const" if value is None or isinstance(value, bool):
            return _other_constants([value])
        case _:
            return None


def _lacking_or_other(given: Mapping[str, Any]) -> Any:
    properties = given["properties"]
    if len(properties) != 1 or [*properties] != given["required"]:
        return None
    ((name, schema),) = properties.items()
    other = negated(schema)
    if other is None:
        return None
    return {
        "type": "object",
        "anyOf": [
            {"properties": {name: False}},
            {"required": [name], "properties": {name: other}},
        ],
    }


def _other_constants(values: Sequence[Any]) -> Any:
    kinds = [kind for kind in _KINDS if kind not in ("null", "boolean")]
    if None not in values:
        kinds.append("null")
    booleans = [one for one in (True, False) if not any(one is value for value in values)]
    return {"anyOf": [{"type": kinds}, {"enum": booleans}]} if booleans else {"type": kinds}


def conditional(node: Mapping[str, Any]) -> Any:
    """Return ``if``/``then``/``else`` as two alternatives."""
    test = node["if"]
    other = negated(test)
    if other is None:
        return None
    return {
        "anyOf": [
            {"allOf": [test, node.get("then", True)]},
            {"allOf": [other, node.get("else", True)]},
        ]
    }


def dependencies(given: Mapping[str, Any]) -> Any:
    """Return names that need others (or a schema) as: either without, or with what it needs."""
    if len(given) > _MOST:
        return None
    parts: list[Any] = []
    for name, needs in given.items():
        if isinstance(needs, list):
            wanted: dict[str, Any] = {"required": [name, *cast("list[str]", needs)]}
        else:
            wanted = {"required": [name], "allOf": [needs]}
        parts.append(
            {"anyOf": [{"type": [k for k in _KINDS if k != "object"]}, _without(name), wanted]}
        )
    return {"allOf": parts}


def _without(name: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: False}}


def exclusive(options: Sequence[Any]) -> Any:
    """Return ``oneOf`` as alternatives that each deny the others."""
    if not 1 < len(options) <= _MOST:
        return None
    others = [negated(option) for option in options]
    if any(other is None for other in others):
        return None
    return {
        "anyOf": [
            {"allOf": [option, *(other for j, other in enumerate(others) if j != i)]}
            for i, option in enumerate(options)
        ]
    }


def evaluated(node: Mapping[str, Any], keyword: str) -> bool:
    """Whether only this schema itself evaluates its properties or items.

    Then ``unevaluatedProperties`` is ``additionalProperties``, ``unevaluatedItems`` is ``items``.
    """
    is_items = keyword == "unevaluatedItems"
    return not (_APPLICATORS & node.keys()) and not (is_items and "contains" in node)


def named(out: dict[str, Any], names: Any) -> bool:
    """Put ``propertyNames`` into an object schema as patterns; returns whether that is done."""
    import regex

    from .patterns import Unsupported, searched, whole

    if not isinstance(names, dict) or "patternProperties" in out:
        return False
    given = {k: v for k, v in cast("dict[str, Any]", names).items() if k not in _ANNOTATIONS}
    if given.pop("type", "string") != "string" or len(given) != 1:
        return False
    ((keyword, value),) = given.items()
    properties = out.get("properties", {})
    rest = out.get("additionalProperties", True)
    if keyword in ("enum", "const"):
        listed = [one for one in ([value] if keyword == "const" else value) if isinstance(one, str)]
        out["properties"] = {
            **{name: schema for name, schema in properties.items() if name in listed},
            **{name: rest for name in listed if name not in properties},
        }
        out["additionalProperties"] = False
        return True
    if keyword != "pattern":
        return False
    try:
        rust, python = whole(value), regex.compile(searched(value), flags=regex.VERSION1)
    except (Unsupported, regex.error):
        return False
    out["properties"] = {k: v if python.search(k) else False for k, v in properties.items()}
    out["patternProperties"] = {f"^{rust}$": rest}
    out["additionalProperties"] = False
    return True
