"""The wire: a server over real HTTP that serves SmolLM2, and one that misbehaves on request."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from engine.wire import DONE, HELLO, KEY, Server, chunk, fails, sends, serves
from starlette.responses import Response, StreamingResponse

from headrace.backends import Job, OpenAIBackend, TransformersBackend
from headrace.middleware.errors import (
    ModelUnavailable,
)
from headrace.middleware.types import (
    Constraint,
    Finished,
    Message,
    Request,
    Sampling,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    Usage,
)

Ask = Callable[..., Awaitable[list[Any]]]
Make = Callable[..., OpenAIBackend]
SCHEMA = Constraint("json_schema", '{"type": "object"}')


@pytest.fixture
def backend(server: Server, make: Make) -> OpenAIBackend:
    return make(server.url, api_key=KEY, timeout=5)


async def test_text_usage_and_finish_reason_arrive(
    server: Server, backend: OpenAIBackend, ask: Ask
) -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
    details = {**usage, "prompt_tokens_details": {"cached_tokens": 4}}
    early = {**usage, "completion_tokens": 1}  # some servers count in every chunk
    server.script = sends(
        chunk({"content": "Hel"}, usage=early), chunk({"content": "lo"}, usage=usage),
        chunk({}, "length"), chunk(usage=details), DONE,
    )  # fmt: skip
    [answer] = await ask(backend, [Request.of("Hi")])
    assert answer.deltas == ["Hel", "lo"]
    assert answer.finished.finish_reason == "length"
    assert answer.finished.usage == Usage(7, 2, 4)
    assert server.bodies[0]["stream_options"] == {"include_usage": True}
    assert server.bodies[0]["model"] == "tiny"
    assert server.keys == [f"Bearer {KEY}"]


async def test_everything_the_caller_wrote_is_sent(server: Server, make: Make, ask: Ask) -> None:
    server.script = sends(*HELLO, DONE)
    backend = make(server.url, probe=False)
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    message = {
        "role": "user",
        "content": [{"type": "text", "text": "Hi", "x": 1}, image],
        "name": "A",
    }
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    extra = {"tools": tools, "top_k": 5, "stream": False, "model": "evil"}
    sampling = Sampling(5, 0.5, 0.9, ("a", "b"), 3, extra)
    request = Request((Message.from_dict(message),), constraint=SCHEMA, sampling=sampling)
    assert (await ask(backend, [request]))[0].finished.text == "Hello"
    [body] = server.bodies
    assert body["messages"] == [message]
    assert body["response_format"]["json_schema"]["schema"] == {"type": "object"}
    wanted = {"max_tokens": 5, "temperature": 0.5, "top_p": 0.9, "stop": ["a", "b"], "seed": 3}
    wanted |= {"tools": tools, "top_k": 5, "stream": True, "model": "tiny"}
    assert {name: body[name] for name in wanted} == wanted


async def test_what_is_not_given_is_not_sent(
    server: Server, backend: OpenAIBackend, ask: Ask
) -> None:
    server.script = sends(*HELLO, DONE)
    await ask(backend, [Request.of("Hi")])
    assert set(server.bodies[0]) == {"model", "messages", "stream", "stream_options"}


async def test_characters_cut_across_packets_stay_whole(
    server: Server, backend: OpenAIBackend, ask: Ask
) -> None:
    data = b"".join([chunk({"content": "漢🙂é"}), chunk({}, "stop"), DONE]).replace(
        b"\n\n", b"\r\n\r\n"
    )
    server.script = sends(*(data[i : i + 1] for i in range(len(data))))
    assert (await ask(backend, [Request.of("Hi")]))[0].finished.text == "漢🙂é"


async def test_odd_chunks_are_read(server: Server, backend: OpenAIBackend, ask: Ask) -> None:
    server.script = sends(
        b": keep-alive\n\n", chunk(), b'data: {"choices": null}\n\n',
        b'data: {"choices": [{"delta": null}]}\n\n', b'data: {"choices": [{"index": 0}]}\n\n',
        *HELLO,
    )  # fmt: skip
    [answer] = await ask(backend, [Request.of("Hi")])  # nor is there a [DONE]
    assert answer.finished.text == "Hello"


async def test_tool_calls_are_put_together(server: Server, backend: OpenAIBackend) -> None:
    def call(index: int | None, **fields: Any) -> bytes:
        return chunk({"tool_calls": [{"index": index, **fields}]})

    server.script = sends(
        call(0, id="a", function={"name": "f", "arguments": ""}),
        call(0, function={"arguments": '{"x":'}), call(0, function={"arguments": " 1}"}),
        call(1, id="b", function={"name": "g", "arguments": "{}"}), chunk({}, "tool_calls"), DONE,
    )  # fmt: skip
    events = [event async for _, event in backend.generate([Job(Request.of("Hi"))])]
    assert events[1] == ToolCallDelta(0, arguments='{"x":')
    response: Any = getattr(events[-1], "response", None)
    assert response.tool_calls == (ToolCall("a", "f", '{"x": 1}'), ToolCall("b", "g", "{}"))
    assert response.finish_reason == "tool_calls"


async def test_a_field_that_the_server_refuses_is_left_out_from_then_on(
    server: Server, backend: OpenAIBackend, ask: Ask
) -> None:
    async def script(body: dict[str, Any]) -> Response:
        if "stream_options" in body:
            return await fails(400, "Unknown parameter: stream_options")(body)
        if "max_tokens" in body:
            return await fails(400, "Use 'max_completion_tokens' instead of 'max_tokens'")(body)
        return await sends(*HELLO, DONE)(body)

    server.script = script
    request = Request.of("Hi", sampling=Sampling(max_tokens=5))
    for _ in range(2):
        [answer] = await ask(backend, [request])
        assert answer.finished.text == "Hello"
    assert len(server.bodies) == 4
    assert server.bodies[-1]["max_completion_tokens"] == 5


async def test_a_job_that_is_cancelled_before_it_begins_ends_at_once(
    server: Server, make: Make
) -> None:
    server.script = sends(*HELLO, DONE)
    gone, other = Job(Request.of("Hi")), Job(Request.of("Ho"))
    gone.cancelled = True
    async with asyncio.timeout(30):
        told = [outcome async for outcome in make(server.url).generate([gone, other])]
    assert {index for index, _ in told} == {1}
    assert isinstance(told[-1][1], Finished)


@pytest.mark.parametrize("how", ["cancelled", "closed"])
@pytest.mark.parametrize("when", ["before the first byte", "in the middle"])
async def test_a_caller_who_leaves_ends_the_http_request(
    how: str, when: str, server: Server, backend: OpenAIBackend
) -> None:
    left = threading.Event()

    async def script(body: dict[str, Any]) -> Response:
        async def stream() -> AsyncIterator[bytes]:
            try:
                if when == "in the middle":
                    yield HELLO[1]
                await asyncio.sleep(30)
            finally:
                left.set()

        return StreamingResponse(stream(), media_type="text/event-stream")

    server.script = script
    job = Job(Request.of("Hi"))
    events = backend.generate([job])
    first = asyncio.ensure_future(anext(events))
    for _ in range(100):
        await asyncio.sleep(0.02)
        if server.bodies and (first.done() or when != "in the middle"):
            break
    if when == "in the middle":
        assert first.result() == (0, TextDelta("Hello"))
    if how == "cancelled":
        job.cancelled = True
        rest = [] if not first.done() else [event async for event in events]
        if not first.done():
            with pytest.raises(StopAsyncIteration):
                await first
        assert rest == []
    else:
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await events.aclose()
    assert await asyncio.to_thread(left.wait, 2)


async def test_jobs_of_a_batch_run_side_by_side_and_fail_alone(
    server: Server, backend: OpenAIBackend, ask: Ask
) -> None:
    together = asyncio.Event()

    async def script(body: dict[str, Any]) -> Response:
        if len(server.bodies) == 3:
            together.set()
        await asyncio.wait_for(together.wait(), 5)
        bad = body["messages"][0]["content"] == "bad"
        return await (fails(500) if bad else sends(*HELLO, DONE))(body)

    server.script = script
    await backend.capabilities()
    answers = await ask(backend, [Request.of(text) for text in ("a", "bad", "c")])
    assert [answer.error is None for answer in answers] == [True, False, True]


async def test_the_key_comes_from_the_environment(
    server: Server, ask: Ask, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script = sends(*HELLO, DONE)
    monkeypatch.setenv("OPENAI_API_KEY", "from-env")
    await ask(make(server.url), [Request.of("Hi")])
    monkeypatch.delenv("OPENAI_API_KEY")
    await ask(make(server.url), [Request.of("Hi")])
    assert server.keys == ["Bearer from-env", "Bearer none"]


@pytest.mark.parametrize(("owner", "shares"), [("vllm", True), ("llamacpp", False)])
async def test_a_server_with_one_prefix_cache_for_all_is_known_by_its_list(
    owner: str, shares: bool, server: Server, make: Make
) -> None:
    server.models = [{"id": "m", "object": "model", "created": 0, "owned_by": owner}]
    assert (await make(server.url).capabilities()).has_prefix_cache is shares


async def test_capabilities_come_from_the_list_of_models(server: Server, make: Make) -> None:
    server.models = [{"id": "a"}, {"id": "b", "max_model_len": 4096}]
    assert (await make(server.url).capabilities()).model == "a"
    capabilities = await make(server.url, model="b", max_concurrency=3).capabilities()
    assert (capabilities.context_length, capabilities.max_concurrency) == (4096, 3)
    kinds = {"json_schema", "regex", "choice", "grammar", "template"}
    assert capabilities.constraints == kinds  # what the server does not keep is said in words
    server.models = []
    with pytest.raises(ModelUnavailable, match="model="):
        await make(server.url).capabilities()


@pytest.mark.parametrize(("software", "said"), [("llama.cpp", "close"), ("uvicorn", "keep-alive")])
async def test_a_server_that_ends_its_streams_gets_no_second_request_on_them(
    software: str, said: str, server: Server, backend: OpenAIBackend, ask: Ask
) -> None:
    server.headers = {"Server": software}
    server.script = sends(*HELLO, DONE)
    for _ in range(2):
        assert (await ask(backend, [Request.of("Hi")]))[0].finished.text == "Hello"
    assert server.connections == [said, said]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_backend_works_on_one_event_loop_after_another(server: Server, ask: Ask) -> None:
    server.script = sends(*HELLO, DONE)
    backend = OpenAIBackend(server.url)

    async def run() -> str:
        [answer] = await ask(backend, [Request.of("Hi")])
        return str(answer.finished.text)

    async def run_and_close() -> str:
        text = await run()
        await backend.close()
        return text

    assert [asyncio.run(run()), asyncio.run(run_and_close())] == ["Hello", "Hello"]
    gc.collect()  # what the first loop left open is collected here, not in another test


def on_the_wire(response: Any) -> Any:
    """Return the response without what servers do not tell, and what the second run knows."""
    usage = replace(response.usage, forced_tokens=0, cached_tokens=0)
    return replace(response, enforced=None, usage=usage)


@pytest.mark.model
async def test_a_model_over_http_answers_what_it_answers_in_process(
    server: Server, make: Make, smollm2: TransformersBackend, ask: Ask
) -> None:
    server.script = serves(smollm2)
    backend = make(server.url)
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    constraint = Constraint("json_schema", json.dumps({**schema, "additionalProperties": False}))
    sampling = Sampling(max_tokens=16)
    requests = [
        Request.of("What is the capital of France?", sampling=sampling),
        Request.of("Say ok in JSON.", constraint=constraint, sampling=sampling),
        Request.of("Write 汉字 and 🙂 please.", sampling=sampling),
    ]
    remote = [on_the_wire(answer.finished) for answer in await ask(backend, requests)]
    local = [on_the_wire((await ask(smollm2, [one]))[0].finished) for one in requests]
    assert remote == local
    assert "Paris" in remote[0].text
    assert set(json.loads(remote[1].text)) == {"ok"}
