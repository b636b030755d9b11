"""JSON schemas, made safe for automata."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ...middleware.errors import InvalidRequest, UnsupportedConstraint
from ...middleware.subschemas import all_schemas
from .drafts import draft_of, is_known
from .finite import without_endless
from .keywords import Schema
from .lower import MAX_DEPTH, Lowering, Relax

MAX_CHARACTERS = 4_000_000


@dataclass(frozen=True)
class Prepared:
    """A schema as automata read it.

    ``residual`` are JSON pointers of keywords that ``schema`` leaves out; ``patterns`` the patterns
    that it has, one at a time.
    """

    schema: Schema
    residual: tuple[str, ...]
    patterns: frozenset[str]
    places: Mapping[str, str]

    def place(self, pointer: str) -> str:
        """Return where something of ``schema`` stands in the caller's own schema."""
        found = re.match(r"/\$defs/([^/]+)", pointer)
        if found is None or found[1] not in self.places:
            return pointer
        return self.places[found[1]] + pointer[found.end() :] or "/"


def load(spec: str) -> Schema:
    """Return the schema of a JSON text.

    Raises InvalidRequest when the text is no JSON schema, UnsupportedConstraint when it is nested
    deeper than ``MAX_DEPTH`` or longer than ``MAX_CHARACTERS``.
    """
    if len(spec) > MAX_CHARACTERS:
        raise UnsupportedConstraint(
            f"the JSON schema has {len(spec)} characters; keep it <= {MAX_CHARACTERS}"
        )
    try:
        schema: Any = json.loads(spec, parse_constant=_refuse)
    except RecursionError as error:
        raise _too_deep() from error
    except ValueError as error:
        raise InvalidRequest(f"the JSON schema is not JSON ({error}): {spec!r:.80}") from error
    if not isinstance(schema, (dict, bool)):
        raise InvalidRequest(f"a JSON schema is an object, got {spec!r:.80}")
    if not _is_shallow(schema):
        raise _too_deep()
    return cast("Schema", schema)


def prepare(spec: str) -> dict[str, Any]:
    """Return the schema of a JSON text as automata read it; see ``lowered``."""
    schema = lowered(spec).schema
    return {} if schema is True else cast("dict[str, Any]", schema)


def lowered(spec: str, relax: Relax | None = None) -> Prepared:
    """Return the schema of a JSON text as automata read it, and what it leaves out.

    ``relax`` says what the automaton has refused before. Raises InvalidRequest when the text is no
    JSON schema or nothing finite fits it, UnsupportedConstraint when it is too deep or too large.
    """
    schema = load(spec)
    lowering = Lowering(draft_of(schema), relax or Relax())
    if not is_known(schema):
        lowering.leave("", "$schema")
    try:
        low = without_endless(lowering(schema))
    except RecursionError:
        raise _too_deep() from None
    if low is False:
        raise InvalidRequest(f"no finite value fits the JSON schema {spec!r:.80}")
    return Prepared(
        low, tuple(lowering.residual), frozenset(lowering.patterns), dict(lowering.places)
    )


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _too_deep() -> UnsupportedConstraint:
    return UnsupportedConstraint(
        f"the JSON schema is nested deeper than {MAX_DEPTH} levels; move parts of it into $defs"
    )


def _is_shallow(schema: Any) -> bool:
    level: list[Any] = [schema]
    for _ in range(4 * MAX_DEPTH):  # a schema has at most some levels of JSON
        level = [
            inner
            for one in level
            for inner in (
                cast("dict[str, Any]", one).values()
                if isinstance(one, dict)
                else cast("Sequence[Any]", one)
                if isinstance(one, list)
                else ()
            )
        ]
        if not level:
            return True
    return False


def has_open_names(schema: Any) -> bool:
    """Whether an object of a lowered schema lists names and also takes others."""
    lists = {"properties", "patternProperties", "required"}
    return any(
        one.keys() & lists and one.get("additionalProperties") is not False
        for one in all_schemas(schema)
    )


def needs_escapes(schema: Any) -> bool:
    """Whether a lowered schema has a value or name that JSON can only write by its code point."""
    return re.search(r"(?<!\\)(?:\\\\)*\\u00[01]|\x7f", json.dumps(schema)) is not None
