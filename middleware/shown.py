"""Values in messages, in words that mean something outside Python too."""

from __future__ import annotations

import json


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
