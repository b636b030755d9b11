"""The wire: a server over real HTTP that serves SmolLM2, and one that misbehaves on request."""

from __future__ import annotations

import asyncio
import email.utils
import gc
import json
import logging
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
from engine.wire import DONE, Answering, Server, chunk, serves, serving
from starlette.responses import JSONResponse, Response, StreamingResponse

from headrace.backends import Job, OpenAIBackend, TransformersBackend
from headrace.backends.openai import normalize_base_url
from headrace.backends.openai_errors import retry_after
from headrace.middleware.errors import (
    BackendError,
    HeadraceError,
    InvalidRequest,
    ModelUnavailable,
    Overloaded,
    UnsupportedConstraint,
)
from headrace.middleware.types import (
    Constraint,
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
KEY = "sk-very-secret-1234567890"
SCHEMA = Constraint("json_schema", '{"type": "object"}')


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


@pytest.fixture
def backend(server: Server, make: Make) -> OpenAIBackend:
    return make(server.url, api_key=KEY, timeout=5)


HELLO = [
    chunk({"role": "assistant", "content": ""}),
    chunk({"content": "Hello"}),
    chunk({}, "stop"),
]


def sends(*pieces: bytes, pause: float = 0.0, content_type: str = "text/event-stream") -> Answering:
    async def script(body: dict[str, Any]) -> Response:
        async def stream() -> AsyncIterator[bytes]:
            for piece in pieces:
                yield piece
                await asyncio.sleep(pause)

        return StreamingResponse(stream(), media_type=content_type)

    return script


def fails(
    status: int, message: str = "no", headers: dict[str, str] | None = None, **error: Any
) -> Answering:
    async def script(body: dict[str, Any]) -> Response:
        return JSONResponse({"error": {"message": message, **error}}, status, headers)

    return script


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


async def test_everything_the_caller_wrote_is_sent(
    server: Server, backend: OpenAIBackend, ask: Ask
) -> None:
    server.script = sends(*HELLO, DONE)
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


@pytest.mark.parametrize(
    ("status", "kind", "is_retryable"),
    [
        (400, InvalidRequest, None),
        (401, BackendError, False),
        (403, BackendError, False),
        (404, BackendError, False),
        (422, InvalidRequest, None),
        (429, Overloaded, True),
        (500, BackendError, True),
        (502, BackendError, True),
        (503, Overloaded, True),
    ],
)
async def test_a_status_says_whether_to_try_again(
    status: int,
    kind: type[HeadraceError],
    is_retryable: bool | None,
    server: Server,
    backend: OpenAIBackend,
    ask: Ask,
) -> None:
    server.script = fails(status, f"bad\nkey {KEY}")
    [answer] = await ask(backend, [Request.of("Hi")])
    assert type(answer.error) is kind
    assert getattr(answer.error, "retryable", None) is is_retryable
    assert len(server.bodies) == 1  # the client itself never tries again
    assert server.url in str(answer.error)
    assert KEY not in str(answer.error)
    assert "\n" not in str(answer.error)


async def test_retry_after_is_passed_on(server: Server, backend: OpenAIBackend, ask: Ask) -> None:
    server.script = fails(429, headers={"Retry-After": "7"})
    [answer] = await ask(backend, [Request.of("Hi")])
    assert answer.error.retry_after == 7
    server.script = fails(500, headers={"x-should-retry": "false"})
    [answer] = await ask(backend, [Request.of("Hi")])
    assert not answer.error.retryable
    server.script = fails(429, code="insufficient_quota")
    [answer] = await ask(backend, [Request.of("Hi")])
    assert not answer.error.retryable


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": email.utils.formatdate(time.time() + 3600, usegmt=True)}, 3600),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_every_form_of_retry_after_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == (None if seconds is None else pytest.approx(seconds, abs=900))


async def test_a_refused_constraint_is_named_as_such(
    server: Server, backend: OpenAIBackend, ask: Ask
) -> None:
    server.script = fails(400, "Invalid schema for response_format 'answer'")
    [answer] = await ask(backend, [Request.of("Hi", constraint=SCHEMA)])
    assert type(answer.error) is UnsupportedConstraint
    choice = Constraint("choice", ("a", "b"))
    [answer] = await ask(backend, [Request.of("Hi", constraint=choice)])
    assert type(answer.error) is UnsupportedConstraint
    assert len(server.bodies) == 1  # never sent where it would be ignored


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


async def test_a_stream_cut_in_the_middle_is_an_error_after_its_text(
    server: Server, backend: OpenAIBackend, ask: Ask
) -> None:
    async def reset(body: dict[str, Any]) -> Response:
        async def stream() -> AsyncIterator[bytes]:
            yield HELLO[1]
            raise ConnectionResetError

        return StreamingResponse(stream(), media_type="text/event-stream")

    for script in (sends(*HELLO[:2]), sends(*HELLO[:2], DONE), reset):
        server.script = script
        [answer] = await ask(backend, [Request.of("Hi")])
        assert answer.deltas == ["Hello"]
        assert isinstance(answer.error, BackendError)
        assert answer.error.retryable


async def test_an_error_inside_the_stream_is_an_error(
    server: Server, backend: OpenAIBackend, ask: Ask
) -> None:
    error = b'data: {"error": {"message": "out of memory", "code": 500}}\n\n'
    server.script = sends(HELLO[1], error, DONE)
    [answer] = await ask(backend, [Request.of("Hi")])
    assert answer.deltas == ["Hello"]
    assert "out of memory" in str(answer.error)
    server.script = sends(HELLO[1], chunk({}, "abort"), DONE)
    [answer] = await ask(backend, [Request.of("Hi")])
    assert isinstance(answer.error, BackendError)


@pytest.mark.parametrize(
    "script",
    [
        sends(b"<html>Welcome</html>", content_type="text/html"),
        sends(b'{"choices": []}', content_type="application/json"),
        sends(b"data: {not json}\n\n"),
        sends(b"data: \xff\xfe\n\n"),
        sends(b'data: "text"\n\n'),
        sends(DONE),
    ],
)
async def test_what_is_no_completion_is_an_error(
    script: Answering, server: Server, backend: OpenAIBackend, ask: Ask
) -> None:
    server.script = script
    [answer] = await ask(backend, [Request.of("Hi")])
    assert isinstance(answer.error, BackendError)
    assert "\n" not in str(answer.error)


async def test_a_server_that_stays_silent_times_out(server: Server, ask: Ask, make: Make) -> None:
    backend = make(server.url, timeout=0.3, model="tiny")
    await backend.capabilities()

    async def hang(body: dict[str, Any]) -> Response:
        await asyncio.sleep(3)
        return JSONResponse({})

    for script in (hang, sends(*HELLO, pause=3)):
        server.script = script
        started = time.monotonic()
        [answer] = await ask(backend, [Request.of("Hi")])
        assert isinstance(answer.error, BackendError)
        assert answer.error.retryable
        assert time.monotonic() - started < 2.5


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


async def test_nobody_there_is_one_line_with_the_address(ask: Ask, make: Make) -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        url = f"http://user:secret@127.0.0.1:{sock.getsockname()[1]}"
    backend = make(url, api_key=KEY)
    [answer] = await ask(backend, [Request.of("Hi")])
    assert isinstance(answer.error, BackendError)
    assert answer.error.retryable
    assert url.partition("@")[2] in str(answer.error)
    assert "secret" not in str(answer.error)
    assert "\n" not in str(answer.error)


async def test_the_key_is_in_no_log_line(
    server: Server, ask: Ask, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    server.script = fails(401, f"Incorrect API key: {KEY}")
    backend = make(server.url, api_key=KEY)
    with caplog.at_level(logging.DEBUG):
        [answer] = await ask(backend, [Request.of("Hi")])
    assert isinstance(answer.error, BackendError)
    ours = [r for r in caplog.records if r.name.startswith("headrace")]
    assert not any(KEY in record.getMessage() for record in ours)
    assert KEY not in str(answer.error) + repr(answer.error)


async def test_the_key_comes_from_the_environment(
    server: Server, ask: Ask, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script = sends(*HELLO, DONE)
    monkeypatch.setenv("OPENAI_API_KEY", "from-env")
    await ask(make(server.url), [Request.of("Hi")])
    monkeypatch.delenv("OPENAI_API_KEY")
    await ask(make(server.url), [Request.of("Hi")])
    assert server.keys == ["Bearer from-env", "Bearer none"]


async def test_capabilities_come_from_the_list_of_models(server: Server, make: Make) -> None:
    server.models = [{"id": "a"}, {"id": "b", "max_model_len": 4096}]
    assert (await make(server.url).capabilities()).model == "a"
    capabilities = await make(server.url, model="b", max_concurrency=3).capabilities()
    assert (capabilities.context_length, capabilities.max_concurrency) == (4096, 3)
    assert capabilities.constraints == {"json_schema"}
    server.models = []
    with pytest.raises(ModelUnavailable, match="model="):
        await make(server.url).capabilities()


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


@pytest.mark.parametrize(
    ("given", "base"),
    [
        ("http://localhost:8000", "http://localhost:8000/v1"),
        ("http://localhost:8000/", "http://localhost:8000/v1"),
        ("http://localhost:8000/v1", "http://localhost:8000/v1"),
        (" http://localhost:8000/v1/ ", "http://localhost:8000/v1"),
        ("http://[::1]:8000", "http://[::1]:8000/v1"),
        ("https://ark.example/api/v3", "https://ark.example/api/v3"),
        ("https://g.example/v1beta/openai/", "https://g.example/v1beta/openai"),
        ("http://h/v1/chat/completions", "http://h/v1"),
        ("https://h/openai/v1?api-version=2", "https://h/openai/v1?api-version=2"),
    ],
)
def test_base_urls_are_completed_and_never_doubled(given: str, base: str) -> None:
    assert normalize_base_url(given) == base
    assert normalize_base_url(base) == base


@pytest.mark.parametrize(
    "url", ["localhost:8000", "ftp://h", "http://", "", "http://[::1", "http://h:x"]
)
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequest, match="http"):
        OpenAIBackend(url)


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
    remote = [answer.finished for answer in await ask(backend, requests)]
    local = [(await ask(smollm2, [request]))[0].finished for request in requests]
    assert remote == local
    assert "Paris" in remote[0].text
    assert set(json.loads(remote[1].text)) == {"ok"}
