"""Give back what was cut of a tool's result, when the model asks for it.

Off unless asked for: a marker that nobody can follow, or a tool that a client has not heard of, is
worse than none.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, cast

from .compress import Compress
from .errors import InvalidRequest
from .given_back import ARGUMENT, NAME
from .report import StageReport
from .transform import Transform
from .types import (
    Event,
    Finished,
    Handler,
    Message,
    Request,
    Response,
    Text,
    ToolCall,
    ToolCallDelta,
    Usage,
)

KEY = "shortened"
"""The key that a JSON object gets as its marker."""

DESCRIPTION = (
    "Older tool results in this conversation may be shortened; those say so and give their id."
    " Returns the whole result for such an id. Use it only when something that is needed is missing"
)
TOOL: Mapping[str, Any] = {
    "type": "function",
    "function": {
        "name": NAME,
        "description": DESCRIPTION,
        "parameters": {
            "type": "object",
            "properties": {
                ARGUMENT: {"type": "string", "description": "the id of the shortened result"}
            },
            "required": [ARGUMENT],
        },
    },
}
"""The tool as engines are told of it, in OpenAI's shape."""


def original(messages: Sequence[Message], call_id: str) -> str:
    """Return the whole result of a tool call, from a chat that is not compressed.

    Engines that use an id twice get both results. An id that is in no message gives a sentence that
    says so and names those that are: it goes to the model, which can ask again.

    >>> original([Message("tool", (Text("4 sacks"),), {"tool_call_id": "a"})], "b")
    "There is no result 'b'. There are: a"
    """
    results: dict[str, list[str]] = {}
    for message in messages:
        if isinstance(own := message.fields.get("tool_call_id"), str):
            results.setdefault(own, []).append(message.text)
    if call_id in results:
        return "\n\n".join(results[call_id])
    return f"There is no result {call_id!r}. There are: {', '.join(results) or 'none'}"


def marked(old: Message, new: Message, count: Callable[[str], int]) -> Message:
    """Return a shortened tool result with the id under which the whole of it can be had.

    Text gets a last line, a JSON object a key ``"shortened"``; JSON lists and JSON Lines stay as
    they are, since an item more would be a false one. Where the marker takes the place that was
    saved, the whole result comes back.
    """
    call_id = new.fields.get("tool_call_id")
    if new.parts == old.parts or not isinstance(call_id, str):
        return new
    at = max((i for i, part in enumerate(new.parts) if isinstance(part, Text)), default=-1)
    last = cast("Text", new.parts[at])
    text = _with_marker(last.text, call_id)
    changed = replace(new, parts=(*new.parts[:at], replace(last, text=text), *new.parts[at + 1 :]))
    return changed if count(changed.text) < count(old.text) else old


def _with_marker(text: str, call_id: str) -> str:
    try:
        value: Any = json.loads(text, parse_int=str)  # a numeral may have thousands of digits
    except RecursionError:
        return text
    except ValueError:
        if _is_json(text.split("\n", 1)[0]):  # JSON Lines
            return text
        return f'{text}\n[shortened; {NAME}(call_id="{call_id}") returns all of it]'
    if not isinstance(value, dict) or KEY in value:
        return text
    end = text.rindex("}")
    comma = ", " if value else ""
    return f"{text[:end].rstrip()}{comma}{json.dumps(KEY)}: {json.dumps(call_id)}{text[end:]}"


def _is_json(line: str) -> bool:
    try:
        return isinstance(json.loads(line, parse_int=str), (dict, list))
    except (ValueError, RecursionError):
        return False


