from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Literal, cast

import pytest
from engine import collect

from headrace import template
from headrace.backends import make_backend
from headrace.middleware.constrain import Constrain
from headrace.middleware.dispatcher import Dispatcher
from headrace.middleware.plan import Plan
from headrace.middleware.types import Event, Finished, Request, Response, Sampling, TextDelta

pytestmark = pytest.mark.model


@pytest.fixture
async def dispatcher() -> AsyncGenerator[Dispatcher, None]:
    backend = make_backend(None)
    yield Dispatcher(backend)
    await backend.close()


@pytest.mark.slow
async def test_a_small_model_makes_a_plan_that_can_be_used(dispatcher: Dispatcher) -> None:
    question = "What are the benefits of regular exercise?"
    sampling = Sampling(max_tokens=200, temperature=0)
    request = Request.of(question, sampling=sampling)
    events = [event async for event in Plan(max_nodes=4)(request, dispatcher)]
    last = events[-1]
    assert isinstance(last, Finished)
    response: Response = last.response
    row = response.report.stage("plan")
    assert row is not None
    assert row.decision.startswith("wrote"), row
    nodes = row.details["nodes"]
    assert len(nodes) >= 3
    assert response.usage.num_calls >= 1 + len(nodes)
    assert sum(node["tokens"] for node in nodes) <= 200
    assert response.text == "".join(e.text for e in events if isinstance(e, TextDelta))
    assert all(f"**{node['title']}**:" in response.text for node in nodes)


async def test_the_fields_of_a_template_are_held_to_their_choices(dispatcher: Dispatcher) -> None:
    made = template("Colour: {colour:red|blue}\nSize: {size:small|large}\n")
    request = Request.of("Describe a whale.", constraint=made)

    def checked(request: Request) -> AsyncGenerator[Event, None]:
        return Constrain()(request, dispatcher)

    events = [event async for event in Plan("template")(request, checked)]
    last = events[-1]
    assert isinstance(last, Finished)
    assert last.response.parsed["colour"] in ("red", "blue")
    assert last.response.parsed["size"] in ("small", "large")
    assert last.response.usage.num_calls == 2
    assert last.response.enforced is not None
    assert last.response.enforced.level == "full"


async def test_a_list_of_words_is_mapped(dispatcher: Dispatcher) -> None:
    prompt = "Give an antonym for each word:\n1. hot\n2. big\n3. early"
    request = Request.of(prompt, sampling=Sampling(max_tokens=75, temperature=0))
    events = [event async for event in Plan("map")(request, dispatcher)]
    last = events[-1]
    assert isinstance(last, Finished)
    lines = [line for line in last.response.text.splitlines() if line[:2] in ("1.", "2.", "3.")]
    assert len(lines) == 3
    assert all(len(line) > 3 for line in lines)
    assert last.response.usage.num_calls == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "limit"),
    [("skeleton", 60), ("skeleton", 200), ("graph", 130), ("sot", 130), ("template", 160)],
)
async def test_what_is_read_keeps_the_limit_in_the_models_own_tokens(
    dispatcher: Dispatcher, strategy: Literal["skeleton", "graph", "sot", "template"], limit: int
) -> None:
    from transformers import AutoTokenizer

    name = (await dispatcher.backend.capabilities()).tokenizer
    assert name is not None
    tokenizer = cast("Any", AutoTokenizer).from_pretrained(name)
    outline = ("How it helps the heart", "Costs", "Sleep") if strategy == "template" else ()
    stage = Plan(strategy, max_nodes=4, outline=outline, when="always")
    sampling = Sampling(max_tokens=limit, temperature=0)
    request = Request.of("What are the benefits of regular exercise?", sampling=sampling)
    response = await collect(stage(request, dispatcher))
    tokens: list[int] = tokenizer(response.text)["input_ids"]
    assert len(tokens) <= limit, response.text
    row = response.report.stage("plan")
    assert row is not None
    if limit == 60:
        assert row.decision.startswith("no plan"), row
    elif strategy != "template" and row.decision.startswith("wrote"):
        assert row.details["plan_tokens"] > 0
