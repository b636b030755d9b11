"""The component in real Haystack pipelines."""

from __future__ import annotations

import os
import re
from typing import Any

import pytest

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")
pytest.importorskip("haystack", reason="pip install 'headrace[haystack]'")

from haystack import Document, Pipeline, component
from haystack.components.builders import PromptBuilder
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.dataclasses import ByteStream
from haystack.document_stores.in_memory import InMemoryDocumentStore
from mill import DAYS, QUESTION, TEXTS, WHEELS, WHEN, WRONG

import headrace
from headrace import InvalidRequest
from headrace.middleware.haystack import HeadraceCompressor


def documents() -> list[Document]:
    return [
        Document(id=f"d{at}", content=text, meta={"page": at}, score=0.9 - at / 10, embedding=[0.5])
        for at, text in enumerate(TEXTS)
    ]


def test_documents_get_shorter_and_keep_what_they_carry() -> None:
    before = documents()
    after = HeadraceCompressor(rate=0.5).run(before, QUESTION)["documents"]
    assert len(after[1].content or "") < 0.7 * len(DAYS)
    assert "21 sacks" in (after[1].content or "")
    carried = [(d.id, d.meta, d.score, d.embedding) for d in after]
    assert carried == [(d.id, d.meta, d.score, d.embedding) for d in documents()]
    assert before == documents()


def test_ranked_documents_come_best_first() -> None:
    (best,) = HeadraceCompressor(method="bm25", top_k=1).run(documents(), QUESTION)["documents"]
    assert (best.id, best.content) == ("d1", DAYS)
    assert best.score != documents()[1].score


@pytest.mark.parametrize("method", [None, "bm25"])
def test_documents_without_text_pass_as_they_are_at_their_place(method: str | None) -> None:
    image, table = Document(blob=ByteStream(b"AAAA")), Document(content="")
    first, *others = documents()
    step = HeadraceCompressor(rate=0.5, method=method)
    after = step.run([image, first, table, *others], "rye?")["documents"]
    assert [i for i, one in enumerate(after) if one is image or one is table] == [0, 2]
    assert {one.id for one in after} >= {"d1", "d2", image.id, table.id}


def test_no_documents_and_no_query() -> None:
    assert HeadraceCompressor(rate=0.5).run([])["documents"] == []
    with pytest.raises(InvalidRequest, match="empty"):
        HeadraceCompressor(method="bm25").run(documents())


@pytest.mark.parametrize("bad", [["a"], "ab", None, [None]])
async def test_what_is_no_list_of_documents_is_refused(bad: Any) -> None:
    step = HeadraceCompressor(rate=0.5)
    with pytest.raises(InvalidRequest, match=r"a list of Document is taken, got ['N]"):
        step.run(documents=bad)
    with pytest.raises(InvalidRequest, match=r"a list of Document is taken, got ['N]"):
        await step.run_async(documents=bad)


def test_it_warms_up_as_often_as_one_likes() -> None:
    step = HeadraceCompressor(rate=0.5, method="bm25", compressor="lexical")
    step.warm_up()
    step.warm_up()
    assert step.run(documents(), QUESTION)["documents"]


MORE: list[tuple[dict[str, Any], str]] = [
    ({"top_k": 3}, "needs a method"),
    ({"rat": 0.5}, "no option 'rat'; did you mean 'rate'? There are rate, target_tokens"),
]


@pytest.mark.parametrize(("options", "says"), [*WRONG, *MORE])
def test_wrong_options_are_said_when_it_is_made(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(says)) as raised:
        HeadraceCompressor(**options)
    assert "\n" not in str(raised.value)


@component
class Small:
    """The small model in process."""

    @component.output_types(replies=list[str])
    def run(self, prompt: str) -> dict[str, list[str]]:
        return {"replies": [headrace.generate(prompt, plan="off", max_tokens=30).text]}


def pipeline() -> Pipeline:
    store = InMemoryDocumentStore()
    store.write_documents(documents())
    made = Pipeline()
    made.add_component("retriever", InMemoryBM25Retriever(store))
    made.add_component("headrace", HeadraceCompressor(rate=0.3))
    made.connect("retriever.documents", "headrace.documents")
    return made


MODULE = "headrace.middleware.haystack"
INPUTS = {"retriever": {"query": QUESTION}, "headrace": {"query": QUESTION}}


async def test_an_async_run_gives_the_same() -> None:
    found = pipeline().run(INPUTS)
    assert await pipeline().run_async(INPUTS) == found


def test_a_pipeline_is_written_and_read() -> None:
    text = pipeline().dumps()
    assert f"{MODULE}.HeadraceCompressor" in text
    read: Any = Pipeline.loads(text, allowed_modules=[MODULE]).get_component("headrace")
    assert read.to_dict() == HeadraceCompressor(rate=0.3).to_dict()


@pytest.mark.model
@pytest.mark.slow
def test_a_pipeline_answers_from_the_shorter_documents() -> None:
    made = Pipeline()
    template = "Use this:\n{% for d in documents %}{{ d.content }}\n{% endfor %}\n{{ query }}"
    made.add_component("headrace", HeadraceCompressor(rate=0.8, method="bm25", top_k=1))
    made.add_component("prompt", PromptBuilder(template, required_variables="*"))
    made.add_component("model", Small())
    made.connect("headrace.documents", "prompt.documents")
    made.connect("prompt.prompt", "model.prompt")
    given = {"documents": [Document(content=text) for text in WHEELS], "query": WHEN}
    result = made.run({"headrace": given, "prompt": {"query": WHEN}}, {"prompt"})
    assert "1913" in result["model"]["replies"][0]
    assert "Pelton" not in result["prompt"]["prompt"]
    assert WHEELS[0] not in result["prompt"]["prompt"]
