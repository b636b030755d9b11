"""Constraints that fall into parts: fields of an object, of a template, items of an array.

A part is written by a call of its own under its own constraint; what is said between the parts is
fixed. Nothing is divided where a keyword speaks about several fields at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from ..planners.listed import Listed
from ..planners.mapping import item_slots, with_last_text
from ..planners.prompts import with_task
from ..planners.slots import Slot
from .matching import Field
from .subschemas import subschemas
from .template import Template
from .types import Constraint, Message, Request
from .verbatim import members

_ALONE = frozenset(
    {
        *("type", "properties", "required", "additionalProperties", "title", "description"),
        *("$schema", "$id", "$comment", "$defs", "definitions", "examples", "default"),
        *("deprecated", "readOnly", "writeOnly", "propertyOrdering"),
    }
)
_ALONE_ITEMS = _ALONE | {"items", "minItems", "maxItems"}
_DEFS = ("$defs", "definitions")
_FAR = ("$dynamicRef", "$recursiveRef", "$anchor", "$dynamicAnchor", "$recursiveAnchor")


class Whole(Exception):
    """The constraint does not fall into parts; the message says why."""


@dataclass(frozen=True)
class Rest:
    """One call that writes everything from a place on; ``join`` makes its text fit there."""

    messages: tuple[Message, ...]
    constraint: Constraint
    join: Callable[[str], str]


@dataclass(frozen=True)
class Form:
    """The pieces of the answer; ``rest(index, text)`` asks for all from piece ``index`` on."""

    pieces: tuple[str | Slot, ...]
    rest: Callable[[int, str], Rest | None]


def form_of(request: Request) -> Form:
    """Return the parts of the request's constraint. Raises Whole where it has none."""
    constraint = request.constraint
    if constraint is None or constraint.kind not in ("json_schema", "template"):
        raise Whole("there is no outline, schema or template to fill in")
    if constraint.kind == "template":
        return _template_form(request, Template.from_spec(cast("str", constraint.spec)))
    return _object_form(request, json.loads(cast("str", constraint.spec)))


def array_form(request: Request, listed: Listed) -> Form:
    """Return the items of an array as parts, one for each item of the prompt. Raises Whole."""
    schema: Any = json.loads(cast("str", cast("Constraint", request.constraint).spec))
    _require_alone(schema, "array", _ALONE_ITEMS)
    number = len(listed.items)
    if not schema.get("minItems", 0) <= number <= schema.get("maxItems", number):
        raise Whole(f"the schema does not allow {number} items")
    items: Any = schema.get("items", {})
    each = _constraint(schema, items)
    pieces: list[str | Slot] = []
    for at, slot in enumerate(item_slots(request, listed)):
        one = Slot(slot.name, slot.messages, each, length=slot.length)
        pieces += [", " if at else "[", one]

    def rest(index: int, text: str) -> Rest:
        at = index // 2
        left = listed.items[at:]
        part = {
            **{key: schema[key] for key in (*_DEFS, "$schema") if key in schema},
            "type": "array",
            "items": items,
            "minItems": len(left),
            "maxItems": len(left),
        }
        lines = "".join(f"\n{number}. {item}" for number, item in enumerate(left, 1))
        task = (
            f"{listed.task}\n\nThe answer is a JSON array, of which this is written:\n{text}\n"
            f"Write a JSON array with what is asked for these items only, one value each:\n{lines}"
        )
        spec = json.dumps(part, ensure_ascii=False)
        messages = with_last_text(request, task)
        # As it was written: what is read and written again may not be the same number.
        return Rest(
            messages, Constraint("json_schema", spec), lambda said: f", {said.strip()[1:-1]}]"
        )

    return Form((*pieces, "]"), rest)


