"""A JSON value against a JSON schema: ``jsonschema``, with what it lacks.

It lacks limits on time, ECMAScript's regular expressions, exact ``multipleOf`` (0.07 is a multiple
of 0.01), and most formats when nothing else is installed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING, Any, cast

from ..backends.decoding.drafts import draft_of, validator_class
from ..backends.decoding.formats import FORMATS, without_leap_second
from ..backends.decoding.patterns import TooLarge, Unsupported, check_size, nests_repeats, searched
from .subschemas import all_schemas

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

Keyword = Callable[[Any, Any, Any, Any], Iterator["ValidationError"]]


def problem(value: Any, schema: Any, *, seconds: float, pattern_seconds: float) -> str | None:
    """Return what is wrong with a value, with its place, None when the schema accepts it.

    The rules are those of the schema's own draft (see ``draft_of``); formats are checked. Raises
    TimeoutError when it takes longer than ``seconds``, or one pattern longer than
    ``pattern_seconds``.
    """
    from referencing.exceptions import Unresolvable

    errors = validator(schema, seconds=seconds, pattern_seconds=pattern_seconds)
    try:
        error = next(errors.iter_errors(value), None)
    except Unresolvable as missing:
        return f"the schema's $ref {missing.ref!r:.80} leads nowhere"
    if error is None:
        return None
    place = "".join(f"/{step}" for step in error.absolute_path)
    return f"{place}: {error.message:.120}" if place else f"{error.message:.120}"


def validator(schema: Any, *, seconds: float, pattern_seconds: float) -> Any:
    """Return a validator for a schema, which has ``seconds`` from now on."""
    from jsonschema import validators
    from jsonschema_specifications import REGISTRY

    base = validator_class(draft_of(schema))
    deadline = time.monotonic() + seconds
    matches = _Matches(pattern_seconds)
    text = json.dumps(schema)
    if "unevaluatedProperties" in text:
        _refuse_slow(schema)  # there the library searches by itself, without a limit
    library: Any = validators
    keywords = {
        **base.VALIDATORS,
        "dependencies": validator_class("draft7").VALIDATORS["dependencies"],
        "pattern": matches.pattern,
        "patternProperties": matches.pattern_properties,
        "additionalProperties": matches.additional_properties,
        "multipleOf": _multiple_of,
    }
    bounded = {name: _until(deadline, keyword) for name, keyword in keywords.items()}
    cls = library.extend(base, bounded)
    return cls(schema, registry=REGISTRY, format_checker=_formats(base, text, pattern_seconds))


def _until(deadline: float, keyword: Keyword) -> Keyword:
    def bounded(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
        if time.monotonic() > deadline:
            raise TimeoutError("validating takes too long")
        yield from keyword(validator, wanted, value, schema) or ()

    return bounded


class _Matches:
    """The keywords with patterns, each search limited in time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def is_found(self, pattern: str, text: str) -> bool:
        import regex

        try:
            check_size(pattern)
            python = searched(pattern)
        except TooLarge as error:
            raise TimeoutError(f"the pattern {pattern!r:.60} has {error}") from error
        except Unsupported:
            python = pattern
        found = regex.search(python, text, flags=regex.VERSION1, timeout=self._seconds)
        return found is not None

    def pattern(self, _: Any, wanted: str, value: Any, __: Any) -> Iterator[ValidationError]:
        from jsonschema.exceptions import ValidationError

        if isinstance(value, str) and not self.is_found(wanted, value):
            yield ValidationError(f"{value!r:.60} does not match {wanted!r:.60}")

    def pattern_properties(
        self, validator: Any, wanted: Mapping[str, Any], value: Any, _: Any
    ) -> Iterator[ValidationError]:
        if not isinstance(value, dict):
            return
        given = cast("dict[str, Any]", value)
        for pattern, schema in wanted.items():
            for name, one in given.items():
                if self.is_found(pattern, name):
                    yield from validator.descend(one, schema, path=name, schema_path=pattern)

    def additional_properties(
        self, validator: Any, wanted: Any, value: Any, schema: Any
    ) -> Iterator[ValidationError]:
        from jsonschema.exceptions import ValidationError

        if not isinstance(value, dict):
            return
        for name, one in cast("dict[str, Any]", value).items():
            if name in schema.get("properties", {}):
                continue
            if any(self.is_found(pattern, name) for pattern in schema.get("patternProperties", {})):
                continue
            if wanted is False:
                yield ValidationError(f"the property {name!r:.60} is not allowed")
            elif wanted is not True:
                yield from validator.descend(one, wanted, path=name)


def _multiple_of(_: Any, wanted: Any, value: Any, __: Any) -> Iterator[ValidationError]:
    from jsonschema.exceptions import ValidationError

    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return
    if isinstance(value, float) and not isfinite(value):
        is_multiple = False
    else:  # exact: the value is the number as it was written
        is_multiple = Fraction(repr(value)) % Fraction(repr(wanted)) == 0
    if not is_multiple:
        yield ValidationError(f"{value!r:.40} is not a multiple of {wanted!r:.40}")


def _refuse_slow(schema: Any) -> None:
    for one in all_schemas(schema):
        patterns = one.get("patternProperties")  # anything, below a keyword that nobody knows
        if isinstance(patterns, dict) and any(map(nests_repeats, cast("Any", patterns))):
            raise TimeoutError("a pattern with nested repeats beside unevaluatedProperties")


def _formats(base: Any, text: str, seconds: float) -> Any:
    """Return a checker: ours for what a schema's text mentions, the library's for the rest."""
    import regex
    from jsonschema import FormatChecker

    checker = cast("Any", FormatChecker)(formats=())
    checker.checkers = dict(base.FORMAT_CHECKER.checkers)

    def matching(name: str) -> Callable[[Any], bool]:
        compiled = regex.compile(FORMATS[name], flags=regex.VERSION1)
        read = without_leap_second if "time" in name else str
        return lambda text: (
            not isinstance(text, str) or bool(compiled.fullmatch(read(text), timeout=seconds))
        )

    wanted = {name for name in FORMATS if f'"{name}"' in text}
    for name in wanted:
        checker.checkers[name] = (matching(name), ())
    if "hostname" in wanted:
        is_shaped = checker.checkers["hostname"][0]

        def is_hostname(text: Any) -> bool:
            return bool(is_shaped(text)) and _is_hostname(text)

        checker.checkers["hostname"] = (is_hostname, ())
    checker.checkers["regex"] = (_is_pattern, ())
    return checker


def _is_hostname(text: Any) -> bool:
    if not isinstance(text, str):
        return True
    if len(text) > 253:
        return False
    for label in text.lower().split("."):
        if label[2:4] == "--":
            if not label.startswith("xn--"):
                return False
            try:
                decoded = label[4:].encode().decode("punycode")
            except UnicodeError:
                return False
            if not decoded or decoded.isascii() or not _is_label(decoded):
                return False
    return True


def _is_label(label: str) -> bool:
    """Whether an international label is one, as far as the ``idna`` package can tell."""
    try:
        import idna
    except ImportError:
        return True
    try:
        idna.ulabel(idna.alabel(label))
    except idna.IDNAError:
        return False
    return True


def _is_pattern(text: Any) -> bool:
    import regex

    if not isinstance(text, str):
        return True
    try:
        regex.compile(searched(text), flags=regex.VERSION1)
    except (Unsupported, regex.error):
        return False
    return True
