"""Templates as grammars in llguidance's dialect of Lark.

A template's parts are JSON: a text is fixed; an object is a field with its ``name``, its ``kind``
(``text``, ``regex``, ``choice`` or ``json_schema``), its ``spec`` and, for free text, the text
``until`` which it runs (null: to the end). ``middleware/template.py`` writes them.

The lexer behind such a grammar is greedy: a lexeme goes on as long as it can. So everything between
two JSON values is one lexeme, a regular language that is exact by itself, and a pattern before a
JSON value may not contain the text behind it, or it would swallow the JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, cast

from ...middleware.errors import InvalidRequest, UnsupportedConstraint

# Free whitespace lets a small model write blanks for ever, none makes it close arrays early.
_OPTIONS: dict[str, Any] = {
    "whitespace_pattern": r"\x20|\x0A\x20{0,16}",
    "lenient": False,
    "coerce_one_of": False,
}

Part = str | dict[str, Any]


def template_grammar(spec: str, schema: Callable[[str], str] | None = None) -> str:
    r"""Return the grammar of a template, whose ``spec`` is the JSON text of its parts.

    ``schema`` prepares the JSON schemas of fields (text to text); by default they are made safe
    for the automaton as everywhere else. Raises InvalidRequest for parts that are none.

    >>> print(template_grammar('["Age: ", {"name": "age", "kind": "regex", "spec": "[0-9]+"}]'))
    start: T0
    T0: /Age\x3A\x20/ /(?:[0-9]+)/
    """
    names: list[str] = []
    rules: list[str] = []
    run: list[Part] = []
    for part in _parts(spec):
        if isinstance(part, str) or part["kind"] != "json_schema":
            run.append(part)
            continue
        if run:
            _terminal(run, names, rules, is_before_json=True)
            run = []
        names.append(f"j{len(names)}")
        rules.append(f"{names[-1]}: %json {(schema or _prepared)(part['spec'])}")
    if run:
        _terminal(run, names, rules, is_before_json=False)
    return "\n".join([f"start: {' '.join(names)}", *rules])


def _parts(spec: str) -> list[Part]:
    try:
        parts: Any = json.loads(spec)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"a template's parts are JSON, got {spec!r:.80} ({error})") from None
    if not isinstance(parts, list) or not parts:
        raise InvalidRequest(f"a template is a list of parts, got {spec!r:.80}")
    for part in cast("Sequence[Any]", parts):
        if not isinstance(part, str) and not (isinstance(part, dict) and "kind" in part):
            raise InvalidRequest(f"a template's part is a text or a field, got {part!r:.80}")
    return cast("list[Part]", parts)


def _terminal(
    run: Sequence[Part], names: list[str], rules: list[str], *, is_before_json: bool
) -> None:
    names.append(f"T{len(names)}")
    atoms: list[str] = []
    taken = ""  # of the next fixed text, which the field before it has brought along
    for part, following in pairwise([*run, ""]):
        if isinstance(part, str):
            if rest := part.removeprefix(taken):
                atoms.append(f"/{literal(rest)}/")
            taken = ""
            continue
        behind = following if isinstance(following, str) else ""
        atom, taken = _field(part, behind if is_before_json else "")
        atoms.append(atom)
    rules.append(f"{names[-1]}: {' '.join(atoms)}")


def _field(field: dict[str, Any], behind: str) -> tuple[str, str]:
    """Return a field's expression, and how much of the text behind it that has taken along.

    ``behind`` is that text where the field may not contain it.
    """
    kind: str = field["kind"]
    spec: Any = field.get("spec")
    if kind == "choice":
        return f"({' | '.join(f'/{literal(option)}/' for option in spec)})", ""
    if kind == "regex":
        pattern = slashed(spec)
        return (
            (f"(({pattern} /{literal(behind)}/) & {_first(behind)})", behind)
            if behind
            else (
                pattern,
                "",
            )
        )
    if kind != "text":
        raise InvalidRequest(f"a template's field cannot be a {kind!r:.40}")
    until = field.get("until")
    if until is None:
        return "/(?s:.*)/", ""
    if len(until) == 1:
        return f"/[^{literal(until)}]*{literal(until)}/", until
    return f"(/(?s:.*){literal(until)}/ & {_first(until)})", until


def _first(text: str) -> str:
    """Return the language of everything that does not go on behind the first ``text``."""
    return f"~/(?s:.*{literal(text)}.+)/"


def literal(text: str) -> str:
    """Return the text as a pattern: everything but letters and digits by its code point.

    Written so that both Rust's and Python's engines read it.
    """
    return "".join(_escaped(c) for c in text)


def _escaped(c: str) -> str:
    if c.isalnum():
        return c
    return f"\\x{ord(c):02X}" if c.isascii() else f"\\U{ord(c):08X}"


def slashed(pattern: str) -> str:
    """Return a pattern as Lark writes one: between slashes, on one line."""
    result: list[str] = []
    is_escaped = False
    for c in pattern:
        if c in "/\n" and is_escaped:
            result.pop()
        result.append({"/": "\\/", "\n": "\\n"}.get(c, c))
        is_escaped = c == "\\" and not is_escaped
    return f"/(?:{''.join(result)})/"


def _prepared(spec: str) -> str:
    from .schema import lowered

    prepared = lowered(spec)
    if prepared.residual:
        raise UnsupportedConstraint(
            f"a template's field cannot be enforced: its schema has {prepared.residual[0]}; leave "
            "that out, or check it afterwards"
        )
    schema = {} if prepared.schema is True else cast("dict[str, Any]", prepared.schema)
    return json.dumps({**schema, "x-guidance": _OPTIONS})
