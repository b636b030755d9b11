"""LangChain agents: an agent's history gets shorter before each call of the model.

Needs ``langchain`` 1.x: pip install 'headrace[langchain]'.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Never, cast

try:
    from langchain.agents.middleware.types import AgentMiddleware, ModelRequest, ModelResponse
    from langchain.tools import ToolRuntime
    from langchain_core.messages import AIMessage, AnyMessage, BaseMessage
    from langchain_core.tools import BaseTool, StructuredTool
except ImportError as error:
    raise ImportError(
        "headrace's agent middleware needs langchain: pip install 'headrace[langchain]'"
    ) from error

from ..compressors import Budget, JsonPolicy
from ..compressors.keep import check_keep
from . import parts
from . import retrieve as recall
from .blocking import Loop
from .compress import Compress
from .errors import InvalidRequest
from .given_back import NAME
from .langchain import from_langchain, with_content
from .report import StageReport
from .turns import check_leaves_some
from .types import Request

LOG = logging.getLogger("headrace.langchain")

RESULTS: Mapping[int, float] = {0: 0.5, 2: 0.2}

Answer = ModelResponse[Any]


class HeadraceMiddleware(AgentMiddleware[Any, Any, Any]):
    """Compress what an agent has said and seen, old tool results harder than recent ones.

    ``create_agent(model, tools, middleware=[HeadraceMiddleware()])``. ``results`` is the share of
    tokens that a tool's result keeps, by its age in blocks of ``every`` calls of the model: with
    the defaults half at once, and a fifth from the end of the second block of 16 calls on. What was
    sent changes at the end of a block only, so that in between, the prefix cache of an engine or of
    a paid API reads only what is new. ``results={0: 0.5}`` never changes what was sent;
    ``{1: 0.5, 3: 0.2}`` leaves a result whole until the model has seen it, and costs more reading.
    A single number is that share from the end of the first block on, ``{1: 0.3}``: a run of no more
    than ``every`` calls stays whole.
    ``turns`` is the share that earlier words of user and assistant keep, all by default.

    System message, last user turn and messages that call tools are the same objects as before;
    ids, names, artifacts and images stay; JSON results stay JSON with all records (``json`` says
    otherwise by key). The agent's state keeps the originals. What was done is in
    ``response_metadata["headrace"]`` of the answer.

    ``retrieve=True`` gives the model a tool of that name that returns the whole of a shortened
    result, and each shortened result a marker with its id (not JSON lists, which have no place for
    one). If compressing fails, the request goes on as it is, with a warning.

    Raises InvalidRequest for options that make no sense.
    """

    def __init__(
        self,
        *,
        results: float | Mapping[int, float] = RESULTS,
        turns: float = 1,
        every: int = 16,
        compressor: str = "auto",
        tokenizer: str | None = None,
        keep: Sequence[str | re.Pattern[str]] = (),
        json: JsonPolicy | None = None,
        fold: bool = True,
        retrieve: bool = False,
        **others: Never,
    ) -> None:
        super().__init__()
        parts.no_others(others, type(self))
        check_keep(keep)
        parts.one_of("retrieve", retrieve, (True, False))
        try:
            check_leaves_some(Budget(rate=turns))
        except InvalidRequest as error:
            raise InvalidRequest(f"turns: {error}") from error
        self._loop = Loop()
        self._retrieves = retrieve
        self._stage = Compress(
            turns,
            compressor=compressor,
            tokenizer=tokenizer,
            keep=tuple(keep),
            rates={"tool": results},
            every=every,
            json=json,
            fold=fold,
        )
        self.tools: Sequence[BaseTool] = [_tool()] if retrieve else []

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Answer]
    ) -> Answer:
        """Call the model with a shorter history."""
        changed, row = self._loop.run(self._shorter(request))
        return _told(handler(changed), row)

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[Answer]],
    ) -> Answer:
        """Call the model with a shorter history, without blocking the event loop."""
        changed, row = await self._shorter(request)
        return _told(await handler(changed), row)

    async def _shorter(
        self, request: ModelRequest[Any]
    ) -> tuple[ModelRequest[Any], StageReport | None]:
        if self._retrieves and any(self._is_anothers(tool) for tool in request.tools):
            raise InvalidRequest(f"a tool called {NAME!r} is there already; rename it")
        if not request.messages:
            return request, None
        before = Request(tuple(from_langchain(message) for message in request.messages))
        try:
            after = await self._stage.transform(before)
        except InvalidRequest:
            raise
        except Exception as error:
            LOG.warning("HeadraceMiddleware failed, the request goes on as it is: %s", error)
            return request, StageReport(self._stage.name, f"failed, passed on unchanged: {error}")
        row = after.report.stages[-1]
        messages: list[AnyMessage] = []
        count = self._stage.engine.counter.count
        for given, old, new in zip(request.messages, before.messages, after.messages, strict=True):
            if self._retrieves:
                new = recall.marked(old, new, count)
            messages.append(given if new.parts == old.parts else with_content(given, new))
        return request.override(messages=messages), row

    def _is_anothers(self, tool: BaseTool | dict[str, Any]) -> bool:
        is_called_so = isinstance(tool, BaseTool) and tool.name == NAME
        return is_called_so and all(tool is not ours for ours in self.tools)


def _told(answer: Answer, row: StageReport | None) -> Answer:
    """Return the model's answer with what was saved in its metadata."""
    if row is None:
        return answer
    said = {"decision": row.decision, "tokens_in": row.tokens_in, "tokens_out": row.tokens_out}
    result: list[BaseMessage] = [
        message.model_copy(update={"response_metadata": {**_metadata(message), "headrace": said}})
        if isinstance(message, AIMessage)
        else message
        for message in answer.result
    ]
    return replace(answer, result=result)


def _metadata(message: AIMessage) -> dict[str, Any]:
    return cast("dict[str, Any]", cast("Any", message).response_metadata)


def _retrieve(call_id: str, runtime: ToolRuntime[Any, Any]) -> str:
    chat: Sequence[BaseMessage] = runtime.state["messages"]
    return recall.original([from_langchain(message) for message in chat], call_id)


def _tool() -> BaseTool:
    return StructuredTool.from_function(_retrieve, name=NAME, description=recall.DESCRIPTION)
