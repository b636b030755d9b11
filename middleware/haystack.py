"""A Haystack component between a retriever and a prompt builder.

Needs ``haystack-ai``: pip install 'headrace[haystack]'.
"""

# No "from __future__ import annotations": Haystack reads the types of run as they stand.

from dataclasses import replace
from typing import Any, Never

try:
    from haystack import Document, component, default_from_dict, default_to_dict
except ImportError as error:
    raise ImportError(
        "headrace's Haystack component needs haystack-ai: pip install 'headrace[haystack]'"
    ) from error

from .parts import no_others
from .retrieved import Kept, Retrieved, check_items


@component
class HeadraceCompressor:
    """Compress documents for the query, and rank them if a ``method`` is given.

    ``pipeline.add_component("headrace", HeadraceCompressor(rate=0.5))``. The budget (``rate``,
    ``target_tokens`` or ``threshold``) is over all documents together. Documents come back as
    copies with other content: ids, meta, embeddings and scores stay, but for the score of ranked
    documents, which is the ranker's; one that nothing is left of is left out. Documents without
    text pass as they are, at their place. ``method`` and ``top_k`` are those of ``Rerank``, the
    others those of ``Compress``. Raises InvalidRequest for options that make no sense.
    """

    def __init__(
        self,
        rate: float | None = None,
        target_tokens: int | None = None,
        threshold: float | None = None,
        top_k: int | None = None,
        method: str | None = None,
        compressor: str = "auto",
        tokenizer: str | None = None,
        **others: Never,
    ) -> None:
        no_others(others, type(self).__init__)
        self.rate = rate
        self.target_tokens = target_tokens
        self.threshold = threshold
        self.top_k = top_k
        self.method = method
        self.compressor = compressor
        self.tokenizer = tokenizer
        self._retrieved = Retrieved(
            top_k, method, rate, target_tokens, threshold, compressor, tokenizer
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the component as Haystack writes it into YAML."""
        return default_to_dict(
            self,
            rate=self.rate,
            target_tokens=self.target_tokens,
            threshold=self.threshold,
            top_k=self.top_k,
            method=self.method,
            compressor=self.compressor,
            tokenizer=self.tokenizer,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "HeadraceCompressor":
        """Read what ``to_dict`` wrote."""
        return default_from_dict(cls, data)

    def warm_up(self) -> None:
        """Load the models. Idempotent; ``run`` does it too."""
        self._retrieved.warm_up()

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document], query: str = "") -> dict[str, list[Document]]:
        """Return ``documents``: what is left of them for the query."""
        check_items(documents, Document, "Document(content=...)")
        return {"documents": self._retrieved.shorten(query, documents, _text, _shorter)}

    @component.output_types(documents=list[Document])
    async def run_async(
        self, documents: list[Document], query: str = ""
    ) -> dict[str, list[Document]]:
        """Do the same without blocking the event loop."""
        check_items(documents, Document, "Document(content=...)")
        return {"documents": await self._retrieved.ashorten(query, documents, _text, _shorter)}


def _text(document: Document) -> str:
    return document.content or ""


def _shorter(old: Document, kept: Kept) -> Document:
    score = old.score if kept.score is None else kept.score
    return replace(old, content=kept.text, score=score)
