"""Langchain's agent loop with a scripted model: its tools return real text.

Needs ``langchain``; a test that imports this asks for that first.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import tool
from pydantic import PrivateAttr

PARTS = (Path(__file__).resolve().parents[2] / "LICENSE").read_text().split("\n\n")
SYSTEM = "You read licences for people. " * 30
TASK = "Read the licence part by part, and say at the end which parts name patents. " * 3
# From tau-bench (MIT): what its airline's tools return, with a note of ours.
FLIGHTS = [
    {"flight_number": "HAT069", "origin": "JFK", "prices": {"economy": 121}, "note": PARTS[5]},
    {"flight_number": "HAT083", "origin": "JFK", "prices": {"economy": 100}, "note": PARTS[6]},
]
USER = {"name": {"first_name": "Mia", "last_name": "Li"}, "note": PARTS[7], "zip": "78750"}


@tool
def read(part: int) -> str:
    """Return a part of the licence."""
    return " ".join(PARTS[part + 3 : part + 7])


@tool
def flights(part: int) -> str:
    """Return flights as a JSON list."""
    return json.dumps(FLIGHTS)


@tool
def passenger(part: int) -> str:
    """Return a passenger as a JSON object."""
    return json.dumps(USER)


class Scripted(GenericFakeChatModel):
    """Langchain's scripted model, which notes what it was sent."""

    _sent: list[list[BaseMessage]] = PrivateAttr(default_factory=list[list[BaseMessage]])
    _tools: list[list[str]] = PrivateAttr(default_factory=list[list[str]])

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, Any]:
        self._tools.append([one.name for one in tools])
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self._sent.append(list(messages))
        return super()._generate(messages, stop, run_manager, **kwargs)


def calls(*names: str) -> list[AIMessage]:
    """Return answers that call these tools one after another, and a last one that says so."""
    asked = [
        AIMessage("", tool_calls=[{"name": name, "args": {"part": at}, "id": f"call-{at}"}])
        for at, name in enumerate(names)
    ]
    return [*asked, AIMessage("Part 3 names patents.")]


def scripted(*names: str) -> Scripted:
    return Scripted(messages=iter(calls(*names)), disable_streaming=True)


def run(model: Scripted, *middleware: AgentMiddleware[Any, Any, Any]) -> dict[str, Any]:
    agent: Any = create_agent(
        model, [read, flights, passenger], system_prompt=SYSTEM, middleware=middleware
    )
    state: dict[str, Any] = agent.invoke({"messages": [HumanMessage(TASK)]})
    return state


def is_paired(messages: Sequence[BaseMessage]) -> bool:
    """Whether each result follows its call, and each call has its result."""
    waiting: list[Any] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in waiting:
                return False
            waiting.remove(message.tool_call_id)
        elif waiting:
            return False
        if isinstance(message, AIMessage):
            waiting = [call["id"] for call in message.tool_calls]
    return not waiting


def size(message: BaseMessage) -> int:
    return len(str(message.content))


def results(messages: Sequence[BaseMessage]) -> list[ToolMessage]:
    return [message for message in messages if isinstance(message, ToolMessage)]
