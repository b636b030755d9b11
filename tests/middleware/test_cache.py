"""Answers kept on disk. Real time and threads: nothing here waits for either."""

from __future__ import annotations

import json
import pickle
import sqlite3
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from engine import Reply, SimulatedEngine, collect

from headrace import (
    BackendError,
    Dispatcher,
    HeadraceError,
    InvalidRequest,
    Request,
    Response,
    Sampling,
    Usage,
)
from headrace.middleware.cache import Cache
from headrace.middleware.types import Enforcement, FinishReason, ToolCall

GREEDY = Sampling(temperature=0)


def question(text: str = "What is a weir?") -> Request:
    return Request.of(text, sampling=GREEDY)


def echo() -> SimulatedEngine:
    return SimulatedEngine(lambda request: Reply(f"{request.question} A dam."))


def files(cache: Cache, pattern: str = "*") -> list[Path]:
    return [path for path in Path(cache.folder).rglob(pattern) if path.is_file()]


@pytest.fixture
async def cache(tmp_path: Path) -> AsyncIterator[Cache]:
    cache = Cache(tmp_path / "answers")
    yield cache
    await cache.close()


def stored(cache: Cache) -> sqlite3.Connection:
    """Return the database; the next statement is committed at once."""
    return sqlite3.connect(Path(cache.folder) / "cache.db", isolation_level=None)


async def test_the_second_time_no_engine_is_asked(cache: Cache) -> None:
    engine = echo()
    dispatcher = Dispatcher(engine, cache=cache)
    first, second = [await collect(dispatcher(question())) for _ in range(2)]
    assert first.text == second.text == "What is a weir? A dam."
    assert len(engine.log) == 1
    assert [row.stage for row in first.report.stages] == ["dispatch", "cache"]
    assert first.report.stages[-1].details["stored"]
    assert [row.stage for row in second.report.stages] == ["cache"]
    assert second.report.stages[-1].details["hit"]
    assert "no engine asked" in second.report.stages[-1].decision
    assert second.usage == Usage(5, 6, cached_tokens=5, num_calls=0)


async def test_it_outlives_the_process_and_the_engines_own_end(tmp_path: Path) -> None:
    for number in range(2):
        engine, cache = echo(), Cache(tmp_path)
        dispatcher = Dispatcher(engine, cache=cache)
        await collect(dispatcher(question()))
        await dispatcher.close()
        assert len(engine.log) == (number == 0)


async def test_another_engine_or_model_is_asked_itself(cache: Cache) -> None:
    class Other(SimulatedEngine):  # type: ignore[misc]
        async def capabilities(self) -> Any:
            return replace(await super().capabilities(), model="other")

    other = Other(lambda request: Reply("Another dam."))
    await collect(Dispatcher(echo(), cache=cache)(question()))
    response = await collect(Dispatcher(other, cache=cache)(question()))
    assert response.text == "Another dam."


async def test_what_a_fallback_said_is_not_kept_as_the_first_engines_word(cache: Cache) -> None:
    broken = Reply("x", after=0, error=BackendError("401"))
    dispatcher = Dispatcher([SimulatedEngine(lambda r: broken), echo()], cache=cache)
    for _ in range(2):
        response = await collect(dispatcher(question()))
        assert not response.report.stages[-1].details["stored"]


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=0.5)])
async def test_what_may_be_answered_differently_is_asked_again(
    cache: Cache, sampling: Sampling
) -> None:
    engine = echo()
    dispatcher = Dispatcher(engine, cache=cache)
    for _ in range(2):
        await collect(dispatcher(Request.of("x", sampling=sampling)))
    assert len(engine.log) == 2


@pytest.mark.parametrize("reason", ["length", "content_filter", "tool_calls"])
async def test_what_did_not_end_by_itself_is_not_kept(cache: Cache, reason: FinishReason) -> None:
    engine = SimulatedEngine(lambda request: Reply("x", finish_reason=reason))
    dispatcher = Dispatcher(engine, cache=cache)
    for _ in range(2):
        response = await collect(dispatcher(question()))
        assert response.report.stages[-1].decision == "not there, not to be stored"
    assert len(engine.log) == 2


async def test_tool_calls_are_not_kept(cache: Cache) -> None:
    assert not await cache.put("k", Response("", tool_calls=(ToolCall("1", "pay", "{}"),)))


