"""When two requests are the same question with the same answer."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict

from .types import Request

_FREE = frozenset({"priority"})  # tags that change no answer
_TOOLS = ("tools", "functions")


def identity(request: Request) -> str | None:
    """Return a hash of all that decides the answer, None where the engine may answer differently.

    That is every message, the documents, the sampling, the constraint and the tags (whose answer
    it is) but for "priority". A request is deterministic with temperature 0 or a seed; what the
    engine does by default is not relied on. Requests with tools, whose calls act on the world,
    those for several answers, and those that cannot be written as JSON have none.
    """
    sampling = request.sampling
    if sampling.temperature != 0 and sampling.seed is None:
        return None
    if any(sampling.extra.get(name) for name in _TOOLS) or sampling.extra.get("n") not in (None, 1):
        return None
    constraint = request.constraint
    request = request.with_documents_inline()
    parts = {
        "messages": [message.to_dict() for message in request.messages],
        "sampling": {**asdict(sampling), "extra": dict(sampling.extra)},
        "constraint": None if constraint is None else constraint.to_dict(),
        "tags": {name: value for name, value in request.tags.items() if name not in _FREE},
    }
    try:
        text = json.dumps(parts, sort_keys=True, ensure_ascii=True)
    except (TypeError, ValueError, RecursionError):
        return None
    return hashlib.sha256(text.encode()).hexdigest()
