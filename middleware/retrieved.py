"""Rank retrieved texts, cut them, and give them back with what they carry.

The steps for LangChain, LlamaIndex and Haystack translate to and from this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from .blocking import Loop
from .compress import Compress
from .errors import InvalidRequest
from .rerank import Rerank
from .transform import Transform
from .types import Document, Message, Request


@dataclass(frozen=True, slots=True)
class Kept:
    """A text that stays: which one it was, what is left of it, and its score if it was ranked."""

    index: int
    text: str
    score: float | None


@dataclass(frozen=True)
class Retrieved:
    """Rank texts by ``method`` (None: leave their order), then compress them for the question.

    ``method`` and ``top_k`` are those of ``Rerank``, the other options those of ``Compress``;
    without a budget texts stay whole. Raises InvalidRequest for options that make no sense.
    """

    top_k: int | None = None
    method: str | None = None
    rate: float | None = None
    target_tokens: int | None = None
    threshold: float | None = None
    compressor: str = "auto"
    tokenizer: str | None = None
    _loop: Loop = field(default_factory=Loop, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.top_k is not None and self.method is None:
            raise InvalidRequest(
                f'top_k={self.top_k} needs a method that ranks, such as "auto" or "bm25"'
            )
        _ = self.stages  # wrong options are said here

    @cached_property
    def stages(self) -> tuple[Transform, ...]:
        """The stages that the options have use for."""
        budget = (self.rate, self.target_tokens, self.threshold)
        found: list[Transform] = []
        if self.method is not None:
            found.append(Rerank(self.top_k, self.method))
        if budget != (None, None, None):
            found.append(Compress(*budget, compressor=self.compressor, tokenizer=self.tokenizer))
        return tuple(found)

    def warm_up(self) -> None:
        """Load what the stages use. Idempotent."""
        for stage in self.stages:
            _ = stage.reranker if isinstance(stage, Rerank) else None
            _ = stage.engine if isinstance(stage, Compress) else None

    def cut(self, question: str, texts: Sequence[str]) -> list[Kept]:
        """Return what is left of the texts for the question, best first if they are ranked.

        Texts of which nothing is left are left out. Raises InvalidRequest where texts are to be
        ranked for an empty question.
        """
        return self._loop.run(self.acut(question, texts))

    async def acut(self, question: str, texts: Sequence[str]) -> list[Kept]:
        """Do the same without blocking the event loop."""
        if not texts:
            return []
        if self.method is not None and not question.strip():
            raise InvalidRequest("documents are ranked for a question, got an empty one")
        documents = tuple(Document(text, id=str(i)) for i, text in enumerate(texts))
        request = Request((Message.user(question),), documents)
        for stage in self.stages:
            request = await stage.transform(request)
        return [Kept(int(d.id or 0), d.text, d.score) for d in request.documents if d.text]
