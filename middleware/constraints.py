"""From what people have at hand to a Constraint."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from .check import dangling_reference, strict_json
from .errors import HeadraceError, InvalidRequest, UnsupportedConstraint
from .types import Constraint


def constraint(spec: Any) -> Constraint:
    r"""Return what the output must look like as a Constraint.

    ``spec`` is a JSON schema (a mapping, or the ``Path`` of a .json file), a pydantic model, a
    dataclass, a TypedDict, a NamedTuple, a union or any other type that pydantic knows, a function
    (its arguments as an object), a compiled regular expression, a sequence of choices, a
    ``Literal`` or ``Enum`` of strings, the ``Path`` of a .lark or .gbnf grammar, one of Outlines'
    output types or DSL terms, or a Constraint (of ``headrace.grammar`` or ``headrace.template``).
    A type also parses: ``response.parsed`` is an instance of it, for a function a dict of its
    arguments. Properties are written in the schema's order, so put reasoning first. Raises
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
        case Path() if spec.suffix in (".lark", ".gbnf"):
            from .grammars import grammar

            return grammar(spec)
        case Path():
            return schema_file(spec)
        case re.Pattern():
            return _from_pattern(spec)  # pyright: ignore[reportUnknownArgumentType]
        case str() | bytes():
            raise InvalidRequest(
                f"a constraint cannot be the bare text {spec!r:.60}: pass re.compile(...) for a "
                "regular expression, a list for choices, a mapping or Path for a JSON schema"
            )
        case Sequence():
            return choice([*spec])
        case _ if type(spec).__module__.split(".")[0] == "outlines":
            from .outlines_types import from_outlines

            return from_outlines(spec)
        case _:
            from .python_types import from_type

            return from_type(spec)


def choice(options: Sequence[Any]) -> Constraint:
    """Return the constraint that the output is one of these texts."""
    if not options or not all(isinstance(option, str) and option for option in options):
        raise InvalidRequest(f"choices are one or more non-empty texts, got {list(options)!r:.80}")
    return Constraint("choice", tuple(dict.fromkeys(options)), str)


def regex(pattern: str) -> Constraint:
    """Return the constraint that the whole output matches this pattern."""
    import regex as engine  # knows \p{L}, which re does not

    from ..backends.decoding.patterns import Unsupported, check_size

    try:
        check_size(pattern)
        engine.compile(pattern)
    except Unsupported as error:
        raise InvalidRequest(f"{pattern!r:.80} cannot be a constraint: {error}") from None
    except engine.error as error:
        raise InvalidRequest(f"{pattern!r:.80} is no regular expression: {error}") from None
    except RecursionError:
        raise UnsupportedConstraint(
            f"{pattern!r:.60} has too many groups in one another; simplify it"
        ) from None
    if not pattern:
        raise InvalidRequest("the regular expression is empty; nothing could be written")
    return Constraint("regex", pattern, str)


def json_schema(schema: Mapping[str, Any], parse: Callable[[str], Any] = strict_json) -> Constraint:
    """Return the constraint that the output is a JSON value which this schema accepts."""
    from ..backends.decoding.drafts import draft_of

    try:
        text = json.dumps(schema, ensure_ascii=False, allow_nan=False)
        draft_of(plain := json.loads(text))
    except HeadraceError:
        raise
    except (TypeError, ValueError) as error:
        raise InvalidRequest(f"the schema is no JSON: {error}") from None
    except RecursionError:
        raise InvalidRequest("the schema is nested too deeply to be read") from None
    if bad := dangling_reference(plain):
        raise InvalidRequest(
            f"the schema's $ref {bad!r:.80} leads nowhere in the schema; put what it means under "
            "$defs (nothing is fetched)"
        )
    return Constraint("json_schema", text, parse)


def _from_pattern(pattern: re.Pattern[Any]) -> Constraint:
    """Take the flags of a compiled pattern along."""
    if isinstance(pattern.pattern, bytes):
        raise InvalidRequest("the pattern is of bytes; compile one of text")
    if pattern.flags & re.A and re.search(r"\\[dwsDWSbB]", pattern.pattern):
        raise InvalidRequest(
            f"{pattern.pattern!r:.60} is compiled with re.ASCII, which engines do not know; write "
            "[0-9] for \\d, [A-Za-z0-9_] for \\w, without the flag"
        )
    flags = "".join(
        letter
        for letter, flag in (("i", re.I), ("m", re.M), ("s", re.S), ("x", re.X))
        if pattern.flags & flag
    )
    return regex(f"(?{flags}){pattern.pattern}" if flags else pattern.pattern)


def schema_file(path: Path) -> Constraint:
    """Return the constraint of a JSON schema's file. Raises InvalidRequest."""
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
