"""LangChain steps: fewer tokens between a prompt and a model, or between a retriever and a prompt.

Needs ``langchain-core``: pip install 'headrace[langchain]'.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Never, TypeVar, cast

try:
    from langchain_core.callbacks import Callbacks
    from langchain_core.documents import BaseDocumentCompressor
    from langchain_core.documents import Document as LangChainDocument
    from langchain_core.messages import BaseMessage
    from langchain_core.prompt_values import ChatPromptValue, PromptValue, StringPromptValue
    from langchain_core.runnables import Runnable, RunnableConfig
    from pydantic import ConfigDict, PrivateAttr
except ImportError as error:
    raise ImportError(
        "headrace's LangChain steps need langchain-core: pip install 'headrace[langchain]'"
    ) from error

from ..compressors.keep import check_keep
from . import parts
from .blocking import Loop
from .compress import Compress
from .errors import InvalidRequest
from .retrieved import Kept, Retrieved, check_items
from .types import Message, Request

LOG = logging.getLogger("headrace.langchain")

LangChainInput = str | PromptValue | Sequence[BaseMessage]

Chat = TypeVar("Chat", bound=BaseMessage)

ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant"}


class HeadraceRunnable(Runnable[LangChainInput, Any]):
    """Compress what goes into a model: messages or a prompt value in, the same kind out.

    ``prompt | HeadraceRunnable(rate=0.5) | model``. The options mean what they do in ``Compress``,
    which has more; ``question`` is what all is read for, by default what the last user turn asks.
    System and tool messages are never touched, nor is whatever asks something; the last user
    turn is cut too (``last_user="keep"`` turns that off), since that is where a RAG prompt has its
    context. Everything else of a message (ids, names, tool calls, images) stays as it is.

    Raises InvalidRequest for options that make no sense, when it is made.
    """

    def __init__(
        self,
        *,
        rate: float | None = None,
        target_tokens: int | None = None,
        threshold: float | None = None,
        question: str = "",
        compressor: str = "auto",
        tokenizer: str | None = None,
        keep: Sequence[str | re.Pattern[str]] = (),
        last_user: Literal["keep", "context"] = "context",
        **others: Never,
    ) -> None:
        parts.no_others(others, type(self))
        if not isinstance(question, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidRequest(f"question is a text, got {question!r:.60}")
        check_keep(keep)
        self._question = question
        self._loop = Loop()
        self._stage = Compress(
            rate,
            target_tokens,
            threshold,
            compressor=compressor,
            tokenizer=tokenizer,
            keep=tuple(keep),
            last_user=last_user,
        )

    def invoke(
        self, input: LangChainInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Any:
        """Return the input with fewer tokens."""
        return self._call_with_config(self._shorten_sync, input, config, **kwargs)

    async def ainvoke(
        self, input: LangChainInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Any:
        """Return the input with fewer tokens, without blocking the event loop."""
        return await self._acall_with_config(self._shorten, input, config, **kwargs)

    def _shorten_sync(self, prompt: LangChainInput) -> Any:
        return self._loop.run(self._shorten(prompt))

    async def _shorten(self, prompt: LangChainInput) -> Any:
        match prompt:
            case str():
                return (await self._messages([Message.user(prompt)]))[0].text
            case StringPromptValue():
                shortened = await self._messages([Message.user(prompt.text)])
                return prompt.model_copy(update={"text": shortened[0].text})
            case PromptValue():
                messages = await self._chat(prompt.to_messages())
                if isinstance(prompt, ChatPromptValue):
                    return prompt.model_copy(update={"messages": messages})
                return ChatPromptValue(messages=messages)
            case list() | tuple() if all(
                isinstance(one, BaseMessage) for one in cast("Any", prompt)
            ):
                return await self._chat(list(prompt))
            case _:
                raise InvalidRequest(
                    "HeadraceRunnable takes text, a prompt value or a list of LangChain "
                    f"messages, got {type(prompt).__name__}"
                )

    async def _chat(self, messages: list[BaseMessage]) -> list[BaseMessage]:
        if not messages:
            return messages
        shortened = await self._messages([from_langchain(one) for one in messages])
        return [
            old if new.parts == from_langchain(old).parts else with_content(old, new)
            for old, new in zip(messages, shortened, strict=True)
        ]

    async def _messages(self, messages: list[Message]) -> tuple[Message, ...]:
        request = Request(tuple(messages), question=self._question)
        changed = await self._stage.transform(request)
        if changed.messages == request.messages and self._stage.rate != 1:
            row = changed.report.stages[-1]
            LOG.warning("HeadraceRunnable changed nothing: %s", row.decision)
        return changed.messages


def from_langchain(message: BaseMessage) -> Message:
    """Return what the stages need to know of a message."""
    fields: dict[str, Any] = {"role": ROLES.get(message.type, message.type)}
    fields["content"] = cast("Any", message.content)  # pyright: ignore[reportUnknownMemberType]
    if calls := getattr(message, "tool_calls", None) or getattr(
        message, "invalid_tool_calls", None
    ):
        fields["tool_calls"] = calls
    if call_id := getattr(message, "tool_call_id", None):
        fields["tool_call_id"] = call_id
    return Message.from_dict(fields)


def with_content(old: Chat, new: Message) -> Chat:
    """Return the message with other content, and everything else as it is."""
    return old.model_copy(update={"content": new.to_dict()["content"]})


class HeadraceCompressor(BaseDocumentCompressor):
    """Rerank and compress retrieved documents for a query.

    As the ``base_compressor`` of a ContextualCompressionRetriever, or by itself. Documents come
    back best first with their ids and metadata, to which ``relevance_score`` is added; one that
    nothing is left of is left out. ``method`` is that of ``Rerank``, the other options are those of
    ``Compress``; without a budget, documents are only reranked. Documents without text pass as they
    are, at their place. Raises InvalidRequest for options that make no sense, when it is made.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid", frozen=True)

    top_k: int | None = None
    method: str = "auto"
    rate: float | None = None
    target_tokens: int | None = None
    threshold: float | None = None
    compressor: str = "auto"
    tokenizer: str | None = None

    _retrieved: Retrieved = PrivateAttr()

    if not TYPE_CHECKING:  # which reads the options off the fields

        def __init__(self, **options: Any) -> None:
            """Say wrong options at once, in one line, which pydantic would wrap."""
            Retrieved.of({"method": "auto", **options})
            super().__init__(**options)

    def model_post_init(self, context: Any, /) -> None:
        """Make the stages."""
        self._retrieved = Retrieved.of(self.__dict__)

    def compress_documents(
        self,
        documents: Sequence[LangChainDocument],
        query: str,
        callbacks: Callbacks | None = None,
    ) -> Sequence[LangChainDocument]:
        """Return the documents that answer the query, shorter and best first.

        ``callbacks`` is LangChain's; nothing in here is a run of its own that they could hear of.
        """
        check_items(documents, LangChainDocument, "Document(page_content=...)")
        return self._retrieved.shorten(query, documents, _text, _scored)

    async def acompress_documents(
        self,
        documents: Sequence[LangChainDocument],
        query: str,
        callbacks: Callbacks | None = None,
    ) -> Sequence[LangChainDocument]:
        """Return the documents that answer the query, shorter and best first."""
        check_items(documents, LangChainDocument, "Document(page_content=...)")
        return await self._retrieved.ashorten(query, documents, _text, _scored)


def _text(document: LangChainDocument) -> str:
    return document.page_content


def _scored(old: LangChainDocument, new: Kept) -> LangChainDocument:
    metadata: Mapping[str, Any] = cast("Any", old).metadata
    return old.model_copy(
        update={
            "page_content": new.text,
            "metadata": {**metadata, "relevance_score": new.score},
        }
    )
