"""Code, queries, settings and traces as they stand in a string: a few lines, with many words."""

from __future__ import annotations

import re

from ..shapes import is_code

_SQL = re.compile(
    r"\s*(?:SELECT\b[\s\S]{1,2000}?\bFROM\s|WITH\s+\w+\s+AS\s*\(|INSERT\s+INTO\s|UPDATE\s+[\w.\"]+\s+SET\s"
    r"|DELETE\s+FROM\s|(?:CREATE|ALTER|DROP)\s+(?:OR\s+REPLACE\s+)?(?:TABLE|VIEW|INDEX)\s)",
    re.IGNORECASE,
)
_SQL_SIGN = re.compile(r"[=*;<>]|\w\(|\b(?:SELECT|FROM|WHERE|INSERT|UPDATE|DELETE|CREATE)\b")
_TRACE = re.compile(
    r"^Traceback \(most recent call last\)|^\s*File \"[^\"\n]{1,300}\", line \d"
    r"|^\s+at [\w.$<>]{1,200}\(|^\s+\d+: 0x[0-9a-f]",
    re.MULTILINE,
)
_OPENS = re.compile(
    r"^[ \t]*(?:(?:async )?def \w+\(.*:|class \w+(?:\(.*\))?:|(?:pub )?fn \w+.*\{|func [\w(].*\{"
    r"|(?:export )?(?:async )?function\b.*\{|fun \w+\(.*\{)[ \t]*(?:#.*|//.*)?$",
    re.MULTILINE,
)
_STATEMENT = re.compile(
    r"\s*(?:[\w.\[\]\"']+ *(?:[-+*/|]|:)?= *\S|return\b|import \w|from \w[\w.]* import |[)\]}]"
    r"|#|//|/\*|\*/|(?:if|elif|else|for|while|with|try|except)\b.*:$|.*[;{]$|\w[\w.]*\(.*\)$)"
)
_COMMAND = re.compile(
    r"\s*(?:\$ \w|(?:sudo|cd|ls|mkdir|git|pip3?|npm|npx|yarn|apt-get|brew|docker|kubectl|curl|wget"
    r"|ssh|systemctl|python3?)\s+[-\w./~\"']|export \w+="
    r"|(?:cat|cp|mv|rm|echo|source|make|tail|grep|node|go)\s+[-./~\"'$])"
)
_DOCKER = re.compile(
    r"(?:FROM|RUN|COPY|ADD|CMD|ENV|ARG|WORKDIR|ENTRYPOINT|EXPOSE|USER|VOLUME|LABEL)\s"
)
_SETTING = re.compile(r"\s*(?:- +)?(?P<key>[a-z_$][\w./-]{0,60}|\"[^\"\n]{1,60}\") *:(?:\s|$)")
_ITEM = re.compile(r"\s*- +\S|\s*#|\s*$")


def is_script(text: str) -> bool:
    r"""Whether a word less may make a text something else: it is no prose, whatever its words.

    Errs towards "yes": what is taken for a script stays whole.

    >>> is_script("def f(x):\n    return x"), is_script("Select one from the list, please.")
    (True, False)
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return False
    if _SQL.match(text) and _SQL_SIGN.search(text):
        return True
    if is_code(text) or len(_TRACE.findall(text)) >= min(2, len(lines)):
        return True
    most = len(lines) * 0.6
    if _OPENS.search(text) and sum(bool(_STATEMENT.match(line)) for line in lines) >= most / 2:
        return True
    if sum(bool(_DOCKER.match(line)) for line in lines) >= max(most, 2):
        return True
    if sum(bool(_COMMAND.match(line)) for line in lines) >= most:
        return True
    return _is_settings(lines)


def is_function(text: str) -> bool:
    """Whether a text is a line that opens a function or class, and its body, after comments."""
    lines = [line for line in text.splitlines() if line.strip()]
    while lines and lines[0].lstrip()[:1] in ("#", "@", "/"):
        lines.pop(0)
    if len(lines) < 2 or not _OPENS.match(lines[0]):
        return False
    base = _indent(lines[0])
    return all(_indent(line) > base or line.strip() in ("}", "};", ")") for line in lines[1:])


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_settings(lines: list[str]) -> bool:
    """Whether the lines are keys and items of YAML; the words of a conversation repeat names."""
    keys = [match["key"] for line in lines if (match := _SETTING.match(line))]
    fits = len(keys) + sum(bool(_ITEM.match(line)) and not _SETTING.match(line) for line in lines)
    is_first = bool(_SETTING.match(lines[0]))
    return (
        is_first and len(lines) > 1 and fits >= 0.9 * len(lines) and len(set(keys)) > len(keys) / 2
    )
