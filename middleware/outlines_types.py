"""Outlines' output types as constraints (outlines.types: types, and the DSL's terms)."""

from __future__ import annotations

import json
from typing import Any

from .constraints import choice, json_schema, regex
from .errors import InvalidRequest
from .grammars import grammar
from .types import Constraint


def from_outlines(term: Any) -> Constraint:
    """Return the constraint of an Outlines term.

    Regular terms become one pattern; Outlines' own conversion is not used, since it escapes for
    Python's ``re`` only and turns schemas into patterns that are wrong in many places. A term
    with a schema or a grammar inside (``either(JsonSchema(...), "none")``) becomes a grammar.
    Raises InvalidRequest for a term that is none of the above.
    """
    from outlines.types import dsl

    match term:
        case dsl.JsonSchema():
            return json_schema(json.loads(term.schema))
        case dsl.CFG():
            return grammar(term.definition)
        case _:
            pass
    texts = _texts(term)
    if texts is not None:
        return choice(texts)
    if _is_regular(term):
        return regex(_pattern(term))
    rules: list[str] = []
    start = _expression(term, rules)
    return grammar("\n".join([f"start: {start}", *rules]))


def _texts(term: Any) -> list[str] | None:
    """Return the texts of a choice between plain ones, None when it is something else."""
    from outlines.types import dsl

    match term:
        case dsl.String():
            return [term.value]
        case dsl.Choice():
            return [*term.items] if all(isinstance(one, str) for one in term.items) else None
        case dsl.Alternatives():
            inner = [_texts(one) for one in term.terms]
            return None if None in inner else [text for one in inner if one for text in one]
        case _:
            return None


def _children(term: Any) -> list[Any]:
    from outlines.types import dsl

    if isinstance(term, dsl.Choice):
        return [dsl.python_types_to_terms(item) for item in term.items]
    inner = getattr(term, "terms", None) or getattr(term, "term", None)
    return [*inner] if isinstance(inner, list) else [] if inner is None else [inner]


def _is_regular(term: Any) -> bool:
    from outlines.types import dsl

    if isinstance(term, dsl.JsonSchema | dsl.CFG):
        return False
    return all(_is_regular(one) for one in _children(term))


def _repeat(term: Any) -> str:
    """Return the quantifier of a repeating term. Raises InvalidRequest for other terms."""
    from outlines.types import dsl

    match term:
        case dsl.KleeneStar():
            return "*"
        case dsl.KleenePlus():
            return "+"
        case dsl.Optional():
            return "?"
        case dsl.QuantifyExact():
            return f"{{{term.count}}}"
        case dsl.QuantifyMinimum():
            return f"{{{term.min_count},}}"
        case dsl.QuantifyMaximum():
            return f"{{0,{term.max_count}}}"
        case dsl.QuantifyBetween():
            return f"{{{term.min_count},{term.max_count}}}"
        case _:
            raise InvalidRequest(f"{term!r:.80} is no output type that can be a constraint")


def _pattern(term: Any) -> str:
    from outlines.types import dsl

    from ..backends.decoding.lark import literal

    match term:
        case dsl.String():
            return literal(term.value)
        case dsl.Regex():
            return f"(?:{term.pattern})"
        case dsl.Choice() | dsl.Alternatives():
            return f"(?:{'|'.join(_pattern(one) for one in _children(term))})"
        case dsl.Sequence():
            return "".join(_pattern(one) for one in term.terms)
        case _:
            return f"(?:{_pattern(_only(term))}){_repeat(term)}"


def _only(term: Any) -> Any:
    inner = _children(term)
    if len(inner) != 1:
        raise InvalidRequest(f"{term!r:.80} is no output type that can be a constraint")
    return inner[0]


def _expression(term: Any, rules: list[str]) -> str:
    """Return the term as a Lark expression; terminals and JSON values become rules."""
    from outlines.types import dsl

    if _is_regular(term):
        from ..backends.decoding.lark import slashed

        rules.append(f"T{len(rules)}: {slashed(_pattern(term))}")
        return f"T{len(rules) - 1}"
    match term:
        case dsl.JsonSchema():
            rules.append(f"j{len(rules)}: %json {json.dumps(json.loads(term.schema))}")
            return f"j{len(rules) - 1}"
        case dsl.CFG():
            raise InvalidRequest(
                "an Outlines grammar cannot stand inside another term; write all as one grammar"
            )
        case dsl.Choice() | dsl.Alternatives():
            return f"({' | '.join(_expression(one, rules) for one in _children(term))})"
        case dsl.Sequence():
            return " ".join(_expression(one, rules) for one in term.terms)
        case _:
            return f"({_expression(_only(term), rules)}){_repeat(term)}"
