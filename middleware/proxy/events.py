"""Server-sent events as bytes: cut into whole ones, and their counts of tokens read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from ..verbatim import decoded, read_json, rewritten

_END = re.compile(rb"\n\r?\n|\r\r")
_DATA = re.compile(rb"(?m)^data:[ ]?(.*?)\r?$")
_TELLS = re.compile(rb'"usage"|"finish_reason"\s*:\s*"')


class Cutter:
    """Cuts a stream of bytes into whole events, wherever the bytes were cut before."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take bytes and yield the events that are complete now, to the byte."""
        whole = self._held + data
        start = 0
        for end in _END.finditer(whole, max(0, len(self._held) - 3)):
            yield whole[start : end.end()]
            start = end.end()
        self._held = whole[start:]

    @property
    def rest(self) -> bytes:
        """What came after the last complete event."""
        return self._held


@dataclass
class Counts:
    """Reads how many tokens a stream or an answer was, and hides what nobody asked for.

    ``is_hidden``: the counts were asked for by us, not by the caller. ``block`` is put beside them
    for a caller who asked. Servers that count in every event say the whole each time.
    """

    is_hidden: bool = False
    block: Mapping[str, Any] | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    model: str = ""
    finish_reasons: list[str] = field(default_factory=list[str])

    def event(self, event: bytes) -> bytes:
        """Return an event as the caller gets it, empty for one that is not for them."""
        if not _TELLS.search(event):
            return event
        found = _DATA.search(event)
        try:
            data: Any = read_json(found[1]) if found else None
        except (ValueError, RecursionError):
            return event
        if not isinstance(data, dict):
            return event
        chunk = cast("dict[str, Any]", data)
        usage = self.read(chunk)
        if usage is None:
            return _without_null(event, chunk) if self.is_hidden and "usage" in chunk else event
        if chunk.get("choices") == [] and self.is_hidden:
            return b""
        if self.block is None or self.is_hidden or chunk.get("choices"):
            return event
        assert found is not None
        new = _rewritten(found[1], chunk, self._with_block(chunk, usage))
        return event[: found.start(1)] + new + event[found.end(1) :]

    def whole(self, body: bytes) -> bytes:
        """Return a whole answer as the caller gets it."""
        try:
            data: Any = read_json(body)
        except (ValueError, RecursionError):
            return body
        if not isinstance(data, dict):
            return body
        answer = cast("dict[str, Any]", data)
        usage = self.read(answer)
        if usage is None or self.block is None:
            return body
        return _rewritten(body, answer, self._with_block(answer, usage))

    def _with_block(self, data: dict[str, Any], usage: dict[str, Any]) -> dict[str, Any]:
        """Return a copy of what ``read`` has read, with the block among the counts."""
        if data.get("usage") is usage:
            return {**data, "usage": {**usage, "headrace": self.block}}
        holder = next(
            name
            for name in ("response", "message")
            if isinstance(data.get(name), dict) and data[name].get("usage") is usage
        )
        return {**data, holder: {**data[holder], "usage": {**usage, "headrace": self.block}}}

    def read(self, data: dict[str, Any]) -> dict[str, Any] | None:
        """Read what a JSON object says, and return its counts, None where it has none."""
        if isinstance(model := data.get("model"), str):
            self.model = model
        for choice in _objects(data.get("choices")):
            reason = choice.get("finish_reason")
            if isinstance(reason, str):
                self.finish_reasons.append(reason)
        for holder in (data, data.get("response"), data.get("message")):
            usage: Any = cast("Any", holder).get("usage") if isinstance(holder, dict) else None
            if isinstance(usage, dict):
                return self._take(cast("dict[str, Any]", usage))
        return None

    def _take(self, usage: dict[str, Any]) -> dict[str, Any]:
        def number(*names: str, among: Any = usage) -> int:
            fields = cast("dict[str, Any]", among) if isinstance(among, dict) else {}
            return next((fields[name] for name in names if type(fields.get(name)) is int), 0)

        self.prompt_tokens = number("prompt_tokens", "input_tokens") or self.prompt_tokens
        self.completion_tokens = (
            number("completion_tokens", "output_tokens") or self.completion_tokens
        )
        details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
        cached = number("cached_tokens", among=details) or number("cache_read_input_tokens")
        self.cached_tokens = cached or self.cached_tokens
        return usage


def _without_null(event: bytes, chunk: dict[str, Any]) -> bytes:
    """Return an event without ``"usage": null``, which servers add when asked to count."""
    found = _DATA.search(event)
    assert found is not None  # it was read
    rest = {name: value for name, value in chunk.items() if name != "usage"}
    return event[: found.start(1)] + _rewritten(found[1], chunk, rest) + event[found.end(1) :]


def _rewritten(data: bytes, old: Any, new: Any) -> bytes:
    return rewritten(decoded(data), old, new).encode("utf-8", "surrogatepass")


def _objects(value: Any) -> list[dict[str, Any]]:
    items = [*cast("Iterable[Any]", value)] if isinstance(value, list) else []
    return [cast("dict[str, Any]", one) for one in items if isinstance(one, dict)]
