"""The fields of a chat's body that say how to decode."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ..shown import shown
from ..types import Sampling
from .errors import Failure

_WHOLE = "a whole number from 1 on"
_LIMITS = ("max_completion_tokens", "max_tokens")


def sampling_of(body: Mapping[str, Any], extra: Mapping[str, Any]) -> Sampling:
    """Return how a chat is decoded; ``extra`` is what goes to the server as it is.

    Raises Failure (400) for a value of a wrong type, and InvalidRequest for one out of range.
    """
    for name in _LIMITS:
        value: Any = body.get(name)
        if value is not None and (type(value) is not int or value < 1):
            raise _wrong(name, _WHOLE, value)
    for name in ("temperature", "top_p"):
        value = body.get(name)
        if value is not None and not (_is_number(value) and math.isfinite(value)):
            raise _wrong(name, "a number", value)
    seed: Any = body.get("seed")
    if seed is not None and type(seed) is not int:
        raise _wrong("seed", "a whole number", seed)
    return Sampling(
        max_tokens=next((body[name] for name in _LIMITS if body.get(name) is not None), None),
        temperature=body.get("temperature"),
        top_p=body.get("top_p"),
        stop=_stop(body.get("stop")),
        seed=seed,
        extra=extra,
    )


def _stop(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    texts = tuple(cast("Sequence[Any]", value)) if isinstance(value, list) else ()
    if value is not None and (not isinstance(value, list) or not _are_texts(texts)):
        raise _wrong("stop", "a text or a list of texts", value)
    return texts


def _are_texts(values: Sequence[Any]) -> bool:
    return all(isinstance(one, str) for one in values)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _wrong(name: str, what: str, value: Any) -> Failure:
    return Failure(400, "invalid_request", f"{name} is {what}, got {shown(value)}")
