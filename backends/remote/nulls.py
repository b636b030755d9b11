"""Nulls that stand for "left out" in the answer to a strict schema, taken out again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import unquote

from ...middleware.verbatim import read_json, rewritten
from .fits import fits


def without_nulls(value: Any, schema: Any, root: Any = None) -> Any:
    """Return the value without the nulls of optional properties that may not be null.

    >>> without_nulls({"a": None}, {"type": "object", "properties": {"a": {"type": "string"}}})
    {}
    """
    root = schema if root is None else root
    if not isinstance(schema, Mapping):
        return value
    fields = cast("Mapping[str, Any]", schema)
    if isinstance(target := fields.get("$ref"), str):
        return without_nulls(value, _resolved(target, root), root)
    for key in ("anyOf", "oneOf", "allOf"):
        for branch in cast("Sequence[Any]", fields.get(key) or ()):
            shorter = without_nulls(value, branch, root)
            if fits(shorter, {**_shared(root), "allOf": [branch]}):
                value = shorter
                break
    if isinstance(value, list) and isinstance(fields.get("items"), Mapping):
        items = cast("Sequence[Any]", value)
        return [without_nulls(one, fields["items"], root) for one in items]
    if not isinstance(value, dict):
        return cast("Any", value)
    properties: Mapping[str, Any] = fields.get("properties") or {}
    required: Sequence[str] = fields.get("required") or ()
    kept: dict[str, Any] = {}
    for name, one in cast("dict[str, Any]", value).items():
        inner = properties.get(name)
        is_optional = inner is not None and name not in required
        if one is None and is_optional and not fits(None, {**_shared(root), "allOf": [inner]}):
            continue
        kept[name] = without_nulls(one, inner, root)
    return kept


def _shared(root: Any) -> dict[str, Any]:
    return {key: root[key] for key in ("$schema", "$defs", "definitions") if key in root}


def _resolved(target: str, root: Any) -> Any:
    """Return what a local reference names, None for any other."""
    if not target.startswith("#/"):
        return root if target == "#" else None
    for step in target[2:].split("/"):
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        try:
            root = cast("Any", root[name] if isinstance(root, Mapping) else root[int(name)])
        except (KeyError, IndexError, TypeError, ValueError):
            return None
    return root


def pruned(text: str, schema: Mapping[str, Any]) -> str | None:
    """Return the JSON text without such nulls, None when it is no JSON."""
    try:
        value = read_json(text)
    except (ValueError, RecursionError):
        return None
    return rewritten(text, value, without_nulls(value, schema))
