"""The bodies of OpenAI's and Anthropic's APIs, read as a chat, and written back.

Every text that may be cut knows its place in the body, and nothing but those places is ever
written: whatever else a body holds, now or in a later version of an API, stays the same object.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, cast

from .errors import InvalidRequest
from .types import Document, Message, Opaque, Part, Request, Text

Kind = Literal["chat", "completions", "responses", "messages"]
"""Chat completions, plain completions, OpenAI's responses, Anthropic's messages."""

Place = tuple[str | int, ...]
AT = "headrace: place"  # no field of any API
MARK = "headrace"

_PATHS: dict[str, Kind] = {
    "/chat/completions": "chat",
    "/completions": "completions",
    "/responses": "responses",
    "/messages": "messages",
}
_LISTS: dict[Kind, str] = {
    "chat": "messages",
    "completions": "prompt",
    "responses": "input",
    "messages": "messages",
}
_TEXT_TYPES = frozenset(("text", "input_text", "output_text"))
_GONE = object()


class Unreadable(Exception):
    """The body is not what the API takes; the server will say so better than we can."""


@dataclass(frozen=True, slots=True)
class Chat:
    """What a body says: ``marked`` are the parts that it calls documents."""

    messages: tuple[Message, ...]
    marked: tuple[Document, ...]
    marks: tuple[Place, ...]

    def groups(self, question: str) -> Iterator[tuple[str, tuple[Document, ...]]]:
        """Yield the marked parts of each message, with what that message asks.

        ``question``, where there is one, is what the last user message asks.
        """
        users = [i for i, message in enumerate(self.messages) if message.role == "user"]
        places = {message.fields.get(AT): i for i, message in enumerate(self.messages)}
        for content, found in groupby(self.marked, lambda one: one.metadata[AT][:-2]):
            at = places[content]
            asking = [at, at + 1, *reversed([i for i in users if i < at])]
            asked = next((i for i in asking if i in users and self.messages[i].text), at)
            is_last = bool(users) and asked == users[-1]
            own = self.messages[asked].text if asked in users else ""
            yield (question if is_last and question else own), tuple(found)


def kind_of(path: str) -> Kind | None:
    """Return what is posted to a path, None for anything that headrace does not read.

    >>> kind_of("/v1/chat/completions"), kind_of("/embeddings")
    ('chat', None)
    """
    return _PATHS.get(path.partition("?")[0].removeprefix("/v1"))


def read(kind: Kind, body: Mapping[str, Any]) -> Chat:
    """Return a body as a chat. Raises Unreadable, and InvalidRequest for an unknown mark."""
    key = _LISTS[kind]
    items: Any = body.get(key)
    messages: list[Message] = []
    documents: list[Document] = []
    marks: list[Place] = []

    def parts(content: Any, at: Place) -> tuple[Part, ...]:
        return tuple(_parts(content, at, documents, marks))

    if kind in ("completions", "responses") and isinstance(items, str):
        messages.append(Message("user", parts(items, (key,)), {AT: (key,)}))
    elif kind == "completions" or not isinstance(items, (list, tuple)):
        raise Unreadable
    for i, item in enumerate(cast("Sequence[Any]", items) if not messages else ()):
        if not isinstance(item, Mapping):
            raise Unreadable
        message = cast("Mapping[str, Any]", item)
        if kind == "responses" and message.get("type", "message") != "message":
            messages.append(_item(message, (key, i), parts))
            continue
        role: Any = message.get("role")
        if not isinstance(role, str):
            raise Unreadable
        if not isinstance(message.get("content"), str | list | tuple | None):
            raise Unreadable
        at: Place = (key, i, "content")
        asks = {k: message[k] for k in ("tool_calls", "function_call") if message.get(k)}
        if kind == "messages":
            asks |= _blocks(message, at, parts, messages)
        mine = parts(message.get("content"), at)
        if role in ("tool", "function"):
            mine = _result(mine)
            asks |= _answers(message.get("tool_call_id"))
        if mine or role != "user" or kind != "messages":
            messages.append(Message(role, mine, {AT: at, **asks}))
    if not messages:
        raise Unreadable
    return Chat(tuple(messages), tuple(documents), tuple(marks))


def write(kind: Kind, body: Mapping[str, Any], chat: Chat, request: Request) -> dict[str, Any]:
    """Return the body with the texts of ``request``, which was made from ``chat``.

    The tool schemas are those of ``request.sampling.extra``.
    """
    changes: dict[Place, Any] = dict.fromkeys(chat.marks, _GONE)
    old = dict(_places(chat.messages, chat.marked))
    kept = dict(_places(request.messages, request.documents))
    kept |= {place: old[place] for place in left_whole(body, chat, request)}
    changes |= {place[:-1]: _GONE for place in old if place not in kept}
    changes |= {place: text for place, text in kept.items() if text != old.get(place)}
    tools = request.sampling.extra.get("tools")
    if tools is not None and tools is not body.get("tools"):
        changes["tools",] = tools
    written = cast("dict[str, Any]", _edited(body, changes)) if changes else dict(body)
    return _with_block(kind, written, request)


def left_whole(body: Mapping[str, Any], chat: Chat, request: Request) -> list[Place]:
    """Return the marked parts that stay though nothing is left of them: else a message is empty."""
    kept = dict(_places(request.messages, request.documents))
    gone = [place for place, _ in _places(chat.messages, chat.marked) if place not in kept]
    found: list[Place] = []
    for content in {place[:-2] for place in gone}:
        lost = sorted(place for place in gone if place[:-2] == content)
        if len(lost) == len(_at(body, content)):
            found.append(lost[0])
    return found


def _item(item: Mapping[str, Any], at: Place, parts: Any) -> Message:
    """Read what is no message among the inputs of the responses API."""
    if item.get("type") in ("function_call_output", "custom_tool_call_output"):
        output = _result(parts(item.get("output"), (*at, "output")))
        return Message("tool", output, {AT: (*at, "output"), **_answers(item.get("call_id"))})
    return Message("assistant", (), {"tool_calls": [_call(item, "call_id", "arguments")]})


def _blocks(
    message: Mapping[str, Any], at: Place, parts: Any, messages: list[Message]
) -> dict[str, Any]:
    """Put the tool results among a message's blocks before it, each as a tool's message."""
    content: Any = message.get("content")
    calls: list[Any] = []
    for j, block in enumerate(map(_fields, _items(content))):
        kind: Any = block.get("type")
        if kind == "tool_result":
            place: Place = (*at, j, "content")
            mine = _result(parts(block.get("content"), place))
            fields = {AT: place, **_answers(block.get("tool_use_id"))}
            messages.append(Message("tool", mine, fields))
        elif kind in ("tool_use", "server_tool_use", "thinking"):
            calls.append(_call(block, "id", "input"))
    return {"tool_calls": calls} if calls else {}


def _call(item: Mapping[str, Any], id_: str, arguments: str) -> dict[str, Any]:
    """Return a call as chat completions have it, as far as it is read."""
    function = {"name": item.get("name"), "arguments": item.get(arguments)}
    return {"id": item.get(id_), "function": function}


def _answers(call_id: Any) -> dict[str, Any]:
    """Return the field that says which call a message answers."""
    return {"tool_call_id": call_id} if isinstance(call_id, str) else {}


def _parts(content: Any, at: Place, documents: list[Document], marks: list[Place]) -> list[Part]:
    if isinstance(content, str):
        return [Text(content, {AT: at})]
    found: list[Part] = []
    for j, item in enumerate(_items(content)):
        if isinstance(item, str):
            found.append(Text(item, {AT: (*at, j)}))
            continue
        part = _fields(item)
        if part.get("type") == "tool_result":
            continue
        mark: Any = part.get(MARK)
        if mark is not None:
            if mark not in ("document", "keep"):
                raise InvalidRequest(f'a part is marked "document" or "keep", got {mark!r:.40}')
            marks.append((*at, j, MARK))
        text: Any = part.get("text")
        if part.get("type") not in _TEXT_TYPES or not isinstance(text, str) or mark == "keep":
            found.append(Opaque(item))
        elif mark == "document":
            documents.append(Document(text, metadata={AT: (*at, j, "text")}))
        else:
            found.append(Text(text, {AT: (*at, j, "text")}))
    return found


def _result(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return a tool's result: a text that is itself written in JSON is not read, nor cut."""
    return tuple(
        Opaque(part) if isinstance(part, Text) and _is_json_text(part.text) else part
        for part in parts
    )


