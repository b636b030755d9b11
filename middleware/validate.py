"""A JSON value against a JSON schema: ``jsonschema``, with what it lacks.

It lacks limits on time, ECMAScript's regular expressions, exact ``multipleOf`` (0.07 is a multiple
of 0.01), and most formats when nothing else is installed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING, Any, cast

from ..backends.decoding.drafts import draft_of, validator_class
from ..backends.decoding.formats import FORMATS
from ..backends.decoding.patterns import Unsupported, nests_repeats, searched

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
    if "unevaluatedProperties" in str(schema):
        _refuse_slow(schema)  # there the library searches by itself, without a limit
    library: Any = validators
    keywords = {
        **base.VALIDATORS,
        "pattern": matches.pattern,
        "patternProperties": matches.pattern_properties,
        "additionalProperties": matches.additional_properties,
        "multipleOf": _multiple_of,
    }
    bounded = {name: _until(deadline, keyword) for name, keyword in keywords.items()}
    cls = library.extend(base, bounded)
    return cls(schema, registry=REGISTRY, format_checker=_formats(base, pattern_seconds))


def _until(deadline: float, keyword: Keyword) -> Keyword:
    def bounded(
        validator: Any, wanted: Any, value: Any, schema: Any
    ) -> Iterator[ValidationError]:
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
            python = searched(pattern)
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
    if isinstance(schema, list):
        for one in cast("list[Any]", schema):
            _refuse_slow(one)
    elif isinstance(schema, dict):
        given = cast("dict[str, Any]", schema)
        patterns = given.get("patternProperties")
        if isinstance(patterns, dict) and any(nests_repeats(one) for one in patterns):
            raise TimeoutError("a pattern with nested repeats beside unevaluatedProperties")
        for one in given.values():
            _refuse_slow(one)


def _formats(base: Any, seconds: float) -> Any:
    """Return a checker for our own formats, and for the library's where we have none."""
    import regex
    from jsonschema import FormatChecker

    checker = cast("Any", FormatChecker)(formats=())
    checker.checkers = dict(base.FORMAT_CHECKER.checkers)

    def matching(pattern: str) -> Callable[[Any], bool]:
        compiled = regex.compile(pattern, flags=regex.VERSION1)
        return lambda text: not isinstance(text, str) or bool(
            compiled.fullmatch(text, timeout=seconds)
        )

    for name, pattern in FORMATS.items():
        checker.checkers[name] = (_Format(name, matching(pattern)), ())
    checker.checkers["regex"] = (_is_pattern, ())
    return checker


class _Format:
    """One format: its pattern, and what a pattern cannot say."""

    def __init__(self, name: str, is_matching: Callable[[Any], bool]) -> None:
        self._name = name
        self._is_matching = is_matching

    def __call__(self, text: Any) -> bool:
        if not isinstance(text, str):
            return True
        if self._name in ("time", "date-time") and (usual := without_leap_second(text)):
            text = usual
        if not self._is_matching(text):
            return False
        return self._name != "hostname" or _is_hostname(text)


def without_leap_second(text: str) -> str | None:
    """Return a time of 23:59:60 UTC, in whatever zone, as a usual one; None when it is none."""
    import re

    found = re.search(r"([01]\d|2[0-3]):([0-5]\d):60(\.\d+)?([zZ]|([+-])(\d\d):(\d\d))$", text, re.A)
    if found is None:
        return None
    minutes = int(found[1]) * 60 + int(found[2])
    if found[5]:
        shift = int(found[6]) * 60 + int(found[7])
        minutes += -shift if found[5] == "+" else shift
    if minutes % 1440 != 1439:
        return None
    return f"{text[: found.start(2)]}{found[2]}:59{found[3] or ''}{found[4]}"


def _is_hostname(text: str) -> bool:
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
