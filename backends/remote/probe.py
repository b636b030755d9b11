"""Does a field hold? A sentinel request tells: servers ignore what they do not know, silently."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any, Literal

from ...middleware.errors import InvalidRequest, UnsupportedConstraint
from ...middleware.types import (
    Constraint,
    ConstraintKind,
    Event,
    Finished,
    Request,
    Response,
    Sampling,
)
from .dialects import Field, value_of
from .fits import keeps
from .flights import Flights

Send = Callable[[Request, Mapping[str, Any]], AsyncGenerator[Event, None]]
Verdict = Literal["holds", "ignored", "refused", "unclear"]

_SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "string", "enum": ["7f3a"]}},
    "required": ["ok"],
    "additionalProperties": False,
}
# No model says these by itself to "Say hello."
SENTINELS: dict[ConstraintKind, Constraint] = {
    "json_schema": Constraint("json_schema", json.dumps(_SCHEMA)),
    "choice": Constraint("choice", ("ok-7f3a", "ok-9c1e")),
    "regex": Constraint("regex", "ok-7f3a[0-9]"),
    "grammar": Constraint("grammar", 'start: "ok-7f3a"'),
    "template": Constraint("template", '["ok-", {"name": "a", "kind": "regex", "spec": "7f3a"}]'),
}
_TEXTS: dict[ConstraintKind, str] = {"grammar": "ok-7f3a", "template": "ok-7f3a"}
_PROMPT = "Say hello."
_MAX_TOKENS = 32


class Probe:
    """Remembers which fields hold, for each model and kind. Two who ask at once share a request."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._verdicts: Flights[Verdict] = Flights()

    async def verdict(self, model: str, field: Field, kind: ConstraintKind) -> Verdict:
        """Return whether the field holds; asks the server once.

        "unclear": the sentinel was cut before it said anything, as by a model that thinks first,
        or refused for a reason of its own.
        Errors that say nothing about the field (overload, no connection) are raised and not kept.
        """
        return await self._verdicts.get((model, field.name, kind), lambda: self._ask(field, kind))

    def forget(self, model: str, field: Field, kind: ConstraintKind) -> None:
        """Ask again at the next use: an answer did not keep to the field."""
        self._verdicts.forget((model, field.name, kind))

    def close(self) -> None:
        """Give up on sentinels in flight."""
        self._verdicts.close()

    async def _ask(self, field: Field, kind: ConstraintKind) -> Verdict:
        sentinel = SENTINELS[kind]
        # No temperature: some models take none, and under a constraint that holds it is the same.
        request = Request.of(_PROMPT, sampling=Sampling(max_tokens=_MAX_TOKENS))
        try:
            fields = field.write(value_of(sentinel))
            response = await _finished(self._send(request, fields))
        except UnsupportedConstraint:
            return "refused"
        except InvalidRequest:  # of something else: the request itself will tell
            return "unclear"
        text = response.text if field.read is None else field.read(response.text)
        if text is not None and (keeps(text, sentinel) or text == _TEXTS.get(kind)):
            return "holds"
        return "unclear" if _is_cut(response) else "ignored"


def _is_cut(response: Response) -> bool:
    """Whether the answer may still have become the sentinel when it was cut."""
    text = "".join(response.text.split())
    starts = ('{"ok":"7f3a"}', '{"answer":"ok-', "ok-7f3a", "ok-9c1e", "<think>")
    return response.finish_reason == "length" and any(
        start.startswith(text) or (start == "<think>" and text.startswith(start))
        for start in starts
    )


async def _finished(events: AsyncGenerator[Event, None]) -> Response:
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Finished):
                return event.response
    raise AssertionError("a stream ends with Finished")
