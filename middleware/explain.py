"""What a type's own validators say, in one line that begins with the place."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

_SHOWN = 3


def explain(error: Exception, prefix: str = "", text: str = "") -> str:
    """Return the first few complaints of an error, each with its JSON pointer.

    ``prefix`` is where the validated value stands and ``text`` what it was read from: with it,
    the pointer leads to a place that is there, without the names of union members that pydantic
    puts in between.
    """
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        words = " ".join(str(error).split()) or type(error).__name__
        return f"{prefix}: {words:.200}" if prefix else f"{words:.200}"
    try:
        root: Any = json.loads(text)
    except ValueError:
        root = None
    complaints = cast("list[dict[str, Any]]", error.errors(include_url=False))
    lines = [
        f"{prefix}{_pointer(one, root)}: {' '.join(str(one['msg']).split()):.120}"
        for one in complaints[:_SHOWN]
    ]
    more = len(complaints) - len(lines)
    return "; ".join(lines) + (f"; and {more} more" if more else "")


def _pointer(complaint: dict[str, Any], root: Any) -> str:
    """Return the place as a JSON pointer (RFC 6901)."""
    steps = cast("Sequence[Any]", complaint["loc"])
    value: Any = root
    pointer = ""
    for at, step in enumerate(steps):
        is_missing = at == len(steps) - 1 and complaint["type"] == "missing"
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            if root is not None and not is_missing:
                continue  # the name of a union's member
            value = None
        pointer += "/" + str(step).replace("~", "~0").replace("/", "~1")
    return pointer or "/"
