"""The server behind the proxy: its connections, and when a request may be sent again."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import unquote

from ...backends.openai_errors import retry_after
from ...backends.openai_urls import root_url, shown_url
from .config import Config
from .errors import NO_RETRY, Failure
from .sending import Headers

if TYPE_CHECKING:
    import httpx

REFUSED = (429, 503)  # the server says that it did not begin
LONGEST_WAIT = 60.0
KEPT_CONNECTIONS = 256
KEPT_SECONDS = 3.0  # uvicorn, and so vLLM, closes after 5: a request sent at that moment is lost
HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer"
    b" transfer-encoding upgrade".split()
)
_NOT_SENT_ON = HOP_BY_HOP | frozenset((b"host", b"content-length", b"expect"))
_KEYS = frozenset((b"authorization", b"x-api-key", b"api-key"))
# Servers that promise to keep a connection and close it after a stream: a request that is sent in
# between is lost. They are told beforehand that the connection will not be used again.
_END_STREAMS = "llama.cpp"


def address(config: Config, path: str, query: bytes) -> str:
    """Return where a path of ours is at the server: ``/v1`` is the base of its API.

    Raises Failure (404) for a path that climbs out of it.
    """
    if ".." in re.split(r"[/\\;]", unquote(unquote(path))):
        raise Failure(404, "not_found", "a path must not have '..' in it")
    is_api = path == "/v1" or path.startswith("/v1/")
    base = config.backend if is_api else root_url(config.backend)
    base, _, own = base.partition("?")
    both = "&".join(part for part in (own, query.decode("latin-1")) if part)
    return base + (path[3:] if is_api else path) + (f"?{both}" if both else "")


def headers_for(config: Config, headers: Headers, *, plain: bool) -> list[tuple[bytes, bytes]]:
    """Return the headers that are sent on; ``plain``: the answer is read, so not compressed.

    The caller's key goes to the server. With keys of our own, it is ours and goes nowhere.
    Raises Failure (403) for a page in a browser that would have our key for the server: any page
    can ask what listens on the loopback.
    """
    drop = set(_NOT_SENT_ON)
    for name, value in headers:
        if name == b"connection":
            drop.update(value.lower().replace(b" ", b"").split(b","))
    if plain:
        drop.add(b"accept-encoding")
    if config.keys:
        drop |= _KEYS
    kept = [(name, value) for name, value in headers if name not in drop]
    if config.backend_key and not any(name in _KEYS for name, _ in kept):
        if not config.keys and any(name == b"origin" for name, _ in headers):
            said = "a web page gets no key of the server's; send one of your own"
            raise Failure(403, "key_not_lent", said)
        kept.append((b"authorization", b"Bearer " + config.backend_key.encode()))
    if plain:
        kept.append((b"accept-encoding", b"identity"))
    return kept


def key_of(config: Config, headers: Headers) -> str:
    """Return the key that a request to the server carries, "none" without one."""
    sent = dict(headers_for(config, headers, plain=False))
    return sent.get(b"authorization", b"").removeprefix(b"Bearer ").decode("latin-1") or "none"


class Upstream:
    """Connections to the server. ``sleep`` and ``jitter`` are replaced by tests."""

    def __init__(
        self,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._client: httpx.AsyncClient | None = None
        self._sleep = sleep
        self._jitter = jitter
        self._ends_streams = False
        self.num_sent = 0

    async def close(self) -> None:
        """Close the connections. Idempotent; a later call opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    @asynccontextmanager
    async def answer(
        self,
        config: Config,
        method: str,
        url: str,
        headers: Sequence[tuple[bytes, bytes]],
        content: bytes,
        *,
        is_stream: bool = False,
    ) -> AsyncGenerator[httpx.Response]:
        """Send a request, again where that can do no harm, and yield the answer's beginning.

        Again: when the server was not reached, or said 429 or 503, at most ``config.retries``
        times, after the time that the last answer named. A request that the server may have begun
        is never sent twice. Leaving the block early closes the connection, which stops the server.
        Raises Failure.
        """
        num_left = config.retries
        while True:
            try:
                response = await self._send(config, method, url, headers, content, is_stream)
            except _Unreached as failure:
                wait = self._backoff(config.retries - num_left)
                if not num_left:
                    raise self._final(config, failure) from failure
            else:
                self._ends_streams = response.headers.get("server") == _END_STREAMS
                again = self._wait(config, response, num_left)
                if again is None:
                    try:
                        yield response
                    finally:
                        await response.aclose()
                    return
                await response.aclose()
                wait = again
            num_left -= 1
            await self._sleep(wait)

    def _wait(self, config: Config, response: httpx.Response, num_left: int) -> float | None:
        """Return how long to wait before the request is sent again, None to take the answer."""
        is_final = response.headers.get("x-should-retry") == "false"
        if response.status_code not in REFUSED or is_final:
            return None
        wait = retry_after(response.headers)
        if not num_left or (wait or 0.0) > LONGEST_WAIT:
            if config.retries:  # we have tried for the caller, who would multiply that
                response.headers["x-should-retry"] = "false"
            return None
        return wait if wait is not None else self._backoff(config.retries - num_left)

    def _backoff(self, num_tried: int) -> float:
        return float(self._jitter() * min(0.5 * 2**num_tried, 8.0))

    def _final(self, config: Config, failure: Failure) -> Failure:
        headers = NO_RETRY if config.retries else {}
        return Failure(failure.status, failure.code, failure.message, headers)

    async def _send(
        self,
        config: Config,
        method: str,
        url: str,
        headers: Sequence[tuple[bytes, bytes]],
        content: bytes,
        is_stream: bool,
    ) -> httpx.Response:
        import httpx

        if self._client is None:
            limits = httpx.Limits(
                max_connections=None,
                max_keepalive_connections=KEPT_CONNECTIONS,
                keepalive_expiry=KEPT_SECONDS,
            )
            self._client = httpx.AsyncClient(limits=limits, timeout=None)
        timeout = httpx.Timeout(config.timeout, connect=config.connect_timeout, pool=None)
        if is_stream and self._ends_streams:
            headers = [*headers, (b"connection", b"close")]
        try:
            request = httpx.Request(
                method,
                url,
                headers=list(headers),
                content=content or None,
                extensions={"timeout": timeout.as_dict()},
            )
            self.num_sent += 1
            return await self._client.send(request, stream=True)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise lost(config, error) from None


class _Unreached(Failure):
    """Nothing was sent."""


def lost(config: Config, error: Exception) -> Failure:
    """Return what a broken connection is to the caller; nothing of the request is in it."""
    import httpx

    where = shown_url(config.backend)
    if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout)):
        return _Unreached(502, "upstream_unreachable", f"cannot reach {where}")
    if isinstance(error, httpx.TimeoutException):
        said = f"{where} said nothing for {config.timeout:g} s; it may still be at work"
        return Failure(504, "upstream_timeout", said, NO_RETRY)
    if isinstance(error, (httpx.UnsupportedProtocol, httpx.InvalidURL)):
        return Failure(400, "invalid_url", "the server's address makes no sense with this path")
    said = f"{where} closed the connection in the middle ({type(error).__name__})"
    return Failure(502, "upstream_closed", said, NO_RETRY)
