"""The node postprocessor in the real llama-index-core."""

from __future__ import annotations

import re
from typing import Any

import pytest

pytest.importorskip("llama_index.core", reason="pip install 'headrace[llamaindex]'")

from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import (
    ImageNode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)
from mill import DAYS, QUESTION, TABLE, TEXTS, WHEELS, WHEN, WRONG
from pydantic import Field

import headrace
from headrace import InvalidRequest
from headrace.middleware.llamaindex import HeadracePostprocessor


def nodes() -> list[NodeWithScore]:
    return [
        NodeWithScore(
            node=TextNode(
                id_=f"n{at}",
                text=text,
                metadata={"page": at, "secret": "in no prompt"},
                excluded_llm_metadata_keys=["secret"],
                relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="book")},
                start_char_idx=at,
            ),
            score=0.9 - at / 10,
        )
        for at, text in enumerate(TEXTS)
    ]


def test_nodes_get_shorter_and_keep_ids_scores_metadata_and_order() -> None:
    before = nodes()
    after = HeadracePostprocessor(rate=0.5).postprocess_nodes(before, query_str=QUESTION)
    assert [node.node_id for node in after] == ["n0", "n1", "n2"]
    for old, new in zip(nodes(), after, strict=True):
        assert new.score == old.score
        same = {"text": ""}
        assert old.node.model_copy(update=same) == new.node.model_copy(update=same)
    assert len(after[1].text) < 0.7 * len(DAYS)
    assert "21 sacks" in after[1].text
    assert before == nodes()


def test_ranked_nodes_come_best_first_with_the_rankers_score() -> None:
    after = HeadracePostprocessor(method="bm25", top_k=1).postprocess_nodes(
        nodes(), query_str=QUESTION
    )
    assert [node.node_id for node in after] == ["n1"]
    assert after[0].text == DAYS
    assert after[0].score != nodes()[1].score


async def test_async_gives_the_same() -> None:
    step = HeadracePostprocessor(rate=0.5, method="bm25")
    once = step.postprocess_nodes(nodes(), QueryBundle(QUESTION))
    assert await step.apostprocess_nodes(nodes(), QueryBundle(QUESTION)) == once


def image(name: str) -> NodeWithScore:
    return NodeWithScore(node=ImageNode(image="AAAA", id_=name), score=0.1)


async def test_nodes_without_text_pass_as_they_are_at_their_place() -> None:
    step = HeadracePostprocessor(rate=0.5)
    a, b, c = image("a"), image("b"), image("c")
    first, second, third = nodes()
    given = [a, first, b, second, third, c]
    after = step.postprocess_nodes(given, query_str=QUESTION)
    assert [node.node_id for node in after] == ["a", "n0", "b", "n1", "n2", "c"]
    assert [after[0], after[2], after[5]] == [a, b, c]
    assert await step.apostprocess_nodes(given, QueryBundle(QUESTION)) == after
    assert step.postprocess_nodes([a, b], query_str=QUESTION) == [a, b]


def test_nodes_without_text_keep_their_place_among_ranked_ones_too() -> None:
    step = HeadracePostprocessor(method="bm25", top_k=1)
    first, second, third = nodes()
    given = [first, image("a"), second, third, image("b")]
    after = step.postprocess_nodes(given, query_str=QUESTION)
    assert [node.node_id for node in after] == ["n1", "a", "b"]


def test_no_nodes_and_no_query() -> None:
    step = HeadracePostprocessor(rate=0.5)
    assert step.postprocess_nodes([], query_str=QUESTION) == []
    assert len(step.postprocess_nodes(nodes())[1].text) < 0.7 * len(DAYS)
    with pytest.raises(InvalidRequest, match="empty"):
        HeadracePostprocessor(method="bm25").postprocess_nodes(nodes())


def test_it_is_serialised_as_llamaindex_does_it() -> None:
    step = HeadracePostprocessor(rate=0.5, method="bm25")
    data: dict[str, Any] = step.to_dict()
    assert data["class_name"] == "HeadracePostprocessor"
    assert HeadracePostprocessor.from_dict(data).to_dict() == data


MORE: list[tuple[dict[str, Any], str]] = [
    ({"top_k": 3}, "needs a method"),
    ({"rat": 0.5}, "no option 'rat'; did you mean 'rate'? There are top_k, method, rate"),
]


@pytest.mark.parametrize(("options", "says"), [*WRONG, *MORE])
def test_wrong_options_are_said_when_it_is_made(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(says)) as raised:
        HeadracePostprocessor(**options)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("bad", [["a"], "ab", None, [None]])
def test_what_is_no_list_of_nodes_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"a list of NodeWithScore is taken, got ['N]"):
        HeadracePostprocessor(rate=0.5).postprocess_nodes(bad, query_str=QUESTION)


@pytest.mark.parametrize("budget", [{"target_tokens": 60}, {"rate": 0.1}])
def test_a_budget_that_cannot_be_kept_is_said(
    budget: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    step = HeadracePostprocessor(compressor="lexical", **budget)
    texts = [NodeWithScore(node=TextNode(text=text)) for text in (DAYS, TABLE)]
    step.postprocess_nodes(texts[:1], query_str=QUESTION)
    assert not caplog.records  # kept, to the token
    step.postprocess_nodes(texts, query_str=QUESTION)
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("headrace.retrieved", "WARNING")
    assert re.search(r"\d+ tokens stay, the budget is \d+: .*CSV is kept whole", record.message)


class Fixed(BaseRetriever):
    """Finds the same nodes for every question."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=TextNode(text=text), score=0.5) for text in WHEELS]


class Small(CustomLLM):
    """The small model in process, as LlamaIndex takes one."""

    prompts: list[str] = Field(default_factory=list[str])

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=2048, num_output=30)

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        self.prompts.append(prompt)
        return CompletionResponse(text=headrace.generate(prompt, plan="off", max_tokens=30).text)

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        yield self.complete(prompt)


@pytest.mark.model
@pytest.mark.slow
def test_a_query_engine_answers_from_the_shorter_nodes() -> None:
    model = Small()
    step = HeadracePostprocessor(rate=0.8, method="bm25", top_k=1)
    engine = RetrieverQueryEngine.from_args(Fixed(), llm=model, node_postprocessors=[step])
    answer = engine.query(WHEN)
    assert "1913" in str(answer)
    assert "Pelton" not in model.prompts[0]
    assert WHEELS[0] not in model.prompts[0]
    assert len(answer.source_nodes) == 1
