"""Prompts that begin alike are read once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from headrace.backends import TransformersBackend
from headrace.backends.decoding.prefixes import PrefixStore, num_shared
from headrace.middleware.types import Message, Request, Sampling, Text

pytestmark = pytest.mark.model
Ask = Callable[..., Awaitable[list[Any]]]

STORY = (
    "The harbour of Bergen lies between seven mountains. Ships bring salt, timber and dried fish. "
    "In 1702 most of the town burnt down; it was built again of wood, on the same narrow lots. "
)
QUESTIONS = ["When did it burn down?", "What do the ships bring?", "How many mountains are there?"]


def of(*texts: str, tokens: int = 12) -> Request:
    roles = ("system", "user", "assistant", "user")
    messages = tuple(Message(role, (Text(text),)) for role, text in zip(roles, texts, strict=False))
    return Request(messages, sampling=Sampling(max_tokens=tokens, temperature=0))


async def texts_of(backend: TransformersBackend, ask: Ask, requests: list[Request]) -> list[str]:
    return [answer.finished.text for answer in await ask(backend, requests)]


async def test_the_second_time_only_the_end_of_a_prompt_is_read(ask: Ask) -> None:
    backend, plain = TransformersBackend(), TransformersBackend(prefix_cache_mb=0)
    first = (await ask(backend, [of(STORY, QUESTIONS[0])]))[0].finished
    again = (await ask(backend, [of(STORY, QUESTIONS[0])]))[0].finished
    other = (await ask(backend, [of(STORY, QUESTIONS[1])]))[0].finished
    assert first.usage.cached_tokens == 0
    assert again.usage.cached_tokens == again.usage.prompt_tokens - 1
    assert 40 < other.usage.cached_tokens < other.usage.prompt_tokens - 4
    expected = await texts_of(plain, ask, [of(STORY, QUESTIONS[0]), of(STORY, QUESTIONS[1])])
    assert [first.text, other.text] == expected
    assert again.text == first.text
    answers = await ask(plain, [of(STORY, QUESTIONS[0])])
    assert answers[0].finished.usage.cached_tokens == 0
    await backend.close()
    await plain.close()


async def test_rows_that_come_together_follow_the_first_of_them(ask: Ask) -> None:
    backend, plain = TransformersBackend(), TransformersBackend(prefix_cache_mb=0)
    requests = [of(STORY, question) for question in QUESTIONS]
    answers = [answer.finished for answer in await ask(backend, [*requests, of("Hi", "Ho")])]
    cached = [answer.usage.cached_tokens for answer in answers]
    assert cached[0] == cached[3] == 0
    assert min(cached[1:3]) > 40
    expected = await texts_of(plain, ask, [*requests, of("Hi", "Ho")])
    assert [answer.text for answer in answers] == expected
    await backend.close()
    await plain.close()


async def test_a_conversation_goes_on_where_it_was(ask: Ask) -> None:
    backend, plain = TransformersBackend(), TransformersBackend(prefix_cache_mb=0)
    [first] = await texts_of(backend, ask, [of(STORY, QUESTIONS[0])])
    more = of(STORY, QUESTIONS[0], first, QUESTIONS[1])
    answer = (await ask(backend, [more]))[0].finished
    assert answer.usage.cached_tokens > 40
    assert [answer.text] == await texts_of(plain, ask, [more])
    await backend.close()
    await plain.close()


def layers(tokens: int) -> list[tuple[Any, Any]]:
    import torch

    part = torch.arange(2.0 * tokens * 4).reshape(2, tokens, 4)
    return [(part, part)]


def test_a_store_forgets_what_is_oldest_and_stays_within_its_size() -> None:
    one = 40 * 2 * 4 * 4 * 2  # bytes
    store = PrefixStore(2 * one)
    prompts = [[number] * 40 for number in range(3)]
    for prompt in prompts[:2]:
        store.add(prompt, layers(40))
    assert store.find(prompts[0]) is not None  # used: now the other one is the oldest
    store.add(prompts[2], layers(40))
    assert store.find(prompts[1]) is None
    assert store.find(prompts[0]) is not None
    assert store.find(prompts[2]) is not None
    store.add([9] * 4000, layers(4000))
    assert store.find([9] * 4000) is None  # larger than the whole store


def test_a_store_keeps_the_longer_of_two_and_leaves_a_token_to_read() -> None:
    store = PrefixStore(10**6)
    store.add([1] * 40, layers(40))
    store.add([1] * 40 + [2] * 40, layers(80))
    found = store.find([1] * 40 + [2] * 40)
    assert found is not None
    assert found.length == 79
    assert found.layers[0][0].shape == (2, 80, 4)
    assert store.find([1] * 20) is None  # too short to be worth it
    assert store.find([3] * 40) is None
    assert store.knows([1] * 40 + [2] * 39)
    assert not store.knows([1] * 40 + [4] * 80)


def test_shared_beginnings_are_counted() -> None:
    assert num_shared([], [1]) == 0
    assert num_shared([1, 2], [1, 2]) == 2
    assert num_shared((1, 2, 3), (1, 9, 3)) == 1