async def test_an_answer_comes_back_as_it_was(cache: Cache) -> None:
    enforced = Enforcement("partial", ("minItems",), "vllm")
    text = "漢🙂é \u2028 \x00 " * 5000  # a long one lies in a file of its own
    await cache.put("k", Response(text, usage=Usage(7, 9, 2), enforced=enforced))
    found = await cache.get("k")
    assert found is not None
    assert found[0].text == text
    assert found[0].enforced == enforced
    assert found[0].usage == Usage(7, 9, 7, num_calls=0)


async def test_an_old_answer_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path, ttl=100)
    await cache.put("k", Response("x"))
    assert await cache.get("k")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 101)
    assert await cache.get("k") is None
    await cache.close()


async def test_the_oldest_go_when_the_room_is_used_up(tmp_path: Path) -> None:
    cache = Cache(tmp_path, max_bytes=2**20)
    for number in range(60):
        await cache.put(str(number), Response("x" * 100_000))
    assert await cache.get("0") is None
    assert await cache.get("59")
    assert sum(path.stat().st_size for path in files(cache)) < 3 * 2**20
    await cache.close()


NOW = time.time()
DAMAGED = {
    "no JSON": "{",
    "another JSON": "[1]",
    "no text": json.dumps({"version": 1, "at": NOW, "text": None, "usage": {}, "enforced": None}),
    "other usage": json.dumps(
        {"version": 1, "at": NOW, "text": "x", "usage": {"prompt_tokens": "1"}, "enforced": None}
    ),
    "unknown usage": json.dumps(
        {"version": 1, "at": NOW, "text": "x", "usage": {"gold": 1}, "enforced": None}
    ),
    "another version": json.dumps({"version": 99, "at": NOW}),
    "bytes": b"\xff\xfe",
    "a number": 3,
}


@pytest.mark.parametrize("value", DAMAGED.values(), ids=list(DAMAGED))
async def test_a_damaged_entry_is_asked_again_and_mended(cache: Cache, value: Any) -> None:
    engine = echo()
    dispatcher = Dispatcher(engine, cache=cache)
    await collect(dispatcher(question()))
    with stored(cache) as database:
        database.execute("UPDATE Cache SET value = ?, mode = 1, filename = NULL", (value,))
        database.commit()
    for _ in range(2):
        assert (await collect(dispatcher(question()))).text == "What is a weir? A dam."
    assert len(engine.log) == 2


class Trap:
    def __reduce__(self) -> tuple[Any, ...]:
        return (sys.exit, ("unpickled",))


async def test_nothing_is_unpickled(cache: Cache) -> None:
    await cache.put("k", Response("x"))
    with stored(cache) as database:
        trap = pickle.dumps(Trap())
        database.execute("UPDATE Cache SET value = ?, mode = 4, filename = NULL", (trap,))
        database.commit()
    assert await cache.get("k") is None


async def test_no_file_outside_the_folder_is_read(cache: Cache, tmp_path: Path) -> None:
    entry = {"version": 1, "at": time.time(), "text": "secret", "usage": {}, "enforced": None}
    (tmp_path / "secret.val").write_text(json.dumps(entry))
    await cache.put("k", Response("x"))
    for name in ("../secret.val", str(tmp_path / "secret.val")):
        with stored(cache) as database:
            database.execute("UPDATE Cache SET value = NULL, mode = 3, filename = ?", (name,))
            database.commit()
        found = await cache.get("k")
        assert found is None


async def test_a_missing_file_is_a_missing_answer(cache: Cache) -> None:
    await cache.put("k", Response("x" * 100_000))
    for path in files(cache, "*.val"):
        path.unlink()
    assert await cache.get("k") is None


async def test_a_folder_that_cannot_be_used_costs_nothing_but_the_cache(tmp_path: Path) -> None:
    tmp_path.joinpath("cache.db").write_text("this is no database, " * 100)
    cache = Cache(tmp_path)
    response = await collect(Dispatcher(echo(), cache=cache)(question()))
    assert response.text == "What is a weir? A dam."
    assert "cannot be used" in response.report.stages[-1].decision
    with pytest.raises(HeadraceError, match="check that the folder"):
        await cache.get("k")


@pytest.mark.parametrize("wrong", [{"ttl": 0}, {"max_bytes": 5}])
def test_options_that_make_no_sense_are_refused(wrong: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=next(iter(wrong))):
        Cache(tmp_path, **wrong)


async def test_without_diskcache_the_error_says_what_to_install(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "diskcache", None)
    monkeypatch.delitem(sys.modules, "headrace.middleware.cache_store", raising=False)
    with pytest.raises(HeadraceError, match=r"headrace\[cache\]"):
        await cache.get("k")