def _is_json_text(text: str) -> bool:
    if not text.lstrip().startswith('"'):
        return False
    try:
        return isinstance(json.loads(text), str)
    except ValueError:
        return False


def _places(messages: Sequence[Message], documents: Sequence[Document]) -> list[tuple[Place, str]]:
    texts = [part for message in messages for part in message.parts if isinstance(part, Text)]
    placed = [(part.fields[AT], part.text) for part in texts if AT in part.fields]
    return placed + [(one.metadata[AT], one.text) for one in documents if AT in one.metadata]


def _with_block(kind: Kind, body: dict[str, Any], request: Request) -> dict[str, Any]:
    """Write the documents that are nowhere in the body into the last user message."""
    rest = tuple(one for one in request.documents if AT not in one.metadata)
    if not rest:
        return body
    block = Request((Message.user(""),), rest).with_documents_inline().messages[0].text
    users = [i for i, message in enumerate(request.messages) if message.role == "user"]
    if not users:
        key = _LISTS[kind]
        return {**body, key: [*body[key], {"role": "user", "content": block}]}
    at: Place = request.messages[users[-1]].fields[AT]
    content = _at(body, at)
    if isinstance(content, str):
        return cast("dict[str, Any]", _edited(body, {at: block + content}))
    part = {"type": "input_text" if kind == "responses" else "text", "text": block}
    return cast("dict[str, Any]", _edited(body, {at: [part, *(content or ())]}))


def _fields(item: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", item) if isinstance(item, Mapping) else {}


def _items(content: Any) -> Sequence[Any]:
    return cast("Sequence[Any]", content) if isinstance(content, (list, tuple)) else ()


def _at(body: Any, place: Place) -> Any:
    for key in place:
        body = body[key]
    return body


def _edited(value: Any, changes: Mapping[Place, Any]) -> Any:
    """Return a copy with the changes; what is not on their way is the same object."""
    if () in changes:
        return changes[()]
    below: dict[str | int, dict[Place, Any]] = {}
    for place, new in changes.items():
        below.setdefault(place[0], {})[place[1:]] = new
    copy: Any = dict(_fields(value)) if isinstance(value, Mapping) else list(value)
    for key, inner in below.items():
        copy[key] = _edited(copy[key], inner)
    if isinstance(value, Mapping):
        return {key: one for key, one in copy.items() if one is not _GONE}
    return [one for one in copy if one is not _GONE]
