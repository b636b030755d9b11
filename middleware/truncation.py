"""Answers that were cut: how far they are good, and what they lack."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any, cast

from .check import PATTERN_SECONDS
from .errors import Truncated
from .grammars import num_valid
from .matching import Live
from .partial import PartialJson
from .partial_template import PartialTemplate
from .subschemas import all_schemas
from .template import Template
from .types import Constraint, Response

_NAMED = 4
# What leads to a required property; nothing that runs a pattern of the schema.
_KEYWORDS = ("$ref", "allOf", "items", "prefixItems", "properties", "required")


def truncated(response: Response, constraint: Constraint, *, fits: bool) -> Truncated:
    """Return the error for an answer that reached its limit of tokens before it was complete.

    ``fits``: what there is keeps the constraint, but longer answers that begin so do, too.
    """
    text = valid_prefix(response.text, constraint)
    hint = ""
    if text.lstrip().startswith("{") and _is_open(constraint):
        hint = ', or close the schema with "additionalProperties": false'
    lacks = _lacks(text, constraint)
    if response.enforced is not None and response.enforced.level == "none":
        hint += "; the engine was only asked in words, it cannot enforce this"
    how = f"before the {constraint.kind} was complete{f' (it lacks {lacks})' if lacks else ''}"
    if fits:
        how = f"where the {constraint.kind} could have gone on"
    return Truncated(
        f"the output was cut after {response.usage.completion_tokens} tokens, {how}; raise "
        f"max_tokens{hint}",
        text=text,
    )


def _is_open(constraint: Constraint) -> bool:
    """Whether it is a schema that closes no object."""
    if constraint.kind != "json_schema":
        return False
    schemas = all_schemas(json.loads(cast("str", constraint.spec)))
    return not any("additionalProperties" in one for one in schemas)


def valid_prefix(text: str, constraint: Constraint) -> str:
    """Return the longest beginning of the text that a valid answer can begin with.

    For a JSON schema: that a JSON text can begin with.
    """
    spec: Any = constraint.spec
    match constraint.kind:
        case "json_schema":
            reader = PartialJson()
            reader.push(text)
            return text[: reader.num_valid]
        case "grammar":
            return text[: num_valid(spec, text)[0]]
        case "choice":
            return _longest(text, lambda part: any(one.startswith(part) for one in spec))
        case "regex":
            return _longest(text, lambda part: _may_match(spec, part))
        case "template":
            parts = Template.from_spec(spec).parts
            return _longest(text, lambda part: Live(parts, part).is_live())


def _longest(text: str, is_beginning: Callable[[str], bool]) -> str:
    """Return the longest beginning that is one; the beginnings of one are ones too."""
    try:
        end = bisect_left(range(1, len(text) + 1), True, key=lambda n: not is_beginning(text[:n]))
    except TimeoutError:
        return text
    return text[:end]


def _may_match(pattern: str, text: str) -> bool:
    import regex

    return bool(regex.fullmatch(pattern, text, partial=True, timeout=PATTERN_SECONDS))


def _lacks(text: str, constraint: Constraint) -> str:
    if constraint.kind == "template":
        reader = PartialTemplate(cast("str", constraint.spec))
        reader.push(text)
        names = [one.name for one in reader.template.fields if one.name not in reader.value]
        return ", ".join(names[:_NAMED])
    if constraint.kind != "json_schema":
        return ""
    json_reader = PartialJson(grow=True)
    json_reader.push(text)
    lacks = [json_reader.open] if json_reader.open else []
    if json_reader.has_value:
        required = _required(json.loads(cast("str", constraint.spec)), json_reader.value)
        lacks += [*required][:_NAMED]
    return ", ".join(lacks)


def _required(schema: Any, value: Any) -> Iterator[str]:
    """Yield the JSON pointers of required properties that are not there."""
    from jsonschema import validators

    library: Any = validators
    draft = library.validator_for(schema)
    known = {name: rule for name, rule in draft.VALIDATORS.items() if name in _KEYWORDS}
    only = library.create(draft.META_SCHEMA, validators=known)
    seen: set[str] = set()
    try:
        for error in only(schema).iter_errors(value):
            for name in error.validator_value if error.validator == "required" else ():
                pointer = "".join(f"/{step}" for step in (*error.absolute_path, name))
                if name not in error.instance and pointer not in seen:
                    seen.add(pointer)
                    yield pointer
    except RecursionError:
        return
