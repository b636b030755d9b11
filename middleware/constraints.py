"""From what people have at hand to a Constraint."""

from __future__ import annotations

import enum
import json
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from .check import dangling_reference, strict_json
from .errors import InvalidRequest
from .types import Constraint


def constraint(spec: Any) -> Constraint:
    r"""Return what the output must look like as a Constraint.

    ``spec`` is a JSON schema (a mapping, or the ``Path`` of a .json file), a pydantic model, a
    dataclass, a TypedDict or any other type that pydantic knows, a compiled regular expression,
    a sequence of choices, a ``Literal`` or ``Enum`` of strings, one of Outlines' output types, or
    a Constraint. A type also parses: ``response.parsed`` is an instance of it. Raises
    InvalidRequest for anything else, with what is wrong.

    >>> constraint(["yes", "no"]).spec
    ('yes', 'no')
    >>> constraint(re.compile(r"\d+")).kind
    'regex'
    """
    match spec:
        case Constraint():
            return spec
        case Mapping():
            return json_schema(cast("Mapping[str, Any]", spec))
        case Path():
            return _from_file(spec)
        case re.Pattern():
            return _from_pattern(spec)  # pyright: ignore[reportUnknownArgumentType]
        case str() | bytes():
            raise InvalidRequest(
                f"a constraint cannot be the bare text {spec!r:.60}: pass re.compile(...) for a "
                "regular expression, a list for choices, a mapping or Path for a JSON schema"
            )
        case Sequence():
            return choice([*spec])
        case _:
            return _from_type(spec)


def choice(options: Sequence[Any]) -> Constraint:
    """Return the constraint that the output is one of these texts."""
    if not options or not all(isinstance(option, str) and option for option in options):
        raise InvalidRequest(f"choices are one or more non-empty texts, got {list(options)!r:.80}")
    return Constraint("choice", tuple(dict.fromkeys(options)), str)


def regex(pattern: str) -> Constraint:
    """Return the constraint that the whole output matches this pattern."""
    import regex as engine  # knows \p{L}, which re does not

    try:
        engine.compile(pattern)
    except engine.error as error:
        raise InvalidRequest(f"{pattern!r:.80} is no regular expression: {error}") from None
    if not pattern:
        raise InvalidRequest("the regular expression is empty; nothing could be written")
    return Constraint("regex", pattern, str)


def json_schema(schema: Mapping[str, Any], parse: Callable[[str], Any] = strict_json) -> Constraint:
    """Return the constraint that the output is a JSON value which this schema accepts."""
    import jsonschema
    from jsonschema.validators import validator_for

    try:
        text = json.dumps(schema, ensure_ascii=False, allow_nan=False)
        validator_for(schema).check_schema(dict(schema))
    except (TypeError, ValueError) as error:
        raise InvalidRequest(f"the schema is no JSON: {error}") from None
    except RecursionError:
        raise InvalidRequest("the schema is nested too deeply to be read") from None
    except jsonschema.SchemaError as error:
        where = "/".join(str(step) for step in error.path) or "the top"
        raise InvalidRequest(f"that is no JSON schema: {error.message} (at {where})") from None
    if bad := dangling_reference(json.loads(text)):
        raise InvalidRequest(
            f"the schema's $ref {bad!r:.80} leads nowhere in the schema; put what it means under "
            "$defs (nothing is fetched)"
        )
    return Constraint("json_schema", text, parse)


def _from_pattern(pattern: re.Pattern[Any]) -> Constraint:
    """Take the flags of a compiled pattern along."""
    if isinstance(pattern.pattern, bytes):
        raise InvalidRequest("the pattern is of bytes; compile one of text")
    flags = "".join(
        letter
        for letter, flag in (("i", re.I), ("m", re.M), ("s", re.S), ("x", re.X))
        if pattern.flags & flag
    )
    return regex(f"(?{flags}){pattern.pattern}" if flags else pattern.pattern)


def _from_file(path: Path) -> Constraint:
    try:
        schema = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidRequest(f"cannot read the schema {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"the schema {path} is no JSON: {error}") from None
    if not isinstance(schema, dict):
        raise InvalidRequest(
            f"the schema {path} is a JSON {type(schema).__name__}; a JSON schema is an object"
        )
    return json_schema(cast("dict[str, Any]", schema))


def _from_type(spec: Any) -> Constraint:
    if type(spec).__module__.split(".")[0] == "outlines":
        return _from_outlines(spec)
    if typing.get_origin(spec) is typing.Literal and all(
        isinstance(value, str) for value in typing.get_args(spec)
    ):
        return choice(typing.get_args(spec))
    if isinstance(spec, type) and issubclass(spec, enum.Enum):
        values: list[Any] = [member.value for member in spec]
        if all(isinstance(value, str) for value in values):
            return replace(choice(values), parse=spec)
    if not isinstance(spec, type) and typing.get_origin(spec) is None:
        raise InvalidRequest(
            f"{spec!r:.80} is no constraint: pass a JSON schema, a pydantic model or another type, "
            "re.compile(...) or a list of choices"
        )
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        adapter: TypeAdapter[Any] = TypeAdapter(cast("Any", spec))
        schema = adapter.json_schema()
    except PydanticUserError as error:
        first = str(error).partition("\n")[0]
        raise InvalidRequest(f"{spec!r} has no JSON schema: {first}") from None
    return json_schema(_closed(schema), adapter.validate_json)


def _closed(schema: Any) -> Any:
    """Forbid properties that the type does not have: a model would go on inventing them."""
    if isinstance(schema, list):
        return [_closed(item) for item in cast("Sequence[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in cast("dict[str, Any]", schema).items()}
    if closed.get("type") == "object" and isinstance(closed.get("properties"), dict):
        closed.setdefault("additionalProperties", False)
    return closed


def _from_outlines(spec: Any) -> Constraint:
    from outlines.types.dsl import CFG, JsonSchema, to_regex

    if isinstance(spec, JsonSchema):
        return json_schema(json.loads(spec.schema))
    if isinstance(spec, CFG):
        raise InvalidRequest("grammars are not taken yet; use a regex or a JSON schema")
    return regex(to_regex(spec))
