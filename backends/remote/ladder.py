"""The ways to ask for a constraint, the surest first: native, rewritten, JSON mode, words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, cast

from ...middleware.errors import UnsupportedConstraint
from ...middleware.types import Constraint, Enforcement
from ...middleware.verbatim import members
from . import extract
from .coverage import residual
from .dialects import Dialect, Field, value_of
from .fits import fits, strict_json
from .gbnf import from_regex
from .nulls import pruned
from .patterns import of_template
from .strict import ANSWER, is_wrapped, relaxed, strict

Read = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class Rung:
    """One way to ask.

    ``fields`` go into the request's body; ``in_words``: the constraint is also said to the model.
    ``read`` finds the answer in the finished text, None when it is not there; a rung without one
    streams as the text comes. ``native`` is the field, None where the engine is only asked.
    """

    fields: dict[str, Any]
    enforced: Enforcement
    read: Read | None = None
    in_words: bool = False
    native: Field | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        """What the report and the memory of refusals call it."""
        return self.enforced.by


def native_rungs(
    dialect: Dialect, one: Field, constraint: Constraint, *, is_verified: bool
) -> Iterator[Rung]:
    """Yield the rungs of one field of the server: as it is, then rewritten.

    ``is_verified``: a sentinel has shown that the field holds. Nothing is "full" without.
    """
    value = value_of(constraint)
    by = f"{dialect.name} {one.name}"
    left = _left(dialect, constraint) if is_verified else ("/",)
    level: Literal["partial", "full"] = "partial" if left else "full"
    suffix = "" if is_verified else " (unverified)"
    try:
        fields = one.write(value)
    except UnsupportedConstraint:
        return
    yield Rung(fields, Enforcement(level, left, by + suffix), one.read, native=one)
    if constraint.kind != "json_schema":
        return
    try:
        rewritten = strict(value) if dialect.is_strict else relaxed(value, dialect.enforced)
    except UnsupportedConstraint:
        return
    if rewritten == value:
        return
    enforced = Enforcement(level, left, f"{by}, rewritten{suffix}")
    read = partial(_from_strict, schema=value) if dialect.is_strict else None
    yield Rung(one.write(rewritten), enforced, read, native=one)


def asking_rungs(dialect: Dialect, constraint: Constraint) -> Iterator[Rung]:
    """Yield the rungs that only ask: JSON mode, then words alone."""
    read = reader(constraint)
    if constraint.kind == "json_schema" and dialect.json_mode and _may_be_object(constraint):
        enforced = Enforcement("none", by="json_object and words")
        yield Rung(dict(dialect.json_mode), enforced, read, in_words=True)
    yield Rung({}, Enforcement("none", by="words"), read, in_words=True)


def _left(dialect: Dialect, constraint: Constraint) -> tuple[str, ...]:
    """Return what of the constraint the server is not known to enforce."""
    if constraint.kind == "json_schema":
        return residual(value_of(constraint), dialect.enforced)
    if constraint.kind == "choice":
        return ()
    if constraint.kind == "grammar":
        return ("/",)  # every engine reads another dialect of Lark
    spec = cast("str", constraint.spec)
    try:
        pattern = spec if constraint.kind == "regex" else of_template(spec)
        from_regex(pattern)
    except UnsupportedConstraint:
        return ("/",)
    # xgrammar's dot takes line breaks, and a pattern inside a JSON string is on no list.
    is_plain = "." not in pattern.replace(r"\.", "") and dialect.name not in ("openai", "ollama")
    return () if is_plain else ("/",)


def _may_be_object(constraint: Constraint) -> bool:
    kinds: Any = value_of(constraint).get("type", "object")
    return kinds == "object" or "object" in kinds


def _from_strict(text: str, schema: dict[str, Any]) -> str | None:
    if is_wrapped(schema):
        try:
            _ = strict_json(text)[ANSWER]
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        text = members(text)[ANSWER]
    return pruned(text, schema)


def reader(constraint: Constraint) -> Read:
    """Return what finds the answer in a free text."""
    if constraint.kind == "json_schema":
        schema = value_of(constraint)
        return partial(extract.json_text, fits=lambda value: fits(value, schema))
    if constraint.kind == "choice":
        return partial(extract.choice_text, options=cast("tuple[str, ...]", constraint.spec))
    if constraint.kind == "regex":
        return partial(extract.regex_text, pattern=cast("str", constraint.spec))
    return extract.fenced_text
