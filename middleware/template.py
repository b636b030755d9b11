r"""Templates: fixed text, and named fields that the model writes.

    headrace.template("Name: {name}\nAge: {age:int}\nMood: {mood}\n", mood=["happy", "sad"])

The fixed text costs no forward passes: it is forced. ``response.parsed`` is a dict of the fields.
"""

from __future__ import annotations

import json
import string
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from .check import violation
from .constraints import constraint
from .errors import InvalidRequest
from .explain import explain
from .matching import Field, Live, Part
from .types import Constraint

MAX_FIELDS = 100

# Bounded: small models write digits for ever.
_INT = r"-?(?:0|[1-9][0-9]{0,17})"
_FLOAT = rf"{_INT}(?:\.[0-9]{{1,24}})?(?:[eE][+-]?[0-9]{{1,3}})?"
_SCALARS: dict[str, tuple[str, Any]] = {
    "int": ("regex", _INT),
    "float": ("regex", _FLOAT),
    "bool": ("choice", ["true", "false"]),
}
_WORDS = {"str": str, "int": int, "float": float, "bool": bool}
_NUMBER = frozenset("0123456789.eE+-")


@dataclass(frozen=True)
class Template:
    """The parts of a template, and what they make of a text."""

    parts: tuple[Part, ...]

    @classmethod
    def from_spec(cls, spec: str) -> Template:
        """Read the ``spec`` of a template constraint. Raises InvalidRequest."""
        try:
            parts: list[Any] = json.loads(spec)
            if not isinstance(parts, list) or not parts:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError("not a list of parts")
            if sum(not isinstance(part, str) for part in parts) > MAX_FIELDS:
                raise TypeError(f"more than {MAX_FIELDS} fields")
            if len(parts) > 2 * MAX_FIELDS + 1:
                raise TypeError("texts that are not joined")
            return cls(
                tuple(
                    part
                    if isinstance(part, str)
                    else Field(
                        part["name"],
                        part["kind"],
                        part.get("spec"),
                        part.get("until"),
                        part.get("as"),
                    )
                    for part in parts
                )
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise InvalidRequest(f"no template: {spec!r:.80} ({error!r:.60})") from None

    @cached_property
    def spec(self) -> str:
        """The parts as JSON text, equal for equal templates."""
        parts = [part if isinstance(part, str) else part.to_dict() for part in self.parts]
        return json.dumps(parts, ensure_ascii=False, separators=(",", ":"))

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields in their order."""
        return tuple(part for part in self.parts if isinstance(part, Field))

    def split(self, text: str) -> dict[str, str]:
        """Return each field's text: the first way, fields as long as they can be, that fits all.

        Raises ValueError with the place where the text leaves the template, TimeoutError when a
        pattern takes for ever.
        """
        live = Live(self.parts, text)
        found = live.path()
        if found is None:
            raise ValueError(self._complaint(text, live.furthest))
        return {
            part.name: text[start:end]
            for part, (start, end) in zip(self.parts, found, strict=True)
            if isinstance(part, Field)
        }

    def parse(self, text: str) -> dict[str, Any]:
        """Return each field's value. Raises ValueError; the message begins with the field."""
        values: dict[str, Any] = {}
        texts = self.split(text)
        for one in self.fields:
            try:
                values[one.name] = one.value(texts[one.name])
            except Exception as error:  # a type's own validators raise anything
                raise ValueError(explain(error, f"/{one.name}", texts[one.name])) from error
        return values

    def violation(self, text: str) -> str | None:
        """Return what is wrong with the text in a few words, None when it fits."""
        try:
            texts = self.split(text)
        except ValueError as error:
            return str(error)
        for one in self.fields:
            if one.kind == "json_schema":
                whole = Constraint("json_schema", one.spec)
                if problem := violation(texts[one.name], whole):
                    return f"/{one.name}{'' if problem.startswith('/') else ': '}{problem}"
        return None

    def _complaint(self, text: str, furthest: tuple[int, int]) -> str:
        part, at = furthest
        if part >= len(self.parts):
            return f"{text[at:]!r:.40} is too much after the template's end"
        wanted = self.parts[part]
        if isinstance(wanted, str):
            return f"{wanted!r:.60} should stand at character {at}, not {text[at:]!r:.40}"
        what = {
            "regex": f"full match of {wanted.spec!r:.60}",
            "choice": f"one of {wanted.spec!r:.60}",
            "json_schema": "JSON",
        }
        return (
            f"/{wanted.name}: no {what.get(wanted.kind, wanted.kind)} at character {at}, but "
            f"{text[at:]!r:.40}"
        )


def template(text: str, /, **fields: Any) -> Constraint:
    r"""Return the constraint that the output is this text with its fields filled in.

    ``{name}`` is a field, ``{{`` and ``}}`` are braces. What a field holds is said in the text
    (``{age:int}``; also float, bool and str, or ``{mood:happy|sad}``) or by keyword, as anything
    that ``headrace.constraint`` takes but a grammar or template; ``int`` (of at most 18 digits),
    ``float`` and ``bool`` are written plainly, other types as JSON. A field without a word, or of
    ``str``, is free text: it ends where the text behind it begins (up to its first line breaks),
    and at the end of the template where the model ends it. Two fields need a text between them.
    Raises InvalidRequest.

    >>> made = template("Age: {age:int}\nMood: {mood}", mood=["happy", "sad"])
    >>> made.parse("Age: 42\nMood: sad")
    {'age': 42, 'mood': 'sad'}
    """
    parts = _parts(text, fields)
    made = Template(tuple(parts))
    return Constraint("template", made.spec, made.parse)


def _parts(text: str, given: Mapping[str, Any]) -> list[Part]:
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidRequest(f"a template is a text, got {text!r:.60}")
    pieces = _pieces(text)
    names = [name for _, name, _ in pieces if name is not None]
    if unknown := sorted(set(given) - set(names)):
        raise InvalidRequest(f"the template has no field {{{unknown[0]}}}: {text!r:.80}")
    if not 1 <= len(names) <= MAX_FIELDS:
        raise InvalidRequest(f"a template has 1 to {MAX_FIELDS} fields, got {len(names)}")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InvalidRequest(f"the field {{{twice}}} is there twice; give each its own name")
    parts: list[Part] = []
    for at, (fixed, name, word) in enumerate(pieces):
        if fixed:
            parts.append(fixed)
        if name is None:
            continue
        if parts and isinstance(parts[-1], Field):
            raise InvalidRequest(
                f"put a text between {{{parts[-1].name}}} and {{{name}}}: where the first ends "
                "could not be told"
            )
        behind = pieces[at + 1][0] if at + 1 < len(pieces) else ""
        parts.append(_field(name, word, given, behind))
    return parts


def _pieces(text: str) -> list[tuple[str, str | None, str]]:
    """Return fixed texts, each with the name and the word of the field behind it."""
    try:
        found = [*string.Formatter().parse(text)]
    except ValueError as error:
        raise InvalidRequest(
            f"the template {text!r:.60} cannot be read: {error}; a brace itself is {{{{ or }}}}"
        ) from None
    pieces: list[tuple[str, str | None, str]] = []
    fixed = ""
    for before, name, word, conversion in found:
        fixed += before
        if name is None:
            continue
        if not name.isidentifier() or conversion:
            raise InvalidRequest(
                f"a field's name is one word, as in {{name}}, got {{{name}}}; a brace itself is "
                "{{ or }}"
            )
        pieces.append((fixed, name, word or ""))
        fixed = ""
    return [*pieces, (fixed, None, "")] if fixed else pieces


def _field(name: str, word: str, given: Mapping[str, Any], behind: str) -> Field:
    if word and name in given:
        raise InvalidRequest(f"{{{name}:{word}}} is said twice: leave :{word} or {name}= out")
    if word and word not in _WORDS and "|" not in word:
        raise InvalidRequest(
            f"{{{name}:{word}}} is none of {', '.join(_WORDS)} and no choice|of|texts; say it by "
            f"keyword, {name}=..."
        )
    what = _WORDS.get(word, word.split("|")) if word else given.get(name, str)
    if what is str:
        return Field(name, "text", until=_until(behind))
    if isinstance(what, type) and what in (int, float, bool):
        scalar = what.__name__
        kind, spec = _SCALARS[scalar]
        return Field(name, kind, spec, scalar=scalar)
    inner = constraint(what)
    if inner.kind in ("grammar", "template"):
        raise InvalidRequest(f"the field {{{name}}} cannot be a {inner.kind}; write its text here")
    if inner.kind == "json_schema" and behind[:1] in _NUMBER and _may_be_number(inner):
        raise InvalidRequest(
            f"{{{name}}} may be a number, and {behind[0]!r} right behind it would be part of it; "
            "put a space there"
        )
    spec = [*inner.spec] if inner.kind == "choice" else inner.spec
    return Field(name, inner.kind, spec, parse=None if inner.parse is str else inner.parse)


def _until(behind: str) -> str | None:
    """Return the text behind a field as far as its first run of line breaks."""
    at = behind.find("\n")
    if at < 0:
        return behind or None
    rest = behind[at:]
    return behind[: len(behind) - len(rest.lstrip("\n"))]


def _may_be_number(inner: Constraint) -> bool:
    schema = cast("dict[str, Any]", json.loads(cast("str", inner.spec)))
    types = schema.get("type", "number")
    return not {"integer", "number"}.isdisjoint([types] if isinstance(types, str) else types)
