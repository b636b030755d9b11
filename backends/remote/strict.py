"""A JSON schema in the dialect of OpenAI's strict mode, and the way back.

Rules: https://platform.openai.com/docs/guides/structured-outputs ("Supported schemas"): every
object closed, every property required (an optional one may be null instead), no composition but
anyOf. What the dialect cannot say goes into the descriptions, in words.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ...middleware.errors import UnsupportedConstraint
from ...middleware.subschemas import all_schemas
from .coverage import ANNOTATIONS

ANSWER = "answer"  # the property that holds what is no object by itself
_KEPT = frozenset(
    {"pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum"}
    | {"exclusiveMaximum", "minItems", "maxItems"}
)
_MAPS_OUT = ("patternProperties", "propertyNames", "unevaluatedProperties", "minProperties")


def strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema as strict mode takes it, with an object at the top.

    A schema of no object becomes the property "answer" of one: see ``is_wrapped``. Every text that
    it accepts is, after ``without_nulls``, accepted by the original but for what went into the
    descriptions. Raises UnsupportedConstraint for maps with free keys and values of any type.
    """
    if is_wrapped(schema):
        _check_references(schema)
        inner = {k: v for k, v in schema.items() if k not in ("$defs", "definitions")}
        shared = {k: v for k, v in schema.items() if k in ("$defs", "definitions")}
        return _node({**wrapped(inner), **shared}, "")
    return _node(schema, "")


def is_wrapped(schema: Mapping[str, Any]) -> bool:
    """Whether ``strict`` puts the schema into an object."""
    return schema.get("type") != "object"


def wrapped(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with the value as its only property."""
    return {
        "type": "object",
        "properties": {ANSWER: dict(schema)},
        "required": [ANSWER],
        "additionalProperties": False,
    }


def relaxed(schema: Any, enforced: frozenset[str]) -> Any:
    """Return the schema without the keywords that are not enforced, which are said in words."""
    if not isinstance(schema, Mapping):
        return schema
    fields = cast("Mapping[str, Any]", schema)
    kept: dict[str, Any] = {}
    said: dict[str, Any] = {}
    for key, value in fields.items():
        if key in ("properties", "$defs", "definitions") and isinstance(value, Mapping):
            named = cast("Mapping[str, Any]", value)
            kept[key] = {name: relaxed(one, enforced) for name, one in named.items()}
        elif key in ("anyOf", "prefixItems") and key in enforced:
            kept[key] = [relaxed(one, enforced) for one in cast("Sequence[Any]", value)]
        elif key == "items" and isinstance(value, Mapping):
            kept[key] = relaxed(value, enforced)
        elif key in enforced or key in ANNOTATIONS:
            kept[key] = value
        else:
            said[key] = value
    return _described(kept, said)


def _check_references(schema: Any) -> None:
    """Refuse references that would lead elsewhere once the schema is inside another."""
    for one in all_schemas(schema):
        target = one.get("$ref")
        if isinstance(target, str) and not target.startswith(("#/$defs/", "#/definitions/")):
            raise UnsupportedConstraint(f"$ref {target!r:.80} cannot be moved into an object")


def _node(schema: Any, where: str) -> dict[str, Any]:
    if not isinstance(schema, Mapping) or not schema:
        raise UnsupportedConstraint(f"strict mode has no value of any type ({where or '/'})")
    fields = dict(cast("Mapping[str, Any]", schema))
    if "$ref" in fields:  # nothing may stand beside it
        return {"$ref": fields["$ref"]}
    if "oneOf" in fields and "anyOf" not in fields:
        fields["anyOf"] = fields.pop("oneOf")
    parts: list[dict[str, Any]] = fields.get("allOf") or []
    if len(parts) == 1 and not set(parts[0]) & set(fields):
        fields = {**fields.pop("allOf")[0], **fields}
        return _node(fields, where)
    if "const" in fields:
        fields["enum"] = [fields.pop("const")]
    if "enum" in fields and "type" not in fields:
        fields["type"] = _types(fields["enum"])
    kept: dict[str, Any] = {}
    said: dict[str, Any] = {}
    for key, value in fields.items():
        if key in ("$defs", "definitions"):
            kept[key] = {n: _node(one, f"{where}/{key}/{n}") for n, one in value.items()}
        elif key == "anyOf":
            kept[key] = [_node(one, f"{where}/anyOf/{i}") for i, one in enumerate(value)]
        elif key == "items" and isinstance(value, Mapping):
            kept[key] = _node(value, f"{where}/items")
        elif key in ("type", "enum", "title", "description") or key in _KEPT:
            kept[key] = value
        elif key not in ("properties", "required", "additionalProperties", *ANNOTATIONS):
            said[key] = value
    kinds = fields.get("type")
    names = cast("Sequence[Any]", kinds) if isinstance(kinds, list) else [kinds]
    if not names[0] and "anyOf" not in kept:
        raise UnsupportedConstraint(f"strict mode needs a type at {where or '/'}")
    if "array" in names and "items" not in kept:
        raise UnsupportedConstraint(f"strict mode needs the array's items at {where or '/'}")
    if "object" in names:
        _close(fields, kept, where)
    return _described(kept, said)


def _close(fields: Mapping[str, Any], kept: dict[str, Any], where: str) -> None:
    """Close an object: all of its properties are required, the optional ones may be null."""
    properties: Mapping[str, Any] = fields.get("properties") or {}
    required: Sequence[str] = fields.get("required") or ()
    is_map = isinstance(fields.get("additionalProperties"), Mapping) or any(
        key in fields for key in _MAPS_OUT
    )
    is_open = not properties and fields.get("additionalProperties") is not False
    if is_map or is_open or not set(required) <= set(properties):
        raise UnsupportedConstraint(f"strict mode has no object with free keys ({where or '/'})")
    nodes = {name: _node(one, f"{where}/properties/{name}") for name, one in properties.items()}
    kept["properties"] = {
        name: node if name in required else _nullable(node) for name, node in nodes.items()
    }
    kept["required"] = list(properties)
    kept["additionalProperties"] = False


def _nullable(node: dict[str, Any]) -> dict[str, Any]:
    kinds = node.get("type")
    if not isinstance(kinds, (str, list)):
        return {"anyOf": [node, {"type": "null"}]}
    names = cast("Sequence[Any]", kinds) if isinstance(kinds, list) else [kinds]
    node = {**node, "type": names if "null" in names else [*names, "null"]}
    if "enum" in node and None not in node["enum"]:
        node["enum"] = [*node["enum"], None]
    return node


def _types(values: Sequence[Any]) -> Any:
    """Return the JSON types of an enum's values, in the form of the keyword ``type``."""
    names = list(dict.fromkeys(_type(value) for value in values))
    return names[0] if len(names) == 1 else names


def _type(value: Any) -> str:
    if value is None:
        return "null"
    kinds: dict[Any, str] = {bool: "boolean", int: "integer", float: "number", str: "string"}
    return kinds.get(type(value)) or ("array" if isinstance(value, list) else "object")


def _described(kept: dict[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    if said:
        words = "; ".join(f"{k}: {json.dumps(v, ensure_ascii=False)}" for k, v in said.items())
        kept["description"] = f"{kept.get('description', '')} ({words})".strip()
    return kept
