"""The turns of a chat, and their parts. All of them are frozen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from .errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class Text:
    """A text part of a message; ``fields`` is whatever else the part carried."""

    text: str
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Opaque:
    """A part that headrace does not read (image, audio, refusal, ...): passed on untouched."""

    data: Any


Part = Text | Opaque


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat.

    ``fields`` holds every field beside role and content (name, tool_calls, tool_call_id, ...);
    ``shape`` remembers how the content was written, so that ``to_dict`` gives back what
    ``from_dict`` took.

    >>> Message.from_dict({"role": "user", "content": "Hi", "name": "Ann"}).to_dict()
    {'role': 'user', 'content': 'Hi', 'name': 'Ann'}
    """

    role: str
    parts: tuple[Part, ...]
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    shape: Literal["text", "parts", "null", "absent"] = "text"

    @classmethod
    def system(cls, text: str) -> Message:
        """Return a system message."""
        return cls("system", (Text(text),))

    @classmethod
    def user(cls, text: str) -> Message:
        """Return a user message."""
        return cls("user", (Text(text),))

    @classmethod
    def assistant(cls, text: str) -> Message:
        """Return an assistant message."""
        return cls("assistant", (Text(text),))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Message:
        """Read a message in OpenAI's chat shape.

        Raises InvalidRequest when there is no role or the content is neither text, nor a list,
        nor null.
        """
        role = data.get("role") if isinstance(data, Mapping) else None  # pyright: ignore[reportUnnecessaryIsInstance]
        if not isinstance(role, str) or not role:
            raise InvalidRequest(f"a message needs a role, got {data!r:.120}")
        fields: dict[str, Any] = {k: v for k, v in data.items() if k not in ("role", "content")}
        if "content" not in data:
            return cls(role, (), fields, "absent")
        content = data["content"]
        if content is None:
            return cls(role, (), fields, "null")
        if isinstance(content, str):
            return cls(role, (Text(content),), fields, "text")
        if isinstance(content, (list, tuple)):
            items = cast("Sequence[Any]", content)
            return cls(role, tuple(_part_from(item) for item in items), fields, "parts")
        raise InvalidRequest(
            f"a message's content is text, a list of parts or null, got {type(content).__name__}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Write the message in OpenAI's chat shape."""
        content: dict[str, Any] = {}
        if self.shape == "parts" or any(isinstance(part, Opaque) for part in self.parts):
            content = {"content": [_part_to(part) for part in self.parts]}
        elif self.shape == "text" or self.parts:
            content = {"content": self.text}
        elif self.shape == "null":
            content = {"content": None}
        return {"role": self.role, **content, **self.fields}

    @property
    def text(self) -> str:
        """All text parts, joined."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def is_tool(self) -> bool:
        """Whether the message is a tool's result or asks for a tool."""
        return (
            self.role in ("tool", "function")
            or bool(self.fields.get("tool_calls"))
            or "tool_call_id" in self.fields
        )


def _part_from(item: Any) -> Part:
    if isinstance(item, str):  # not OpenAI's shape, but accepted by some engines
        return Text(item, {"type": None})
    if isinstance(item, Mapping):
        fields = dict(cast("Mapping[str, Any]", item))
        if fields.pop("type", None) == "text" and isinstance(text := fields.pop("text", None), str):
            return Text(text, fields)
    return Opaque(item)


def _part_to(part: Part) -> Any:
    if isinstance(part, Opaque):
        return part.data
    if part.fields.get("type", "") is None:
        return part.text
    return {"type": "text", "text": part.text, **part.fields}
