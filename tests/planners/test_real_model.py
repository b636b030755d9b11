from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from headrace.backends import make_backend
from headrace.middleware.dispatcher import Dispatcher
from headrace.middleware.plan import Plan
from headrace.middleware.types import Finished, Request, Response, Sampling, TextDelta

pytestmark = pytest.mark.model


@pytest.fixture
async def dispatcher() -> AsyncGenerator[Dispatcher, None]:
    backend = make_backend(None)
    yield Dispatcher(backend)
    await backend.close()


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
