"""The stage that lets the engine write the documents shorter."""

from __future__ import annotations

import pytest

from headrace import BackendError, Document, InvalidRequest, Pipeline, Request
from headrace.backends import make_backend
from headrace.compressors import make_counter
from headrace.middleware.summarise import Summarise
from tests.engine.simulated import Reply, SimulatedEngine

MILL = (
    "The mill stands on the river Saale, below the old bridge. It was built in 1742 by Anna Weber,"
    " a baker's daughter. Bread was cheap that year, and many people came to see the new wheel."
    " Anna Weber died in 1790 in Halle. Nobody knows why the mill was closed."
)
SOUP = "The canteen serves soup at noon and nobody has ever complained about the taste of it. " * 5
DOCUMENTS = (Document(SOUP, id="c"), Document(MILL, id="m", metadata={"page": 3}))
QUESTION = "Who built the mill?"


def replies(request: Request) -> Reply | str:
    """Answer as an engine would that does what the prompt says."""
    prompt = request.messages[-1].text
    if "Summary:" not in prompt:
        return "Anna Weber."
    return "NONE" if "soup" in prompt else "Anna Weber built it in 1742."


def prompts(engine: SimulatedEngine) -> list[str]:
    return [record.request.messages[-1].text for record in engine.log]


async def test_documents_become_what_they_say_about_the_question() -> None:
    engine = SimulatedEngine(replies)
    async with Pipeline([Summarise(rate=0.5)], engine) as pipeline:
        response = await pipeline.run(Request.of(QUESTION, documents=DOCUMENTS))
    assert response.text == "Anna Weber."
    last = prompts(engine)[-1]
    assert "Anna Weber built it in 1742." in last
    assert "soup" not in last
    assert "Bread" not in last
    row = response.report.stages[0]
    assert row.decision == ("summarised 1 of 2 documents in the model's own words, left out 1")
    assert row.details["is_span_preserving"] is False
    assert [d["id"] for d in row.details["documents"]] == ["c", "m"]
    assert [d["is_relevant"] for d in row.details["documents"]] == [False, True]
    assert row.tokens_out is not None
    assert row.tokens_in is not None
    assert row.tokens_out <= 0.5 * row.tokens_in
    assert response.usage.num_calls == 3


async def test_all_documents_are_asked_about_at_the_same_time() -> None:
    engine = SimulatedEngine(replies)
    documents = tuple(Document(MILL.replace("1742", str(1700 + i))) for i in range(12))
    async with Pipeline([Summarise(rate=0.5)], engine) as pipeline:
        await pipeline.run(Request.of(QUESTION, documents=documents))
    assert engine.peak_calls == 12
    engine = SimulatedEngine(replies)
    async with Pipeline([Summarise(rate=0.5, width=3)], engine) as pipeline:
        await pipeline.run(Request.of(QUESTION, documents=documents))
    assert engine.peak_calls == 3


async def test_a_call_that_fails_costs_only_the_summary() -> None:
    def broken(request: Request) -> Reply | str:
        found = replies(request)
        if "Summary:" in request.messages[-1].text:
            return Reply("x", after=0, error=BackendError("out of memory"))
        return found

    engine = SimulatedEngine(broken)
    async with Pipeline([Summarise(rate=0.5)], engine) as pipeline:
        response = await pipeline.run(Request.of(QUESTION, documents=DOCUMENTS[1:]))
    assert "Anna Weber" in prompts(engine)[-1]
    [document] = response.report.stages[0].details["documents"]
    assert document["is_span_preserving"] is True
    assert "no answer" in document["reason"]
    async with Pipeline([Summarise(rate=0.5, on_error="raise")], engine) as pipeline:
        engine.is_closed = False
        with pytest.raises(BackendError, match="out of memory"):
            await pipeline.run(Request.of(QUESTION, documents=DOCUMENTS))


async def test_without_documents_the_request_passes() -> None:
    engine = SimulatedEngine(replies)
    async with Pipeline([Summarise(rate=0.5)], engine) as pipeline:
        response = await pipeline.run(Request.of(QUESTION))
    assert len(engine.log) == 1
    assert response.report.stages[0].decision == "no documents to summarise"


def test_wrong_options_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="exactly one of rate"):
        Summarise()
    with pytest.raises(InvalidRequest, match="width must be a whole number from 1 on, got 0"):
        Summarise(rate=0.5, width=0)


@pytest.mark.model
@pytest.mark.slow
async def test_with_the_small_model_in_process() -> None:
    stage = Summarise(rate=0.5, tokenizer="smollm2")
    async with Pipeline([stage], make_backend(None, None)) as pipeline:
        response = await pipeline.run(
            Request.of(QUESTION, documents=(*DOCUMENTS, Document("Soup.", id="s")))
        )
    row = response.report.stages[0]
    count = make_counter("smollm2").count
    assert row.tokens_in == sum(map(count, (SOUP, MILL, "Soup.")))
    assert (row.tokens_out or 0) <= 0.5 * (row.tokens_in or 0)
    assert row.details["calls"] == 2
    assert response.usage.num_calls == 3
    for document in row.details["documents"]:
        assert document["tokens_out"] <= document["tokens_in"]
        assert document["is_span_preserving"] in (True, False)
