"""A LlamaIndex step between a retriever and a response synthesizer.

Needs ``llama-index-core``: pip install 'headrace[llamaindex]'.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

try:
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
    from pydantic import ConfigDict, PrivateAttr
except ImportError as error:
    raise ImportError(
        "headrace's node postprocessor needs llama-index-core: pip install 'headrace[llamaindex]'"
    ) from error

from .retrieved import Kept, Retrieved, check_items


class HeadracePostprocessor(BaseNodePostprocessor):
    """Compress retrieved nodes for the query, and rank them if a ``method`` is given.

    ``index.as_query_engine(node_postprocessors=[HeadracePostprocessor(rate=0.5)])``. The budget
    (``rate``, ``target_tokens`` or ``threshold``) is over all nodes together. Nodes come back as
    copies with other text: ids, metadata, relationships and scores stay, but for the score of
    ranked nodes, which is the ranker's; a node that nothing is left of is left out. Nodes without
    text pass as they are, at their place. ``method`` and ``top_k`` are those of ``Rerank``, the
    others those of ``Compress``. Raises InvalidRequest for options that make no sense.
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

    if not TYPE_CHECKING:  # which reads the options off the fields

        def __init__(self, **options: Any) -> None:
            """Say wrong options at once, in one line, which pydantic would wrap."""
            Retrieved.of(options, type(self).model_fields)
            super().__init__(**options)

    def model_post_init(self, context: Any, /) -> None:
        """Make the stages."""
        super().model_post_init(context)
        self._retrieved = Retrieved.of(self.__dict__, type(self).model_fields)

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex serialises the step."""
        return "HeadracePostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        check_items(nodes, NodeWithScore, "NodeWithScore(node=TextNode(text=...))")
        return self._retrieved.shorten(_question(query_bundle), nodes, _text, _shorter)

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        check_items(nodes, NodeWithScore, "NodeWithScore(node=TextNode(text=...))")
        return await self._retrieved.ashorten(_question(query_bundle), nodes, _text, _shorter)


def _question(query_bundle: QueryBundle | None) -> str:
    return "" if query_bundle is None else query_bundle.query_str


def _text(node: NodeWithScore) -> str:
    return node.node.get_content(MetadataMode.NONE)


def _shorter(old: NodeWithScore, kept: Kept) -> NodeWithScore:
    score = old.score if kept.score is None else kept.score
    if kept.text == _text(old):
        return NodeWithScore(node=old.node, score=score)
    node = old.node.model_copy()
    node.set_content(kept.text)
    return NodeWithScore(node=node, score=score)
