"""Who may come in, with how much, and how many at a time."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from starlette.types import Receive

from .errors import NO_RETRY, Failure, overloaded

_MEMORY = 0.1  # weight of the newest request in the mean of how long they take


class Gone(Exception):
    """The caller went away."""


class Gate:
    """Counts the requests under way; ``enter`` gives its place back whatever happens."""

    def __init__(self) -> None:
        self.num_open = 0
        self._seconds = 1.0  # a request takes, on average

    @contextmanager
    def enter(self, limit: int, clock: Sequence[float]) -> Generator[None]:
        """Hold a place. ``clock`` gets the seconds that the request took, at its end.

        Raises Failure (429) when ``limit`` requests are under way.
        """
        if self.num_open >= limit:
            wait = self._seconds / limit
            raise overloaded(f"{limit} requests are under way; come back later", "busy", wait)
        self.num_open += 1
        try:
            yield
        finally:
            self.num_open -= 1
            if clock:
                self._seconds += _MEMORY * (clock[-1] - self._seconds)


def check_key(headers: Mapping[bytes, bytes], keys: Sequence[str]) -> None:
    """Let a caller with one of the keys pass, in a time that says nothing about the keys.

    Raises Failure (401).
    """
    given = headers.get(b"authorization", b"").removeprefix(b"Bearer ").strip()
    given = given or headers.get(b"x-api-key", b"") or headers.get(b"api-key", b"")
    digest = hashlib.sha256(given).digest()
    found = [hmac.compare_digest(digest, hashlib.sha256(k.encode()).digest()) for k in keys]
    if not any(found):
        raise Failure(401, "invalid_api_key", "this proxy needs a key of its own; yours is none")


async def read_body(
    headers: Mapping[bytes, bytes], receive: Receive, limit: int, seconds: float
) -> bytes:
    """Return the body.

    Raises Failure when it is longer than ``limit`` bytes (413) or takes longer than ``seconds``
    to come (408), and Gone.
    """
    try:
        async with asyncio.timeout(seconds):
            return await _whole_body(headers, receive, limit)
    except TimeoutError:
        said = f"the body took longer than {seconds:g} s"
        raise Failure(408, "request_too_slow", said, NO_RETRY) from None


async def _whole_body(headers: Mapping[bytes, bytes], receive: Receive, limit: int) -> bytes:
    too_long = Failure(
        413, "request_too_large", f"the body is longer than the limit of {limit} bytes"
    )
    length = headers.get(b"content-length", b"0")
    if length.isdigit() and int(length) > limit:
        raise too_long
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        pieces.append(message.get("body", b""))
        size += len(pieces[-1])
        if size > limit:
            raise too_long
        if not message.get("more_body"):
            return b"".join(pieces)
