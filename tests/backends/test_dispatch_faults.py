"""The dispatcher in front of a server that fails in every way: docs/dispatch.md, "Faults"."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from engine import collect
from engine.wire import DONE, HELLO, Answering, Server, chunk, fails, sends, serving
from starlette.responses import Response as HTTPResponse
from starlette.responses import StreamingResponse

from headrace import (
    BackendError,
    Dispatcher,
    HeadraceError,
    InvalidRequest,
    Overloaded,
    Request,
    Sampling,
    TextDelta,
)
from headrace.backends import OpenAIBackend
from headrace.middleware.breaker import Breaker

Make = Callable[..., OpenAIBackend]
FINE = sends(*HELLO, DONE)


@pytest.fixture
def spare() -> Iterator[Server]:
    with serving() as state:
        state.script = FINE
        yield state


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Back off for no time: nothing here is about how long."""
    monkeypatch.setattr("random.uniform", lambda low, high: 0.0)


def first(*scripts: Answering) -> Answering:
    """Answer with one script after the other; the last one stays."""
    left = list(scripts)

    async def script(body: dict[str, Any]) -> HTTPResponse:
        return await (left.pop(0) if len(left) > 1 else left[0])(body)

    return script


async def silent(body: dict[str, Any]) -> HTTPResponse:
    await asyncio.sleep(30)
    return await FINE(body)


async def reset(body: dict[str, Any]) -> HTTPResponse:
    async def stream() -> AsyncIterator[bytes]:
        yield HELLO[1]
        raise ConnectionResetError

    return StreamingResponse(stream(), media_type="text/event-stream")


async def ask(dispatcher: Dispatcher) -> str:
    return (await collect(dispatcher(Request.of("Hi")))).text


@pytest.mark.parametrize(
    ("fault", "calls"),
    [
        (fails(429), 2),
        (fails(429, headers={"Retry-After": "0.2"}), 2),
        (fails(500), 2),
        (fails(503), 2),
        (sends(), 2),
    ],
    ids=["429", "429 with a time", "500", "503", "cut before the first token"],
)
async def test_what_passes_is_tried_again(
    fault: Answering, calls: int, server: Server, make: Make
) -> None:
    server.script = first(fault, FINE)
    assert await ask(Dispatcher(make(server.url))) == "Hello"
    assert len(server.bodies) == calls


@pytest.mark.parametrize("fault", [fails(502), fails(504), silent], ids=["502", "504", "silence"])
async def test_what_the_engine_may_have_taken_is_sent_again_only_when_asked_for(
    fault: Answering, server: Server, make: Make
) -> None:
    seconds = 2 if fault is silent else 60
    server.script = first(fault, FINE)
    with pytest.raises(BackendError) as caught:
        await ask(Dispatcher(make(server.url, timeout=seconds)))
    assert caught.value.may_have_run
    assert len(server.bodies) == 1
    server.script = first(fault, FINE)
    assert await ask(Dispatcher(make(server.url, timeout=seconds), resend=True)) == "Hello"
    assert len(server.bodies) == 3


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (fails(400), InvalidRequest),
        (fails(401), BackendError),
        (fails(404), BackendError),
        (fails(500, headers={"x-should-retry": "false"}), BackendError),
        (fails(429, code="insufficient_quota"), BackendError),
        (fails(429, headers={"Retry-After": "3600"}), Overloaded),
    ],
    ids=["400", "401", "404", "500 for good", "no money", "429 for an hour"],
)
async def test_what_does_not_pass_is_said_at_once(
    fault: Answering, kind: type[HeadraceError], server: Server, make: Make
) -> None:
    server.script = fault
    with pytest.raises(kind):
        await ask(Dispatcher(make(server.url)))
    assert len(server.bodies) == 1


async def test_what_never_passes_is_tried_three_times(server: Server, make: Make) -> None:
    server.script = fails(500)
    with pytest.raises(BackendError, match="500"):
        await ask(Dispatcher(make(server.url)))
    assert len(server.bodies) == 3


