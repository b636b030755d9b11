"""Answers that were given before, kept on disk."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from .errors import HeadraceError, InvalidRequest
from .types import Enforcement, Response, Usage

T = TypeVar("T")
DAY = 86_400.0
VERSION = 1


@dataclass(frozen=True)
class Cache:
    """Keeps whole answers of deterministic requests in ``folder``.

    ``ttl`` is how many seconds an answer is good for, None for ever; beyond ``max_bytes``, those
    that were stored first go. Give it to a ``Dispatcher``, which knows the engine: an answer is
    found again only for the same engine, model and software, the same messages, sampling,
    constraint and tags. Only what ended by itself ("stop") without tool calls is kept.

    Entries are JSON text in an SQLite database (``diskcache``, the "cache" extra); nothing is
    ever unpickled, and an entry that can't be read is dropped. The folder holds answers in plain
    text: keep it as safe as them. Several processes may share it.
    """

    folder: str | Path
    ttl: float | None = DAY
    max_bytes: int = 256 * 2**20
    _thread: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, "headrace-cache"), repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if self.ttl is not None and self.ttl <= 0:
            raise InvalidRequest(f"ttl is above 0 seconds, or None for ever, got {self.ttl}")
        if self.max_bytes < 2**20:
            raise InvalidRequest(f"max_bytes is at least 1,048,576, got {self.max_bytes}")

    async def get(self, key: str) -> tuple[Response, float] | None:
        """Return the answer stored under a key, and its age in seconds; None without one.

        Raises HeadraceError when the folder cannot be used at all.
        """
        return await self._run(lambda: self._get(key))

    async def put(self, key: str, response: Response) -> bool:
        """Store an answer, if it is one to be kept. Returns whether it was."""
        if response.finish_reason != "stop" or response.tool_calls:
            return False
        entry = {
            "version": VERSION,
            "at": time.time(),
            "text": response.text,
            "usage": asdict(response.usage),
            "enforced": None if response.enforced is None else asdict(response.enforced),
        }
        text = json.dumps(entry)
        await self._run(lambda: self._store.set(key, text, expire=self.ttl))
        return True

    async def close(self) -> None:
        """Close the files. They are opened again when they are needed."""
        if "_store" in self.__dict__:
            store = self.__dict__.pop("_store")
            await self._run(store.close)

    async def _run(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except (sqlite3.Error, OSError) as error:
            raise HeadraceError(
                f"the cache in {str(self.folder)!r} cannot be used ({error}); "
                "check that the folder is writable, or delete it"
            ) from error

    @cached_property
    def _store(self) -> Any:
        from .cache_store import open_store

        return open_store(Path(self.folder), self.max_bytes)

    def _get(self, key: str) -> tuple[Response, float] | None:
        text = self._store.get(key)
        if text is None:
            return None
        try:
            entry = json.loads(text)
            age = time.time() - entry["at"]
            if entry["version"] != VERSION or (self.ttl is not None and not 0 <= age <= self.ttl):
                raise ValueError(f"of version {entry['version']} and {age:.0f} s old")
            return _response(entry), age
        except (ValueError, TypeError, KeyError):
            self._store.delete(key)
            return None


def _response(entry: dict[str, Any]) -> Response:
    """Read an entry. Raises ValueError, TypeError or KeyError for what ``put`` did not write."""
    usage = Usage(**entry["usage"])
    if not isinstance(entry["text"], str) or any(
        type(n) is not int for n in asdict(usage).values()
    ):
        raise TypeError("text or usage")
    enforced: dict[str, Any] | None = entry["enforced"]
    held = None
    if enforced is not None:
        fields: dict[str, Any] = {**enforced, "residual": tuple(enforced["residual"])}
        held = Enforcement(**fields)
    used = Usage(usage.prompt_tokens, usage.completion_tokens, usage.prompt_tokens, num_calls=0)
    return Response(entry["text"], usage=used, enforced=held)
