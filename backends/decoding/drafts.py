"""Which draft a JSON schema is written in, and whether it is one at all.

The metaschemas' rules as far as they concern what a keyword's value may be, about fifty times
faster than validating against them. A repeated value in ``enum`` is forgiven.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from ...middleware.errors import InvalidRequest, UnsupportedConstraint

DRAFTS = ("draft4", "draft6", "draft7", "2019-09", "2020-12")
KINDS = ("null", "boolean", "integer", "number", "string", "array", "object")
_NAMES = {
    "http://json-schema.org/draft-04/schema": "draft4",
    "http://json-schema.org/draft-06/schema": "draft6",
    "http://json-schema.org/draft-07/schema": "draft7",
    "https://json-schema.org/draft/2019-09/schema": "2019-09",
    "https://json-schema.org/draft/2020-12/schema": "2020-12",
}


def draft_of(schema: dict[str, Any] | bool) -> str:
    """Return the draft of a schema: one of ``DRAFTS``.

    It is what ``$schema`` names. Without one it is the latest in which the schema is valid: a list
    of ``items`` means draft 7, a boolean ``exclusiveMinimum`` draft 4, all else 2020-12. Raises
    InvalidRequest when the schema is none, with the place, and UnsupportedConstraint for a draft
    before 4.
    """
    named = schema.get("$schema") if isinstance(schema, dict) else None
    name = str(named).replace("https://json-schema.org/draft-", "http://json-schema.org/draft-")
    draft = _NAMES.get(name.removesuffix("#"))
    if draft is None and name.startswith("http://json-schema.org/draft-0"):
        raise UnsupportedConstraint(f"the draft {name!r:.80} is older than Draft 4; translate it")
    signs: set[str] = set()
    _check(schema, "", signs)
    if draft is None:
        draft = "draft4" if "exclusive" in signs else "draft7" if "items" in signs else "2020-12"
    if "exclusive" in signs and draft != "draft4":
        raise _wrong("exclusiveMinimum or exclusiveMaximum", "a number", True, "its place")
    if "items" in signs and draft == "2020-12":
        raise _wrong("items", "a schema (prefixItems takes a list)", [], "its place")
    return draft


def is_known(schema: dict[str, Any] | bool) -> bool:
    """Whether ``$schema``, if there is one, names a draft; else words may mean something else."""
    named = schema.get("$schema") if isinstance(schema, dict) else None
    name = str(named).replace("https:", "http:").removesuffix("#")
    known = {known.replace("https:", "http:") for known in _NAMES}
    return named is None or name in known or name == "http://json-schema.org/schema"


def unknown_keywords(schema: Any, pointer: str = "") -> Iterator[str]:
    """Yield JSON pointers of what is no keyword of any draft: misspelt ones, or other tools'."""
    if not isinstance(schema, dict):
        return
    for keyword, value in cast("dict[str, Any]", schema).items():
        place = f"{pointer}/{keyword}"
        if keyword in _MAPS or keyword == "dependencies":
            for name, one in cast("Mapping[str, Any]", value).items():
                yield from unknown_keywords(one, f"{place}/{name}")
        elif isinstance(value, list) and keyword in (*_LISTS, "items"):
            for at, one in enumerate(cast("Sequence[Any]", value)):
                yield from unknown_keywords(one, f"{place}/{at}")
        elif keyword in _ONE or keyword == "items":
            yield from unknown_keywords(value, place)
        elif keyword not in _RULES and keyword not in _OTHERS and not keyword.startswith("x-"):
            yield place


def validator_class(draft: str) -> Any:
    """Return the validator of a draft, from ``jsonschema``."""
    import jsonschema

    return {
        "draft4": jsonschema.Draft4Validator,
        "draft6": jsonschema.Draft6Validator,
        "draft7": jsonschema.Draft7Validator,
        "2019-09": jsonschema.Draft201909Validator,
        "2020-12": jsonschema.Draft202012Validator,
    }[draft]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == value // 1


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(_is_text(one) for one in cast("Sequence[Any]", value))


