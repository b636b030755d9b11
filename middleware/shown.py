"""Values in messages, in words that mean something outside Python too."""

from __future__ import annotations

import json
from collections.abc import Iterable
from difflib import get_close_matches


def shown(value: object, length: int = 60) -> str:
    """Return the beginning of a value as it is written in JSON; texts are in single quotes.

    >>> shown(True), shown(None), shown({"a": [1.5]}), shown("it")
    ('true', 'null', '{"a": [1.5]}', "'it'")
    """
    if isinstance(value, str):
        return repr(value)[:length]
    try:
        return json.dumps(value, ensure_ascii=False, default=str, allow_nan=False)[:length]
    except (TypeError, ValueError, RecursionError):  # no JSON: NaN, odd keys, a circle, too deep
        return repr(value)[:length]


def nearest(name: object, names: Iterable[str]) -> str:
    """Return which names there are, with the one that was probably meant before them.

    >>> nearest("tools", ("user", "tool")), nearest("x", ("user", "tool"))
    ("did you mean 'tool'? There are user, tool", 'there are user, tool')
    """
    known = list(names)
    listed = f"here are {', '.join(known)}"
    close = get_close_matches(str(name), known, 1)
    return f"did you mean {close[0]!r}? T{listed}" if close else f"t{listed}"
