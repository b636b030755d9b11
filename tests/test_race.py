"""The main job on a real model: documents in, an answer out, and a report that adds up."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel

import headrace
from headrace import (
    Compress,
    Constrain,
    Finished,
    Middleware,
    Pipeline,
    Plan,
    Request,
    Rerank,
    Sampling,
    TextDelta,
)
from headrace.backends import make_backend
from headrace.middleware.files import read_documents

pytestmark = pytest.mark.model
FOLDER = Path(__file__).resolve().parents[1] / "examples" / "documents"
QUESTION = "How much of the water's power does an overshot wheel deliver?"


class Wheel(BaseModel):
    wheel: Literal["overshot", "undershot"]
    percent: int


@pytest.fixture(scope="module")
def engine() -> Iterator[Pipeline]:
    with Pipeline([], make_backend(None)) as bare:
        yield bare


@pytest.fixture(scope="module")
def race(engine: Pipeline) -> Pipeline:
    tokenizer = engine.blocking(engine.dispatcher.backend.capabilities()).tokenizer
    stages: list[Middleware] = [
        Rerank(1),
        Compress(0.6, tokenizer=tokenizer),
        Plan("auto"),
        Constrain(),
    ]
    return Pipeline(stages, engine.dispatcher, loop=engine.loop)


def request(question: str = QUESTION, **fields: object) -> Request:
    documents = tuple(read_documents([str(FOLDER)], on_skip=pytest.fail))
    sampling = Sampling(max_tokens=60)
    return Request.of(question, documents=documents, **{"sampling": sampling, **fields})


def test_the_whole_race_answers_and_says_what_it_did(race: Pipeline) -> None:
    events = list(race.stream_sync(request()))
    last = events[-1]
    assert isinstance(last, Finished)
    response = last.response
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == response.text
    assert "63" in response.text
    stages = [row.stage for row in response.report.stages]
    assert stages == ["rerank", "compress", "plan", "dispatch"]
    used = response.report.stages[0].details["documents"]
    assert used[0]["id"] == "overshot.md#1"
    row = response.report.stage("compress")
    assert row is not None
    assert row.tokens_in is not None
    assert row.tokens_out is not None
    assert row.tokens_out < 0.9 * row.tokens_in
    assert response.usage.prompt_tokens >= row.tokens_out


def test_json_is_certain_and_parsed(race: Pipeline) -> None:
    response = race.run_sync(request(f"{QUESTION} As JSON.", constraint=headrace.constraint(Wheel)))
    assert isinstance(response.parsed, Wheel)
    assert response.parsed.wheel == "overshot"


async def test_waiting_requests_share_a_forward(engine: Pipeline) -> None:
    questions = ["Name a colour.", "What is bread made of?", "Who wrote Hamlet?", "Why is it dark?"]
    sampling = Sampling(max_tokens=12)
    together = await asyncio.gather(
        *(engine.run(Request.of(q, sampling=sampling)) for q in questions)
    )
    assert {r.report.stages[-1].details["batch_size"] for r in together} == {4}
    alone = [await engine.run(Request.of(q, sampling=sampling)) for q in questions]
    assert [r.text for r in together] == [r.text for r in alone]


def test_a_planned_answer_comes_in_order(engine: Pipeline) -> None:
    pipeline = Pipeline([Plan("skeleton", max_nodes=4)], engine.dispatcher, loop=engine.loop)
    question = "What are the benefits of regular exercise?"
    events = list(pipeline.stream_sync(Request.of(question, sampling=Sampling(max_tokens=200))))
    last = events[-1]
    assert isinstance(last, Finished)
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == last.response.text
    row = last.response.report.stage("plan")
    assert row is not None
    assert len(row.details["nodes"]) >= 2
    assert last.response.usage.num_calls > len(row.details["nodes"])


def test_the_three_plain_functions() -> None:
    assert "1,200" in headrace.compress("The stone, as it happens, weighs 1,200 kg.", rate=0.6).text
    documents: list[Any] = ["It rained.", {"text": "A stone weighs 1,200 kg.", "id": 7, "page": 3}]
    best, _ = headrace.rerank("How heavy is the stone?", documents)
    assert (best.id, best.metadata) == ("7", {"page": 3})
    documents = ["The weather was fine in May.", "Ann bought the red car."]
    response = headrace.generate("Who bought the car?", documents=documents, top_k=1, max_tokens=30)
    assert "Ann" in response.text


async def test_generate_works_inside_a_running_loop() -> None:
    response = headrace.generate("Is water wet?", constraint=["yes", "no"])
    assert response.parsed in ("yes", "no")
