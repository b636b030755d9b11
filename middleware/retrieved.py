"""Rank retrieved texts, cut them, and give them back with what they carry.

The steps for LangChain, LlamaIndex and Haystack translate to and from this.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self, TypeVar, cast

from . import parts
from .blocking import Loop
from .compress import Compress
from .errors import InvalidRequest
from .rerank import Rerank
from .shown import nearest
from .transform import Transform
from .types import Document, Message, Request

Item = TypeVar("Item")

LOG = logging.getLogger("headrace.retrieved")


@dataclass(frozen=True, slots=True)
class Kept:
    """A text that stays: which one it was, what is left of it, and its score if it was ranked."""

    index: int
    text: str
    score: float | None


def check_items(items: object, kind: type, how: str) -> None:
    """Raise InvalidRequest for what is no list of a framework's items; ``how`` makes one."""
    if not isinstance(items, (list, tuple)):
        raise InvalidRequest(f"a list of {kind.__name__} is taken, got {items!r:.60}")
    for one in cast("Sequence[object]", items):
        if not isinstance(one, kind):
            raise InvalidRequest(f"a list of {kind.__name__} is taken, got {one!r:.60}; make {how}")


@dataclass(frozen=True)
class Retrieved:
    """Rank texts by ``method`` (None: leave their order), then compress them for the question.

    ``method`` and ``top_k`` are those of ``Rerank``, the other options those of ``Compress``;
    without a budget texts stay whole. Where more stays than the budget, the log
    ``headrace.retrieved`` warns of it, with the reason. Raises InvalidRequest for options that make
    no sense.
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
        parts.check_compressor(self.compressor)  # also without a budget, which it waits for
        parts.check_tokenizer(self.tokenizer)
        _ = self.stages  # wrong options are said here

    @classmethod
    def of(cls, options: Mapping[str, Any], others: Collection[str] = ()) -> Self:
        """Read options from names and values, but for ``others``. Raises InvalidRequest."""
        names = [name for name in cls.__match_args__ if not name.startswith("_")]
        for name in options:
            if name not in names and name not in others:
                raise InvalidRequest(f"no option {name!r:.40}; {nearest(name, names)}")
        return cls(**{name: value for name, value in options.items() if name in names})

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

    def shorten(
        self,
        question: str,
        items: Sequence[Item],
        text_of: Callable[[Item], str],
        write: Callable[[Item, Kept], Item],
    ) -> list[Item]:
        """Return what is left of a framework's items for the question, best first if ranked.

        Items of whose text nothing is left are left out; those that have no text (images) are the
        same objects, at their place. Raises InvalidRequest where texts are to be ranked for an
        empty question.
        """
        return self._loop.run(self.ashorten(question, items, text_of, write))

    async def ashorten(
        self,
        question: str,
        items: Sequence[Item],
        text_of: Callable[[Item], str],
        write: Callable[[Item, Kept], Item],
    ) -> list[Item]:
        """Do the same without blocking the event loop."""
        texts = {i: text for i, item in enumerate(items) if (text := text_of(item))}
        kept = await self._cut(question, texts)
        found = {one.index: write(items[one.index], one) for one in kept}
        others = {i: item for i, item in enumerate(items) if i not in texts}
        if self.method is None:
            return [item for _, item in sorted((found | others).items())]
        placed = [*found.values()]
        for i, item in others.items():
            placed.insert(i, item)
        return placed

    async def _cut(self, question: str, texts: Mapping[int, str]) -> list[Kept]:
        if not texts:
            return []
        if self.method is not None and not question.strip():
            raise InvalidRequest("documents are ranked for a question, got an empty one")
        documents = tuple(Document(text, id=str(i)) for i, text in texts.items())
        request = Request((Message.user(question),), documents)
        for stage in self.stages:
            before, request = request, await stage.transform(request)
            if isinstance(stage, Compress):
                _warn_of_more(stage, before, request)
        return [Kept(int(d.id or 0), d.text, d.score) for d in request.documents if d.text]


def _warn_of_more(stage: Compress, old: Request, new: Request) -> None:
    count = stage.engine.counter.count
    before, after = (sum(count(one.text) for one in request.documents) for request in (old, new))
    limit = stage.budget.limit(before)
    if limit is not None and after > limit:
        why = new.report.stages[-1].decision
        LOG.warning("%d tokens stay, the budget is %d: %s", after, limit, why)
