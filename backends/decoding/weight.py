"""How hard a constraint may be to compile, told without compiling it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, cast

from ...middleware.errors import InvalidRequest, UnsupportedConstraint
from ...middleware.subschemas import all_schemas
from ...middleware.types import Constraint
from .patterns import MAX_REPEATS, TooLarge, Unsupported, check_size, repeats

MAX_WEIGHT = 5_000  # about half a second of llguidance; above it a process of its own tries first
MAX_TEXT = 200_000  # characters of a pattern, all choices, a grammar or a template
_PLAIN = 10_000  # characters of a schema that cannot be heavy, unless it has what grows
_GROWS = re.compile('"(?:allOf|pattern|patternProperties)"')
_COUNTS = re.compile(r"\{(\d+)(?:,(\d*))?\}")


def weight(constraint: Constraint) -> int:
    """Return about how many parts an automaton of the constraint has.

    Raises UnsupportedConstraint for what no limit on time would let through: too long, or counts
    of repeats that multiply into the ten thousands.
    """
    spec = constraint.spec
    size = len(spec) if isinstance(spec, str) else sum(len(text) for text in spec)
    if constraint.kind == "json_schema":
        is_plain = isinstance(spec, str) and size < _PLAIN and not _GROWS.search(spec)
        return size // 100 if is_plain else size // 100 + sum(_weights(spec))
    if size > MAX_TEXT:
        raise UnsupportedConstraint(
            f"the {constraint.kind} constraint has {size} characters; keep it <= {MAX_TEXT}"
        )
    if not isinstance(spec, str) or constraint.kind == "choice":
        return size // 10
    if constraint.kind == "regex":
        try:
            check_size(spec)
        except TooLarge as error:
            raise UnsupportedConstraint(
                f"the pattern {spec!r:.60} is too complex: {error}"
            ) from None
        except Unsupported:
            return size  # the compiler says so
        return repeats(spec)
    counts = [max(int(low), int(high or 0)) for low, high in _COUNTS.findall(spec)]
    if any(count > MAX_REPEATS for count in counts):
        raise UnsupportedConstraint(
            f"the {constraint.kind} repeats something {max(counts)} times; keep it <= {MAX_REPEATS}"
        )
    return size // 10 + sum(counts) ** (2 if len(counts) > 1 else 1) // 10


def _weights(spec: Any) -> Iterator[int]:
    from .schema import load

    try:
        schema = load(spec) if isinstance(spec, str) else None
    except InvalidRequest:
        return  # the compiler says so
    for given in all_schemas(schema):
        yield 1
        properties = given.get("properties")
        if isinstance(properties, dict):
            yield len(cast("dict[str, Any]", properties)) ** 2 // 100
        if isinstance(given.get("pattern"), str):
            yield _repeats(given["pattern"]) // 10
        for key in ("anyOf", "oneOf"):
            if isinstance(given.get(key), list):
                yield len(given[key])
        every = given.get("allOf")
        if isinstance(every, list):
            yield _product(cast("Sequence[Any]", every))


def _product(parts: Sequence[Any]) -> int:
    """Return how many alternatives an intersection has."""
    product = 1
    for part in parts:
        if isinstance(part, dict):
            options = cast("dict[str, Any]", part).get("anyOf")
            product *= len(cast("Sequence[Any]", options)) if isinstance(options, list) else 1
    return min(product, 10 * MAX_WEIGHT)


def _repeats(pattern: str) -> int:
    try:
        check_size(pattern)
        return repeats(pattern)
    except Unsupported:
        return 0  # it is refused, or left out
