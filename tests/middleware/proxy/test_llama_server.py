"""The proxy in front of a real llama-server with SmolLM2."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from engine.proxied import Running, Start, until

from headrace.backends.engines import find, running

pytestmark = [pytest.mark.engine, pytest.mark.model, pytest.mark.slow]

TURN = " ".join(
    f"Mill {{0}}-{i} on the river was built in {1700 + i} by a careful and rather slow mason."
    for i in range(10)
)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    if find("llama") is None:
        reason = "llama-server is not installed; run: make engines"
        if os.environ.get("HEADRACE_REQUIRE_ENGINES"):
            pytest.fail(reason)
        pytest.skip(reason)
    with running("llama", slots=1) as url:
        yield url


@pytest.fixture
def proxy(url: str, start: Start) -> Running:
    policy = '[models."*"]\nrate = 0.5\ncompressor = "lexical"\nconstrain = true\n'
    return start(f'backend = "{url}"\n{policy}')


def test_the_servers_cache_knows_every_turn_but_the_last(proxy: Running) -> None:
    chat: list[Any] = [{"role": "system", "content": "You know all mills on the river."}]
    seen: list[tuple[int, int]] = []
    with proxy.client() as client:
        for turn in range(4):
            chat.append({"role": "user", "content": f"{TURN.format(turn)} Which is the oldest?"})
            answer = client.chat.completions.create(model="smollm2", messages=chat, max_tokens=8)
            assert answer.usage is not None
            assert answer.usage.prompt_tokens_details is not None
            cached = answer.usage.prompt_tokens_details.cached_tokens or 0
            seen.append((answer.usage.prompt_tokens, cached))
            chat.append({"role": "assistant", "content": "The first one."})
    # What was the last turn is cut when it has become an old one, and is read once more then.
    cached_tokens = [cached for _, cached in seen]
    assert sorted(set(cached_tokens[1:])) == cached_tokens[1:]  # it grows
    assert cached_tokens[3] > 0.4 * seen[2][0]
    assert answer.usage.headrace["tokens_saved"] > 150


def test_a_checked_answer_and_a_stream(proxy: Running) -> None:
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 12}},
        "required": ["name"],
        "additionalProperties": False,
    }
    wanted: Any = {"type": "json_schema", "json_schema": {"name": "p", "schema": schema}}
    messages: Any = [{"role": "user", "content": "Name a person."}]
    with proxy.client() as client:
        answer = client.chat.completions.create(
            model="smollm2", messages=messages, max_tokens=40, response_format=wanted
        )
        assert list(json.loads(answer.choices[0].message.content or "")) == ["name"]
        stream = client.chat.completions.create(
            model="smollm2", messages=messages, max_tokens=400, stream=True
        )
        assert "".join(next(stream).choices[0].delta.content or "" for _ in range(3))
        stream.close()
    until(lambda: proxy.proxy.gate.num_open == 0)
