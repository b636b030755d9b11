"""The OpenAI backend against a real vLLM server on the CPU with SmolLM2, where it is installed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from headrace.backends import Job
from headrace.backends.engines import find, running
from headrace.middleware.check import violation
from headrace.middleware.types import Constraint, Finished, Request, Sampling

pytestmark = [pytest.mark.engine, pytest.mark.model, pytest.mark.slow]

PROMPT = "Tell me about Ann Abernathy, who is 41 years old and has 12 cats and 7 dogs."
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    if find("vllm") is None:
        pytest.skip("vLLM is not installed; run: python -m headrace.backends.engines vllm")
    with running("vllm", slots=4, threads=2) as url:
        yield url


def asked(constraint: Constraint | None, text: str = PROMPT) -> Request:
    sampling = Sampling(max_tokens=48, temperature=0)
    return Request.of(text, constraint=constraint, sampling=sampling)


async def test_the_server_says_what_it_is(url: str, make: Any) -> None:
    capabilities = await make(url).capabilities()
    assert (capabilities.model, capabilities.context_length) == ("smollm2", 2048)
    assert capabilities.has_prefix_cache


@pytest.mark.parametrize(
    "constraint",
    [
        Constraint("json_schema", json.dumps(PERSON)),
        Constraint("regex", r"[A-C]{2}-\d{3,4}(\.\d{1,2})?"),
        Constraint("choice", ("dogs", "New", "New York City")),
        Constraint("grammar", 'start: name " is " /[1-9][0-9]/ "."\nname: "Ann" | "Bob"'),
        Constraint(
            "template", json.dumps(["Age: ", {"name": "a", "kind": "regex", "spec": "[0-9]{2}"}])
        ),
    ],
    ids=lambda constraint: constraint.kind,
)
async def test_every_kind_of_constraint_has_its_field(
    constraint: Constraint, url: str, make: Any, ask: Any
) -> None:
    backend = make(url)
    [answer] = await ask(backend, [asked(constraint)])
    assert violation(answer.finished.text, constraint) is None
    assert answer.finished.enforced.by.startswith("vllm structured_outputs")
    assert (await backend.capabilities()).engine.startswith("vllm 0.")


async def test_rows_with_and_without_constraints_go_together(url: str, make: Any, ask: Any) -> None:
    constraints = [Constraint("choice", ("a", "b")), None, Constraint("regex", "[0-9]{4}"), None]
    answers = await ask(make(url), [asked(one) for one in constraints])
    for answer, constraint in zip(answers, constraints, strict=True):
        assert answer.finished.usage.completion_tokens > 0
        if constraint is not None:
            assert violation(answer.finished.text, constraint) is None


async def test_a_prefix_that_the_server_has_is_counted(url: str, make: Any) -> None:
    backend = make(url)
    text = " ".join(f"Rule {number}: doors stay shut." for number in range(60))  # blocks of 128
    usages = []
    for question in ("Why?", "How?"):
        request = asked(Constraint("choice", ("a", "b")), f"{text}\n{question}")
        async for _, event in backend.generate([Job(request)]):
            if isinstance(event, Finished):
                usages.append(event.response.usage)
    assert usages[1].cached_tokens >= 128


async def test_an_answer_may_be_left(url: str, make: Any, ask: Any) -> None:
    backend = make(url)
    sampling = Sampling(max_tokens=1500, temperature=0, extra={"ignore_eos": True})
    job = Job(Request.of("Count upwards.", sampling=sampling))
    stream = backend.generate([job])
    await anext(stream)
    await stream.aclose()
    [answer] = await ask(backend, [asked(None)])
    assert answer.finished.text
