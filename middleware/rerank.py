"""The stage that puts the documents in order and drops the worst."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal

from ..compressors import Reranker
from ..compressors import rerank as rank
from ..compressors.rerankers import check_top_k
from . import parts
from .report import StageReport
from .threads import in_thread
from .transform import Transform
from .types import Document, Request


@dataclass(frozen=True)
class Rerank(Transform):
    """Keep the ``top_k`` documents that answer the question best, best first.

    ``method`` is "auto" (the embedded model; of many documents BM25 chooses those that it reads),
    "bm25", or what else ``make_reranker`` knows. Ids and metadata are kept, ``score`` is set; of
    documents with the same title and text the first one counts.

    Raises InvalidRequest for options that make no sense, when it is made.
    """

    name: ClassVar[str] = "rerank"
    top_k: int | None = None
    method: str = "auto"
    on_error: Literal["pass", "raise"] = "pass"

    def __post_init__(self) -> None:
        check_top_k(self.top_k)
        parts.check_method(self.method)
        parts.one_of("on_error", self.on_error, ("pass", "raise"))

    @cached_property
    def reranker(self) -> Reranker:
        """The method, loaded when first needed."""
        return parts.reranker(self.method)

    async def transform(self, request: Request) -> Request:
        """Return the request with its documents ranked."""
        started = time.perf_counter()
        if not request.documents:
            row = StageReport(self.name, "no documents to rank")
            return replace(request, report=request.report.add(row))
        unique: dict[tuple[str, str], Document] = {}
        for document in request.documents:
            unique.setdefault((document.title, document.text), document)
        num_same = len(request.documents) - len(unique)
        once = replace(request, documents=tuple(unique.values()))
        ranked = await in_thread(self._rank, once)
        same = f", {num_same} of them copies" if num_same else ""
        row = StageReport(
            self.name,
            f"kept {len(ranked)} of {len(request.documents)} documents{same}"
            f" by {self.reranker.name}",
            time.perf_counter() - started,
            details={
                "method": self.reranker.name,
                "copies": num_same,
                "documents": [{"id": d.id, "title": d.title, "score": d.score} for d in ranked],
            },
        )
        return replace(request, documents=tuple(ranked), report=request.report.add(row))

    def _rank(self, request: Request) -> list[Document]:
        return rank(request.question, request.documents, top_k=self.top_k, reranker=self.reranker)
