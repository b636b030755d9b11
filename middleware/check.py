"""Does a finished text keep its constraint? Bounded in time, whatever the pattern or schema."""

from __future__ import annotations

import json
import re
from typing import Any, cast

from .subschemas import all_schemas
from .types import Constraint

PATTERN_SECONDS = 2.0
SCHEMA_SECONDS = 5.0


def violation(text: str, constraint: Constraint) -> str | None:
    """Return what is wrong with the text in a few words, None when it keeps the constraint.

    A JSON text is validated against the original schema, by the rules of its own draft, formats
    included. Raises TimeoutError when that takes longer than ``SCHEMA_SECONDS``, or one pattern
    longer than ``PATTERN_SECONDS``.
    """
    spec = constraint.spec
    if constraint.kind == "choice":
        return None if text in spec else f"not one of {list(spec)!r:.80}"
    pattern = cast("str", spec)
    if constraint.kind == "regex":
        return None if full_match(pattern, text) else f"no full match of {pattern!r:.80}"
    if constraint.kind == "grammar":
        from .grammars import grammar_violation

        return grammar_violation(pattern, text)
    if constraint.kind == "template":
        from .template import Template

        return Template.from_spec(pattern).violation(text)
    return _json_violation(text, json.loads(pattern))


def full_match(pattern: str, text: str) -> bool:
    """Whether the whole text matches; a pattern that takes for ever raises TimeoutError."""
    import regex

    from ..backends.decoding.patterns import TooLarge, Unsupported, check_size

    try:
        check_size(pattern)  # counts are written out: some would take gigabytes
    except TooLarge as error:
        raise TimeoutError(f"the pattern has {error}") from error
    except Unsupported:
        pass  # ``regex`` has the last word
    return regex.fullmatch(pattern, text, timeout=PATTERN_SECONDS) is not None


def strict_json(text: str) -> Any:
    """Return the value of a JSON text.

    Raises ValueError for NaN and Infinity, which are none, and for a whole number of more digits
    than Python reads (4,300 by default).
    """

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is no JSON")

    def whole(digits: str) -> int:
        try:
            return int(digits)
        except ValueError:
            raise ValueError(f"a number of {len(digits)} digits is too long to be read") from None

    return json.loads(text, parse_constant=refuse, parse_int=whole)


def _json_violation(text: str, schema: Any) -> str | None:
    from .validate import problem

    try:
        value = strict_json(text)
    except ValueError as error:
        return f"no JSON ({error})"
    return problem(value, schema, seconds=SCHEMA_SECONDS, pattern_seconds=PATTERN_SECONDS)


def dangling_reference(schema: Any) -> str | None:
    """Return the first ``$ref`` that leads nowhere in the schema, None when all lead somewhere.

    Only references into the schema itself lead anywhere: nothing is ever fetched.
    """
    targets = (one.get("$ref") for one in all_schemas(schema))
    bad = (one for one in targets if isinstance(one, str) and not _leads_somewhere(one, schema))
    return next(bad, None)


def _leads_somewhere(target: str, schema: Any) -> bool:
    base, _, fragment = target.partition("#")
    if base:
        return any(base in map(one.get, ("$id", "id")) for one in all_schemas(schema))
    if fragment and not fragment.startswith("/"):
        return any(
            fragment in map(one.get, ("$anchor", "$dynamicAnchor"))
            or f"#{fragment}" in map(one.get, ("$id", "id"))  # before 2019-09
            for one in all_schemas(schema)
        )
    root: Any = schema
    for step in fragment.split("/")[1:]:
        name = re.sub("%25", "%", step.replace("~1", "/").replace("~0", "~"))
        try:
            root = cast("Any", root[name] if isinstance(root, dict) else root[int(name)])
        except (KeyError, IndexError, TypeError, ValueError):
            return False
    return True