@pytest.mark.parametrize(
    "fault",
    [
        sends(*HELLO[:2]),
        reset,
        sends(*HELLO[:2], b'data: {"error": {"message": "out of memory", "code": 500}}\n\n'),
    ],
    ids=["ended", "reset", "an error inside"],
)
async def test_a_stream_that_is_cut_is_told_and_never_repeated(
    fault: Answering, server: Server, spare: Server, make: Make
) -> None:
    server.script = fault
    seen: list[str] = []

    async def read() -> None:
        async for event in Dispatcher([make(server.url), make(spare.url)])(Request.of("Hi")):
            assert isinstance(event, TextDelta)
            seen.append(event.text)

    with pytest.raises(BackendError) as cut:
        await read()
    assert cut.value.retryable
    assert seen == ["Hello"]
    assert len(server.bodies) == 1
    assert spare.bodies == []


@pytest.mark.parametrize(
    ("fault", "calls"),
    [
        (fails(429, headers={"Retry-After": "30"}), 1),
        (fails(500), 3),
        (fails(401), 1),
        (silent, 1),
    ],
    ids=["429", "500", "401", "silence"],
)
async def test_the_next_engine_answers(
    fault: Answering, calls: int, server: Server, spare: Server, make: Make
) -> None:
    server.script = fault
    backend = make(server.url, timeout=1 if fault is silent else 60)
    dispatcher = Dispatcher([backend, make(spare.url)])
    assert await ask(dispatcher) == "Hello"
    assert (len(server.bodies), len(spare.bodies)) == (calls, 1)


async def test_a_refused_connection_is_said_at_once_or_passed_over(
    spare: Server, make: Make
) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        with pytest.raises(BackendError, match="cannot reach"):
            await ask(Dispatcher(make(url)))
        dispatcher = Dispatcher([make(url), make(spare.url)], breaker=Breaker(failures=2))
        assert [await ask(dispatcher) for _ in range(4)] == ["Hello"] * 4


async def test_a_server_that_is_down_is_left_alone(server: Server, make: Make) -> None:
    server.script = fails(500)
    dispatcher = Dispatcher(make(server.url), retries=0, breaker=Breaker(failures=2, seconds=300))
    for said in ("500", "500", "left alone"):
        with pytest.raises(BackendError, match=said):
            await ask(dispatcher)
    assert len(server.bodies) == 2


async def test_identical_requests_reach_the_server_once(server: Server, make: Make) -> None:
    server.script = sends(*HELLO, DONE, pause=0.05)
    dispatcher = Dispatcher(make(server.url))
    request = Request.of("Hi", sampling=Sampling(temperature=0))
    answers = await asyncio.gather(*(collect(dispatcher(request)) for _ in range(10)))
    assert [answer.text for answer in answers] == ["Hello"] * 10
    assert len(server.bodies) == 1


async def test_a_caller_that_goes_away_closes_the_servers_stream(
    server: Server, make: Make
) -> None:
    closed = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def endless(body: dict[str, Any]) -> HTTPResponse:
        async def stream() -> AsyncIterator[bytes]:
            try:
                while True:
                    yield chunk({"content": "x"})
                    await asyncio.sleep(0.01)
            finally:
                loop.call_soon_threadsafe(closed.set)

        return StreamingResponse(stream(), media_type="text/event-stream")

    server.script = endless
    events = Dispatcher(make(server.url))(Request.of("Hi"))
    await anext(events)
    await events.aclose()
    await asyncio.wait_for(closed.wait(), 30)


ROOT = Path(__file__).resolve().parents[2]


def test_the_page_names_tests_that_exist() -> None:
    page = (ROOT / "docs" / "dispatch.md").read_text("utf-8")
    named = re.findall(r"`(\w+/test_\w+\.py)::(\w+)`", page)
    assert len(named) > 10
    for file, name in named:
        assert f"def {name}(" in (ROOT / "tests" / file).read_text("utf-8"), (file, name)


def test_the_code_on_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "dispatch.md").read_text("utf-8")
    [code] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    assert len(names["dispatcher"].backends) == 2
    names["pipeline"].close()
