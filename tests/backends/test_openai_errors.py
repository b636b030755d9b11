"""What goes wrong on the wire: statuses, cuts, silence, and what is said about it."""

from __future__ import annotations

import asyncio
import email.utils
import logging
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from engine.wire import DONE, HELLO, KEY, Answering, Server, chunk, fails, sends
from starlette.responses import JSONResponse, Response, StreamingResponse

from headrace.backends import OpenAIBackend
from headrace.backends.openai_errors import retry_after
from headrace.middleware.errors import (
    BackendError,
    HeadraceError,
    InvalidRequest,
    Overloaded,
)
from headrace.middleware.types import (
    Constraint,
    Request,
)

Ask = Callable[..., Awaitable[list[Any]]]
Make = Callable[..., OpenAIBackend]
SCHEMA = Constraint("json_schema", '{"type": "object"}')


@pytest.fixture
def backend(server: Server, make: Make) -> OpenAIBackend:
    return make(server.url, api_key=KEY, timeout=5)


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