def _object_form(request: Request, schema: Any) -> Form:
    _require_alone(schema, "object", _ALONE)
    fields: Mapping[str, Any] = schema.get("properties", {})
    if len(fields) < 2:
        raise Whole(f"the schema has {len(fields)} field, which cannot be divided")
    if unknown := [name for name in schema.get("required", ()) if name not in fields]:
        raise Whole(f"the schema requires {unknown[0]!r:.40} and does not describe it")
    names = ", ".join(json.dumps(name, ensure_ascii=False) for name in fields)
    asked = request.with_documents_inline().messages
    task = f"\n\nThe answer is a JSON object with the fields {names}. "
    pieces: list[str | Slot] = []
    for at, (name, field) in enumerate(fields.items()):
        key = json.dumps(name, ensure_ascii=False)
        said: Any = cast("dict[str, Any]", field).get("description") if _is_dict(field) else None
        about = f" ({said})" if isinstance(said, str) and said else ""
        messages = with_task(
            asked, f"{task}Write only one value now, as JSON: that of {key}{about}."
        )
        slot = Slot(name, messages, _constraint(schema, field), length=_guess(field))
        pieces += [f"{', ' if at else '{'}{key}: ", slot]

    def rest(index: int, text: str) -> Rest | None:
        left = [*fields][index // 2 :]
        keys = ", ".join(json.dumps(name, ensure_ascii=False) for name in left)
        part = {
            **{key: schema[key] for key in (*_DEFS, "$schema") if key in schema},
            "type": "object",
            "properties": {name: fields[name] for name in left},
            "required": left,
            "additionalProperties": False,
        }

        def join(answer: str) -> str:
            values = members(answer)  # as they are written: 1.10 stays 1.10
            inner = ", ".join(
                f"{json.dumps(name, ensure_ascii=False)}: {values[name]}" for name in left
            )
            return f", {inner}}}"

        messages = with_task(
            asked, f"{task}This is written:\n{text}\nWrite an object with the others: {keys}."
        )
        spec = json.dumps(part, ensure_ascii=False)
        return Rest(messages, Constraint("json_schema", spec), join)

    return Form((*pieces, "}"), rest)


def _template_form(request: Request, template: Template) -> Form:
    if len(template.fields) < 2:
        raise Whole("the template has one field, which cannot be divided")
    shown = "".join(p if isinstance(p, str) else f"{{{p.name}}}" for p in template.parts)
    asked = request.with_documents_inline().messages
    task = f"\n\nThe answer fills in this form:\n\n{shown}\n\n"
    pieces = tuple(
        part
        if isinstance(part, str)
        else Slot(
            part.name,
            with_task(asked, f"{task}Write only what stands in the place of {{{part.name}}}."),
            _field_constraint(part),
            part.until,
        )
        for part in template.parts
    )

    def rest(index: int, text: str) -> Rest | None:
        start = index - 1 if index and isinstance(pieces[index - 1], str) else index
        left = Template(template.parts[start:])
        messages = with_task(
            asked, f"{task}This is written:\n\n{text}\n\nWrite what comes after it."
        )
        return Rest(messages, Constraint("template", left.spec), str)

    return Form(pieces, rest)


def _field_constraint(field: Field) -> Constraint | None:
    match field.kind:
        case "text":
            return None
        case "choice":
            return Constraint("choice", tuple(field.spec))
        case "regex":
            return Constraint("regex", field.spec)
        case _:
            return Constraint("json_schema", field.spec)


def _guess(field: Any) -> int:
    """Return about how many tokens a value of this schema has."""
    kind = cast("dict[str, Any]", field).get("type") if _is_dict(field) else None
    return 5 if kind in ("integer", "number", "boolean", "null") else 40


def _is_dict(value: Any) -> bool:
    return isinstance(value, dict)


def _require_alone(schema: Any, kind: str, known: frozenset[str]) -> None:
    """Raise Whole unless each part of the schema can be met without looking at the others."""
    if not _is_dict(schema) or schema.get("type") != kind:
        raise Whole(f"the schema is not of type {kind}")
    spanning = sorted(set(cast("dict[str, Any]", schema)) - known)
    if spanning:
        raise Whole(f"the schema's {spanning[0]!r:.40} is about several parts at once")
    if reason := far_reference(schema):
        raise Whole(f"the schema's {reason!r:.60} refers to more than a definition")


def far_reference(schema: Any) -> str | None:
    """Return the first reference to something beside ``$defs`` and ``definitions``."""
    if not isinstance(schema, dict):
        return None
    fields = cast("dict[str, Any]", schema)
    target = fields.get("$ref")
    if isinstance(target, str) and not target.startswith(tuple(f"#/{name}/" for name in _DEFS)):
        return target
    if far := next((name for name in _FAR if name in fields), None):
        return far
    for inner in subschemas(fields):
        if _is_dict(inner) and isinstance(inner.get("$id"), str):
            return "$id"  # what its references start from
        if bad := far_reference(inner):
            return bad
    return None


def _constraint(schema: Mapping[str, Any], part: Any) -> Constraint:
    """Return a part's own schema, with the definitions it may refer to."""
    if part is False:
        raise Whole("the schema forbids one of its own parts")
    shared = {key: schema[key] for key in (*_DEFS, "$schema") if key in schema}
    own = cast("dict[str, Any]", part) if isinstance(part, dict) else {}
    return Constraint("json_schema", json.dumps({**own, **shared}, ensure_ascii=False))
