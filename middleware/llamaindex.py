"""A LlamaIndex step between a retriever and a response synthesizer.

Needs ``llama-index-core``: pip install 'headrace[llamaindex]'.
"""

from __future__ import annotations

from typing import Any

try:
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
    from pydantic import ConfigDict, PrivateAttr
except ImportError as error:
    raise ImportError(
        "headrace's node postprocessor needs llama-index-core: pip install 'headrace[llamaindex]'"
    ) from error

from .retrieved import Kept, Retrieved


class HeadracePostprocessor(BaseNodePostprocessor):
    """Compress retrieved nodes for the query, and rank them if a ``method`` is given.

    ``index.as_query_engine(node_postprocessors=[HeadracePostprocessor(rate=0.5)])``. The budget
    (``rate``, ``target_tokens`` or ``threshold``) is over all nodes together. Nodes come back as
    copies with other text: ids, metadata, relationships and scores stay, but for the score of
    ranked nodes, which is the ranker's; a node that nothing is left of is left out. Nodes without
    text pass as they are, at the end. ``method`` and ``top_k`` are those of ``Rerank``, the others
    those of ``Compress``. Raises InvalidRequest for options that make no sense.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    top_k: int | None = None
    method: str | None = None
    rate: float | None = None
    target_tokens: int | None = None
    threshold: float | None = None
    compressor: str = "auto"
    tokenizer: str | None = None

    _retrieved: Retrieved = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Make the stages, so that wrong options are said at once."""
        super().model_post_init(context)
        self._retrieved = Retrieved(
            self.top_k,
            self.method,
            self.rate,
            self.target_tokens,
            self.threshold,
            self.compressor,
            self.tokenizer,
        )

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex serialises the step."""
        return "HeadracePostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        texts, others = _split(nodes)
        kept = self._retrieved.cut(_question(query_bundle), [_text(node) for node in texts])
        return [*(_shorter(texts[one.index], one) for one in kept), *others]

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        texts, others = _split(nodes)
        kept = await self._retrieved.acut(_question(query_bundle), [_text(node) for node in texts])
        return [*(_shorter(texts[one.index], one) for one in kept), *others]


def _question(query_bundle: QueryBundle | None) -> str:
    return "" if query_bundle is None else query_bundle.query_str


def _text(node: NodeWithScore) -> str:
    return node.node.get_content(MetadataMode.NONE)


def _split(nodes: list[NodeWithScore]) -> tuple[list[NodeWithScore], list[NodeWithScore]]:
    texts = [node for node in nodes if _text(node)]
    return texts, [node for node in nodes if not _text(node)]


def _shorter(old: NodeWithScore, kept: Kept) -> NodeWithScore:
    score = old.score if kept.score is None else kept.score
    if kept.text == _text(old):
        return NodeWithScore(node=old.node, score=score)
    node = old.node.model_copy()
    node.set_content(kept.text)
    return NodeWithScore(node=node, score=score)
