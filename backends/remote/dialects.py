"""The fields in which each server takes a constraint.

| dialect | JSON schema | regex, choice | grammar (Lark) |
|---|---|---|---|
| vllm (0.12 and later) | structured_outputs.json | .regex, .choice | .grammar |
| vllm-guided (before) | guided_json | guided_regex, guided_choice | guided_grammar |
| sglang | response_format | regex | - |
| llama.cpp | response_format, nested | grammar (GBNF) | grammar (GBNF, %llguidance) |
| tgi | response_format {type, value} | response_format {type, value} | - |
| ollama, openai | response_format | a schema of one property | - |
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ...middleware.errors import InvalidRequest
from ...middleware.types import Constraint, ConstraintKind
from ..decoding.lark import template_grammar
from . import coverage, gbnf
from .fits import strict_json
from .gbnf_grammar import from_lark
from .patterns import of_choices, of_template
from .strict import ANSWER, wrapped

DialectName = Literal["vllm", "vllm-guided", "sglang", "llama.cpp", "tgi", "ollama", "openai"]
Write = Callable[[Any], dict[str, Any]]
Fields = Mapping[ConstraintKind, "tuple[Field, ...]"]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the request's body.

    ``write`` makes its fields of a constraint's value: the schema as a dict, the choices as a
    tuple, a text for the other kinds; it raises UnsupportedConstraint for what the field cannot
    say. ``read`` brings the finished answer back into the form that was asked for (None: it is).
    """

    name: str
    write: Write
    read: Callable[[str], str | None] | None = None


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a server is told, and how much of a JSON schema it is known to keep.

    ``fields`` are tried in their order until one holds. ``is_strict``: schemas have to be
    rewritten by OpenAI's rules. ``with_tools``: constraint and tools may go together.
    """

    name: DialectName
    fields: Fields
    enforced: frozenset[str] = coverage.CORE
    is_strict: bool = False
    with_tools: bool = True
    json_mode: Mapping[str, Any] = field(
        default_factory=lambda: {"response_format": {"type": "json_object"}}
    )


def value_of(constraint: Constraint) -> Any:
    """Return the constraint's value as ``Field.write`` takes it."""
    if constraint.kind == "json_schema":
        return json.loads(str(constraint.spec))
    return constraint.spec


def dialect(name: str) -> Dialect:
    """Return the dialect of this name. Raises InvalidRequest for another name."""
    if name not in DIALECTS:
        raise InvalidRequest(f"no dialect {name!r:.40}; choose one of {', '.join(DIALECTS)}")
    return DIALECTS[name]


def _response_format(schema: Any) -> dict[str, Any]:
    named = {"name": "answer", "strict": True, "schema": schema}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


def _response_format_field(name: str = "response_format.json_schema") -> Field:
    return Field(name, _response_format)


def _structured(key: str, convert: Callable[[Any], Any] = lambda value: value) -> Field:
    return Field(
        f"structured_outputs.{key}", lambda value: {"structured_outputs": {key: convert(value)}}
    )


def _top(key: str, convert: Callable[[Any], Any] = lambda value: value) -> Field:
    return Field(key, lambda value: {key: convert(value)})


def _tagged(tag: str, convert: Callable[[Any], Any] = lambda value: value) -> Field:
    return Field(
        f"response_format.{tag}",
        lambda value: {"response_format": {"type": tag, "value": convert(value)}},
    )


def _one_property(keyword: str, convert: Callable[[Any], Any]) -> Field:
    """Return a field for texts that travels as a JSON schema of an object with one property."""
    return Field(
        f"response_format.json_schema ({keyword})",
        lambda value: _response_format(wrapped({"type": "string", keyword: convert(value)})),
        unwrapped_text,
    )


def unwrapped_text(text: str) -> str | None:
    """Return the text inside the one-property object, None when there is none."""
    try:
        value = strict_json(text)[ANSWER]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return value if isinstance(value, str) else None


def _anchored(pattern: str) -> str:
    """Return the pattern of the whole string: JSON Schema's ``pattern`` only searches."""
    return f"^(?:{pattern})$"


def _vllm(key: Callable[..., Field], schema: str, grammar: str, regex: str, choice: str) -> Fields:
    return {
        "json_schema": (key(schema), _response_format_field()),
        "regex": (key(regex),),
        "choice": (key(choice, list),),
        "grammar": (key(grammar),),
        "template": (key(regex, of_template), key(grammar, template_grammar)),
    }


def _both(first: Fields, then: Fields) -> Fields:
    """Return the fields of the first, then those of the second, each once."""
    return {
        kind: tuple({one.name: one for one in (*fields, *then[kind])}.values())
        for kind, fields in first.items()
    }


def _llguidance(grammar: str) -> str:
    return f"%llguidance {{}}\n{grammar}"


def _only_json() -> Fields:
    return {
        "json_schema": (_response_format_field(),),
        "choice": (_one_property("enum", list),),
        "regex": (_one_property("pattern", _anchored),),
        "template": (_one_property("pattern", lambda spec: _anchored(of_template(spec))),),
    }


_STRUCTURED = _vllm(_structured, "json", "grammar", "regex", "choice")
_GUIDED = _vllm(_top, "guided_json", "guided_grammar", "guided_regex", "guided_choice")

_ALL = (
    Dialect("vllm", _both(_STRUCTURED, _GUIDED)),  # an old one may hide its version
    Dialect("vllm-guided", _GUIDED),
    Dialect(
        "sglang",
        {
            "json_schema": (_response_format_field(),),
            "regex": (_top("regex"),),
            "choice": (_top("regex", of_choices),),
            "template": (_top("regex", of_template),),
        },
    ),
    Dialect(
        "llama.cpp",
        {
            "json_schema": (_response_format_field(),),
            "regex": (_top("grammar", gbnf.from_regex),),
            "choice": (_top("grammar", gbnf.from_choices),),
            "grammar": (
                _top("grammar", from_lark),
                Field("grammar (%llguidance)", lambda v: {"grammar": _llguidance(v)}),
            ),
            "template": (
                _top("grammar", lambda spec: gbnf.from_regex(of_template(spec))),
                Field(
                    "grammar (%llguidance)",
                    lambda spec: {"grammar": _llguidance(template_grammar(spec))},
                ),
            ),
        },
        coverage.LLAMA,
        with_tools=False,
    ),
    Dialect(
        "tgi",
        {
            "json_schema": (_tagged("json"),),
            "regex": (_tagged("regex"),),
            "choice": (_tagged("regex", of_choices),),
            "template": (_tagged("regex", of_template),),
        },
        with_tools=False,
        json_mode={},  # its json_object wants a schema
    ),
    Dialect("ollama", _only_json(), coverage.LLAMA),
    Dialect("openai", _only_json(), is_strict=True),
)
DIALECTS: Mapping[str, Dialect] = {one.name: one for one in _ALL}
