r"""llama.cpp's grammar language (GBNF), written as Lark for llguidance.

GBNF (llama.cpp's grammars/README.md) has no lexemes: every way to read a text counts. Lark takes
the longest lexeme and never comes back; of ``WS "\n"`` with ``WS: /[ \n]*/`` it finds no sentence.
So all rules become rules, never terminals, and no lexeme is longer than a character.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from .errors import InvalidRequest

_CHAR = r"\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}|\\[nrt\\\"\[\]]|[^\\]"
_TOKENS = re.compile(
    rf"""(?P<space>\s+|\#[^\n]*)
    |"(?P<text>(?:(?!["\n])(?:{_CHAR}))*)"
    |\[(?P<not>\^?)(?P<class>(?:(?![\]\n])(?:{_CHAR}))*)\]
    |(?P<rule>[A-Za-z][A-Za-z0-9-]*)\s*::=
    |(?P<name>[A-Za-z][A-Za-z0-9-]*)
    |(?P<repeat>[*+?]|\{{\s*\d+\s*(?:,\s*\d*\s*)?\}})
    |(?P<sign>[().|])""",
    re.VERBOSE,
)
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}
_ANY = r"/[\x{0}-\x{10FFFF}]/"


@dataclass(slots=True)
class _Rule:
    name: str
    body: list[str]
    is_open: bool = True  # nothing stands in the last alternative yet


def is_gbnf(text: str) -> bool:
    """Whether a grammar is written in GBNF: it has the rule root."""
    return re.search(r"(?m)^\s*root\s*::=", text) is not None


def lark_of(gbnf: str) -> str:
    r"""Return the Lark of a GBNF grammar. Raises InvalidRequest with the place of what is wrong.

    >>> print(lark_of('root ::= "no" ws | [a-c]{2}\nws ::= " "*'))
    start: ( "n" "o" ) ws | /[\x{61}-\x{63}]/ {2}
    ws: " " *
    """
    rules: list[_Rule] = []
    used: dict[str, int] = {}
    at = 0
    while at < len(gbnf):
        found = _TOKENS.match(gbnf, at)
        if found is None or not (rules or found["space"] or found["rule"]):
            raise _wrong(gbnf, at)
        if found["rule"]:
            rules.append(_Rule(found["rule"], []))
        elif not found["space"]:
            _add(rules[-1], found)
            if found["name"]:
                used.setdefault(found["name"], at)
        at = found.end()
    names = _names([rule.name for rule in rules])
    for name, place in used.items():
        if name not in names:
            raise InvalidRequest(
                f"the GBNF grammar has no rule {name} (line {_line(gbnf, place)}); define it"
            )
    return "\n".join(
        f"{names[rule.name]}: {' '.join(names.get(part, part) for part in _closed(rule))}"
        for rule in rules
    )


def _add(rule: _Rule, found: re.Match[str]) -> None:
    """Add what one token says to the rule."""
    sign = found["sign"]
    if sign in ("|", ")") and rule.is_open:
        rule.body.append('""')
    rule.is_open = sign in ("|", "(")
    if sign == ".":
        rule.body.append(_ANY)
    elif found["text"] is not None:
        signs = [json.dumps(char) for char in _chars(found["text"])]
        rule.body.append(f"( {' '.join(signs)} )" if len(signs) > 1 else "".join(signs) or '""')
    elif found["class"] is not None:
        rule.body.append(_class(found))
    else:
        rule.body.append("".join(found[0].split()))


def _closed(rule: _Rule) -> list[str]:
    return [*rule.body, '""'] if rule.is_open else rule.body


def _class(found: re.Match[str]) -> str:
    """Return a class as a pattern in which every character is a code."""
    parts = re.findall(_CHAR, found["class"])
    if not parts:
        raise InvalidRequest(f"the GBNF grammar has an empty class {found[0]}")
    text = ""
    for at, part in enumerate(parts):
        is_range = part == "-" and 0 < at < len(parts) - 1
        text += "-" if is_range else f"\\x{{{ord(_char(part)):X}}}"
    return f"/[{found['not']}{text}]/"


def _chars(text: str) -> list[str]:
    return [_char(part) for part in re.findall(_CHAR, text)]


def _char(part: str) -> str:
    if part[0] != "\\":
        return part
    if part[1] in "xuU":
        return chr(int(part[2:], 16))
    return _CONTROLS.get(part[1], part[1])


def _names(rules: list[str]) -> dict[str, str]:
    """Return Lark's names: small letters, and the first rule is start."""
    names = {"root": "start"}
    for rule in rules:
        wanted = rule.lower().replace("-", "_")
        name, at = wanted, 2
        while rule != "root" and name in names.values():
            name, at = f"{wanted}_{at}", at + 1
        names.setdefault(rule, name)
    doubled = next((rule for rule in rules if rules.count(rule) > 1), None)
    if doubled:
        raise InvalidRequest(f"the GBNF grammar defines {doubled} twice; keep one rule")
    return names


def _wrong(gbnf: str, at: int) -> InvalidRequest:
    return InvalidRequest(
        f"the GBNF grammar cannot be read at {gbnf[at : at + 30]!r} (line {_line(gbnf, at)})"
    )


def _line(gbnf: str, at: int) -> int:
    return gbnf.count("\n", 0, at) + 1
