r"""Lark grammars, as llguidance reads them, in llama.cpp's grammar language (GBNF).

What GBNF cannot say (``%json``, ``%ignore``, ``%import``, a rule's options, a terminal's ``&`` and
``~``, flags of a pattern) is refused, never approximated. llguidance takes the longest lexeme
where GBNF takes any, so a sentence of the GBNF may still be none of the grammar: the finished text
is checked as ever.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from ...middleware.errors import UnsupportedConstraint
from .gbnf import escaped, from_regex

_HEADER = re.compile(r"\s*%llguidance\s*\{\s*\}")
_TOKENS = re.compile(
    r"""(?P<space>\s+|//[^\n]*|\#[^\n]*)
    |"(?P<first>\\.|[^"\\\n])"\s*\.\.\s*"(?P<last>\\.|[^"\\\n])"
    |(?P<text>"(?:\\.|[^"\\\n])*")(?P<flag>i?)
    |(?P<pattern>/(?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\\n])+/)(?P<flags>[imslux]*)
    |(?P<define>[?!]*(?P<defined>[A-Za-z_]\w*)(?:\.\d+)?\s*:)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<times>~\s*(?P<low>\d+)(?:\s*\.\.\s*(?P<high>\d+))?|\{\s*\d*\s*,?\s*\d*\s*\})
    |(?P<alias>->\s*\w+)
    |(?P<sign>[()\[\]|*+?])""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str  # as GBNF writes it, but for the names of rules
    at: int


def from_lark(grammar: str) -> str:
    r"""Return the GBNF of a Lark grammar. Raises UnsupportedConstraint for what it cannot say.

    >>> print(from_lark('start: "a" word{2,3}\nword: /[b-d]+/ | "e"i'))
    root ::= "a" word {2,3}
    word ::= ([b-d]+) | [eE]
    """
    tokens = _tokens(grammar)
    rules = [token.text for token in tokens if token.kind == "define"]
    if "start" not in rules:
        raise UnsupportedConstraint("GBNF needs the rule start; the grammar has none")
    if doubled := {rule for rule in rules if rules.count(rule) > 1}:
        raise UnsupportedConstraint(f"GBNF cannot say the rule {min(doubled)} twice")
    names = _names(rules)
    lines: list[list[str]] = []
    for token in tokens:
        if token.kind == "define":
            lines.append([names[token.text], "::="])
        elif not lines:
            raise _refused(grammar, token.at)
        elif token.kind == "name":
            if token.text not in names:
                raise UnsupportedConstraint(f"the grammar has no rule {token.text}")
            lines[-1].append(names[token.text])
        else:
            lines[-1].append(token.text)
    return "\n".join(" ".join(line) for line in lines)


def _names(rules: list[str]) -> dict[str, str]:
    """Return GBNF's names: no underscores, and the first rule is root."""
    names = {"start": "root"}
    for rule in rules:
        wanted = rule.strip("_").replace("_", "-") or "rule"
        name, at = wanted, 2
        while rule != "start" and name in names.values():
            name, at = f"{wanted}-{at}", at + 1
        names.setdefault(rule, name)
    return names


def _tokens(grammar: str) -> list[_Token]:
    header = _HEADER.match(grammar)
    at = header.end() if header else 0
    tokens: list[_Token] = []
    while at < len(grammar):
        found = _TOKENS.match(grammar, at)
        if found is None or found["flags"]:
            raise _refused(grammar, at)
        if not (found["space"] or found["alias"]):
            tokens.append(_Token(*_written(found), at))
        at = found.end()
    return tokens


def _written(found: re.Match[str]) -> tuple[str, str]:
    if found["first"]:
        return "text", f"[{_sign(found['first'])}-{_sign(found['last'])}]"
    if found["text"]:
        return "text", _text(found["text"], is_any_case=bool(found["flag"]))
    if found["pattern"]:
        pattern = found["pattern"][1:-1].replace("\\/", "/")
        return "pattern", f"({from_regex(pattern).removeprefix('root ::= ')})"
    if found["define"]:
        return "define", found["defined"]
    if found["name"]:
        return "name", found["name"]
    if found["low"]:
        return "times", f"{{{found['low']},{found['high'] or found['low']}}}"
    return "sign", "".join(found[0].split())


def _text(quoted: str, *, is_any_case: bool) -> str:
    try:
        text = json.loads(quoted)
    except ValueError:
        raise UnsupportedConstraint(f"GBNF cannot say the text {quoted:.60}") from None
    if not is_any_case:
        return f'"{escaped(text)}"'
    signs = [dict.fromkeys((char, char.lower(), char.upper())) for char in text]
    if any(len(one) > 1 for sign in signs for one in sign):
        raise UnsupportedConstraint(f"GBNF cannot say {quoted:.60} in any case")
    return (
        " ".join(
            f"[{escaped(''.join(sign))}]" if len(sign) > 1 else f'"{escaped(next(iter(sign)))}"'
            for sign in signs
        )
        or '""'
    )


def _sign(text: str) -> str:
    return escaped(json.loads(f'"{text}"'))


def _refused(grammar: str, at: int) -> UnsupportedConstraint:
    line = grammar.count("\n", 0, at) + 1
    return UnsupportedConstraint(
        f"GBNF cannot say {grammar[at:].split(maxsplit=1)[0]!r:.40} (line {line} of the grammar)"
    )
