"""The official client, as this backend uses it: one a loop, no retries, errors translated."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from ..middleware.errors import HeadraceError
from ..middleware.types import Request
from .openai_errors import translate
from .openai_urls import root_url, shown_url

if TYPE_CHECKING:
    import openai

CONNECT_SECONDS = 5.0
PAGE_SECONDS = 3.0  # for a page on which a server says what it is
_LEARNT = frozenset({"stream_options", "max_completion_tokens"})
# Servers that promise to keep a connection and close it after a stream: a request that is sent in
# between is lost. They are told beforehand that the connection will not be used again.
_END_STREAMS = frozenset({"llama.cpp"})


class Client:
    """Connections to one server, which belong to an event loop and are made at the first use."""

    def __init__(self, base_url: str, key: str, timeout: float) -> None:
        self._base_url = base_url
        self._key = key
        self._timeout = timeout
        self._client: tuple[asyncio.AbstractEventLoop, openai.AsyncOpenAI] | None = None
        self._refused: set[str] = set()  # fields that this server does not take
        self._ends_streams = False

    async def close(self) -> None:
        """Close the connections. Idempotent; a later call opens new ones."""
        client, self._client = self._client, None
        if client is not None and client[0] is asyncio.get_running_loop():
            await client[1].close()

    async def stream(self, body: dict[str, Any]) -> openai.AsyncStream[Any]:
        """Send the request; fields that this server refuses are learnt and left out."""
        import openai

        create = cast("Any", (await self._connect()).chat.completions.create)
        while True:
            try:
                return cast("openai.AsyncStream[Any]", await create(**self._adapted(body)))
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                said = str(error.message)
                news = {name for name in _LEARNT - self._refused if name in said}
                if not news:
                    raise
                self._refused |= news

    def _adapted(self, body: dict[str, Any]) -> dict[str, Any]:
        body = dict(body)
        if self._ends_streams:
            body["extra_headers"] = {"Connection": "close"}
        if "stream_options" in self._refused:
            body.pop("stream_options", None)
        if "max_completion_tokens" in self._refused and "max_tokens" in body:
            body["max_completion_tokens"] = body.pop("max_tokens")  # what OpenAI's newer models say
        return body

    async def models(self) -> list[Any]:
        """Return the entries of the server's list of models, none where there is no such list."""
        import openai

        try:
            raw = await (await self._connect()).models.with_raw_response.list()
            self._ends_streams = raw.headers.get("server") in _END_STREAMS
            page: Any = raw.parse()
        except openai.NotFoundError:  # not every server has this page
            return []
        except Exception as error:
            raise self.translated(error, False) from error
        return list(page.data or ())

    async def page(self, path: str) -> Mapping[str, Any] | None:
        """Return the JSON object on a page of the server, None when there is no such page.

        Raises what a request would raise: no connection, or an overloaded server.
        """
        import openai

        try:
            said: Any = await (await self._connect()).get(
                root_url(self._base_url) + path,
                cast_to=cast("Any", object),
                options={"timeout": PAGE_SECONDS},
            )
        except openai.APITimeoutError:
            return None
        except openai.APIStatusError as error:
            if error.status_code in (429, 503):
                raise self.translated(error, False) from error
            return None
        except openai.APIConnectionError as error:
            raise self.translated(error, False) from error
        except openai.APIError:
            return None
        return cast("Mapping[str, Any]", said) if isinstance(said, Mapping) else None

    async def _connect(self) -> openai.AsyncOpenAI:
        """Return the client of the running event loop; connections belong to a loop."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._client[0] is not loop:
            import openai

            timeout = openai.Timeout(self._timeout, connect=CONNECT_SECONDS)
            client = openai.AsyncOpenAI(
                base_url=self._base_url,
                api_key=self._key,
                max_retries=0,
                timeout=timeout,
                # The client's own would close itself when it is collected, on the wrong loop.
                # A redirect would carry the prompt to a host that nobody named.
                http_client=openai.DefaultAsyncHttpxClient(
                    base_url=self._base_url, timeout=timeout, follow_redirects=False
                ),
            )
            self._client = (loop, client)
        return self._client[1]

    def translated(
        self, error: Exception, constrained: bool, request: Request | None = None
    ) -> HeadraceError:
        """Return what the exception means to our caller, without the key and the prompt."""
        prompt = [m.text for m in request.messages] if request else []
        url = shown_url(self._base_url)
        return translate(error, url=url, key=self._key, constrained=constrained, prompt=prompt)
