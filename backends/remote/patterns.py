"""Choices and templates as regular expressions, for engines that take nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from ...middleware.errors import UnsupportedConstraint

_SPECIAL = frozenset(r".^$*+?()[]{}|\/-")
_CONTROLS = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def literal(text: str) -> str:
    """Return the pattern of exactly this text."""
    return "".join(
        _CONTROLS.get(char) or (f"\\{char}" if char in _SPECIAL else char) for char in text
    )


def of_choices(options: Sequence[str]) -> str:
    """Return the pattern of one of these texts.

    The longer ones come first: automata that stop at the first match would never reach them.

    >>> of_choices(["New", "New York"])
    '(New York|New)'
    """
    return f"({'|'.join(literal(o) for o in sorted(options, key=len, reverse=True))})"


def of_template(spec: str) -> str:
    """Return the pattern of a template's text; its parts are described in decoding/lark.py.

    Raises UnsupportedConstraint for fields with a JSON schema and for free text that runs until
    more than one sign.
    """
    parts: list[str | dict[str, Any]] = json.loads(spec)
    return "".join(literal(part) if isinstance(part, str) else _field(part) for part in parts)


def _field(field: dict[str, Any]) -> str:
    kind = field.get("kind")
    if kind == "choice":
        return of_choices(cast("Sequence[str]", field["spec"]))
    if kind == "regex":
        return f"(?:{field['spec']})"
    until = field.get("until")
    if kind != "text" or (until and len(until) != 1):
        raise UnsupportedConstraint(f"no pattern for the template's field {field.get('name')!r}")
    return rf"[^{literal(until)}]*" if until else r"(?:.|\n)*"