def _is_type(value: Any) -> bool:
    kinds = cast("Sequence[Any]", value if isinstance(value, list) else [value])
    return bool(kinds) and all(isinstance(kind, str) and kind in KINDS for kind in kinds)


_Rule = tuple[Callable[[Any], bool], str]
_TEXT: _Rule = (_is_text, "a text")
_COUNT: _Rule = (_is_count, "a whole number, 0 or more")
_NUMBER: _Rule = (_is_number, "a number")
_LIMIT: _Rule = (lambda value: _is_number(value) or isinstance(value, bool), "a number")
_RULES: dict[str, _Rule] = {
    "type": (_is_type, f"one or more of {', '.join(KINDS)}"),
    "enum": (lambda value: isinstance(value, list), "a list"),
    "required": (_is_texts, "a list of names"),
    "multipleOf": (lambda value: _is_number(value) and value > 0, "a number above 0"),
    "uniqueItems": (lambda value: isinstance(value, bool), "true or false"),
    **dict.fromkeys(("$ref", "$dynamicRef", "$recursiveRef", "pattern", "format"), _TEXT),
    **dict.fromkeys(("minimum", "maximum"), _NUMBER),
    **dict.fromkeys(("exclusiveMinimum", "exclusiveMaximum"), _LIMIT),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _COUNT),
    **dict.fromkeys(("minProperties", "maxProperties", "minContains", "maxContains"), _COUNT),
}
_ONE = frozenset(
    {"not", "if", "then", "else", "contains", "propertyNames", "additionalProperties"}
    | {"additionalItems", "unevaluatedItems", "unevaluatedProperties"}
)
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_OTHERS = frozenset(
    {"const", "dependentRequired", "$schema", "$id", "id", "$anchor", "$comment", "$vocabulary"}
    | {"$dynamicAnchor", "$recursiveAnchor", "title", "description", "default", "examples"}
    | {"deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType"}
    | {"contentSchema"}
)
_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})


def _check(schema: Any, pointer: str, signs: set[str]) -> None:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        raise InvalidRequest(
            f"not a JSON schema: an object or a boolean is, not {schema!r:.60} at {pointer or '/'}"
        )
    for keyword, value in cast("dict[str, Any]", schema).items():
        rule = _RULES.get(keyword)
        if rule is not None:
            if not rule[0](value):
                raise _wrong(keyword, rule[1], value, pointer)
            if keyword.startswith("exclusive") and isinstance(value, bool):
                signs.add("exclusive")
        elif keyword in _ONE:
            _check(value, f"{pointer}/{keyword}", signs)
        elif keyword in _LISTS or (keyword == "items" and isinstance(value, list)):
            if keyword == "items":
                signs.add("items")
            elif not isinstance(value, list) or not value:
                raise _wrong(keyword, "a list of schemas", value, pointer)
            for at, one in enumerate(cast("Sequence[Any]", value)):
                _check(one, f"{pointer}/{keyword}/{at}", signs)
        elif keyword == "items":
            _check(value, f"{pointer}/items", signs)
        elif keyword in _MAPS:
            if not isinstance(value, dict):
                raise _wrong(keyword, "an object of schemas", value, pointer)
            for name, one in cast("dict[str, Any]", value).items():
                _check(one, f"{pointer}/{keyword}/{name}", signs)
        elif keyword in ("dependencies", "dependentRequired"):
            _check_dependencies(keyword, value, pointer, signs)


def _check_dependencies(keyword: str, value: Any, pointer: str, signs: set[str]) -> None:
    if not isinstance(value, Mapping):
        raise _wrong(keyword, "an object", value, pointer)
    for name, needs in cast("Mapping[str, Any]", value).items():
        if keyword == "dependencies" and not isinstance(needs, list):
            _check(needs, f"{pointer}/{keyword}/{name}", signs)
        elif not _is_texts(needs):
            raise _wrong(f"{keyword}/{name}", "a list of names", needs, pointer)


def _wrong(keyword: str, wanted: str, value: Any, pointer: str) -> InvalidRequest:
    return InvalidRequest(
        f"not a JSON schema: {keyword} must be {wanted}, got {value!r:.60} at {pointer or '/'}"
    )
