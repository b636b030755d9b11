"""SmolLM2, loaded once, and a way to ask it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from engine.wire import Server, serving

from headrace.backends import Backend, Job, OpenAIBackend, TransformersBackend
from headrace.backends.decoding.automaton import Compiler
from headrace.backends.local import LocalModel
from headrace.middleware.errors import HeadraceError
from headrace.middleware.types import Finished, Request, Response, TextDelta


@dataclass
class Answer:
    """Everything that happened to one job."""

    deltas: list[str] = field(default_factory=list[str])
    response: Response | None = None
    error: HeadraceError | None = None

    @property
    def finished(self) -> Response:
        assert self.error is None, self.error
        assert self.response is not None
        return self.response


Ask = Callable[[Backend, Sequence[Request]], Awaitable[list[Answer]]]
Make = Callable[..., OpenAIBackend]


@pytest.fixture(scope="session")
def ask() -> Ask:
    """Run requests as one batch; checks what every backend promises about its events."""

    async def run(backend: Backend, requests: Sequence[Request]) -> list[Answer]:
        answers = [Answer() for _ in requests]
        async for index, event in backend.generate([Job(request) for request in requests]):
            answer = answers[index]
            assert answer.response is None
            assert answer.error is None
            if isinstance(event, HeadraceError):
                answer.error = event
            elif isinstance(event, Finished):
                answer.response = event.response
                assert event.response.text == "".join(answer.deltas)
            elif isinstance(event, TextDelta):
                assert event.text
                answer.deltas.append(event.text)
        return answers

    return run


@pytest.fixture(scope="session")
def smollm2() -> TransformersBackend:
    return TransformersBackend("smollm2", device="cpu")


@pytest.fixture(scope="session")
def local() -> LocalModel:
    return LocalModel.load("smollm2", "cpu", None)


@pytest.fixture(scope="session")
def tokenizer(local: LocalModel) -> Any:
    return local.tokenizer


@pytest.fixture(scope="session")
def compiler(local: LocalModel) -> Compiler:
    return local.compiler


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as state:
        yield state


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    made: list[OpenAIBackend] = []

    def make(*args: Any, **fields: Any) -> OpenAIBackend:
        made.append(OpenAIBackend(*args, **fields))
        return made[-1]

    yield make
    for backend in made:
        await backend.close()
        await backend.close()