@dataclass(frozen=True)
class Retrieve:
    """Compress a chat, and let the model ask for what was cut of its tools' results.

    Stands in a pipeline in the place of the ``Compress`` that it is given. The model gets one
    more tool, ``retrieve``; what it asks of that is answered here, from the chat as the caller sent
    it, and the model is called again, ``max_rounds`` times at most: the caller sees neither the
    tool nor the calls. Calls of other tools in the same answer go to the caller, and those of
    ``retrieve`` beside them are dropped. Text and usage are those of all calls together.

    Raises InvalidRequest where the caller has a tool of that name.
    """

    name: ClassVar[str] = NAME
    compress: Compress
    max_rounds: int = 3

    def __post_init__(self) -> None:
        if type(self.max_rounds) is not int or self.max_rounds < 1:
            raise InvalidRequest(f"max_rounds must be 1 or more, got {self.max_rounds!r:.40}")

    async def __call__(
        self, request: Request, call_next: Handler, /
    ) -> AsyncGenerator[Event, None]:
        """Yield the answer's events without those of the ``retrieve`` tool."""
        tools = request.sampling.extra.get("tools") or ()
        if any(_name(tool) == NAME for tool in tools):
            raise InvalidRequest(f"a tool called {NAME!r} is there already; rename it")
        extra = {**request.sampling.extra, "tools": [*tools, TOOL]}
        whole = replace(request, sampling=replace(request.sampling, extra=extra))
        sent = await self._shortened(whole)
        spent, asked, text = Usage(num_calls=0), 0, ""
        while True:
            async with aclosing(call_next(sent)) as events:
                response: Response | None = None
                async for event in _without_tool(events):
                    if isinstance(event, Finished):
                        response = event.response
                    else:
                        yield event
            if response is None:
                return
            spent += response.usage
            text += response.text
            ours = [call for call in response.tool_calls if call.name == NAME]
            others = tuple(call for call in response.tool_calls if call.name != NAME)
            if not ours or others or asked == self.max_rounds:
                break
            asked += 1
            said = [_call(response), *(_answer(request.messages, call) for call in ours)]
            sent = replace(sent, messages=(*sent.messages, *said))
        decision = f"the model asked {asked} times for what was cut"
        reason = response.finish_reason
        yield Finished(
            replace(
                response,
                text=text,
                tool_calls=others,
                usage=spent,
                finish_reason="stop" if reason == "tool_calls" and not others else reason,
                report=response.report.add(StageReport(NAME, decision, details={"asked": asked})),
            )
        )

    async def _shortened(self, request: Request) -> Request:
        """Return the request as ``compress`` makes it, with the markers."""
        last = request

        async def take(changed: Request) -> AsyncGenerator[Event, None]:
            nonlocal last
            last = changed
            yield Finished(Response(""))

        async for _ in Transform.__call__(self.compress, request, take):  # not timed: no engine
            pass
        count = self.compress.engine.counter.count
        pairs = zip(request.messages, last.messages, strict=True)
        return replace(last, messages=tuple(marked(old, new, count) for old, new in pairs))


async def _without_tool(events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
    """Yield events but for the pieces of calls of the tool; the others are numbered anew."""
    numbers: dict[int, int | None] = {}
    async for event in events:
        if isinstance(event, ToolCallDelta):
            if event.index not in numbers:
                used = sum(number is not None for number in numbers.values())
                numbers[event.index] = None if event.name == NAME else used
            number = numbers[event.index]
            if number is None:
                continue
            event = replace(event, index=number)
        yield event


def _call(response: Response) -> Message:
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call in response.tool_calls
    ]
    parts = (Text(response.text),) if response.text else ()
    shape: Literal["text", "null"] = "text" if parts else "null"
    return Message("assistant", parts, {"tool_calls": calls}, shape)


def _answer(messages: Sequence[Message], call: ToolCall) -> Message:
    try:
        given: Any = json.loads(call.arguments)
    except (ValueError, RecursionError):
        given = None
    call_id: Any = cast("dict[str, Any]", given).get(ARGUMENT) if isinstance(given, dict) else None
    text = original(messages, call_id if isinstance(call_id, str) else call.arguments)
    return Message("tool", (Text(text),), {"tool_call_id": call.id})


def _name(tool: object) -> object:
    function = cast("Mapping[str, object]", tool).get("function") if _is_object(tool) else None
    return cast("Mapping[str, object]", function).get("name") if _is_object(function) else None


def _is_object(value: object) -> bool:
    return isinstance(value, Mapping)
