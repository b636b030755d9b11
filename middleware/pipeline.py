"""Stages around an engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing
from functools import partial, reduce
from types import TracebackType
from typing import Self

from ..backends.base import Backend
from .blocking import Loop, T
from .dispatcher import Dispatcher
from .errors import HeadraceError, InvalidRequest
from .types import Event, Finished, Handler, Middleware, Request, Response


class Pipeline:
    """``stages`` folded around an engine, the first one outermost.

    ``stream`` is the only path; ``run`` is ``stream`` collected and ``map`` is many ``run`` in
    order. Each has a blocking twin (``stream_sync``, ``run_sync``, ``map_sync``), which also works
    inside a running event loop. Close it, or use it as a context manager, to free the engine.
    """

    def __init__(
        self,
        stages: Sequence[Middleware],
        backend: Backend | Dispatcher,
        *,
        loop: Loop | None = None,
    ) -> None:
        self.stages = tuple(stages)
        self.dispatcher = backend if isinstance(backend, Dispatcher) else Dispatcher(backend)
        innermost: Handler = self.dispatcher
        self._handler = reduce(_around, reversed(self.stages), innermost)
        self.loop = loop or Loop()

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Yield the answer's events as they come; the last one is ``Finished``.

        Closing the generator early stops the engine's work on the request.
        """
        async with aclosing(self._handler(request)) as events:
            async for event in events:
                yield event

    async def run(self, request: Request) -> Response:
        """Return the whole answer."""
        async with aclosing(self._handler(request)) as events:
            async for event in events:
                if isinstance(event, Finished):
                    return event.response
        raise HeadraceError("a stage ended its stream without Finished; the last event must be one")

    async def map(
        self, requests: Iterable[Request], *, concurrency: int = 64
    ) -> list[Response | HeadraceError]:
        """Answer many requests, at most ``concurrency`` at a time, in the requests' order.

        A request that fails has its error in its place; the others are not disturbed.
        """
        if concurrency < 1:
            raise InvalidRequest(f"concurrency must be at least 1, got {concurrency}")
        gate = asyncio.Semaphore(concurrency)

        async def one(request: Request) -> Response | HeadraceError:
            async with gate:
                try:
                    return await self.run(request)
                except HeadraceError as error:
                    return error
                except Exception as error:  # a stage's own: told like any other failure
                    failure = HeadraceError(f"{type(error).__name__}: {error}")
                    failure.__cause__ = error
                    return failure

        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(one(request)) for request in requests]
        return [task.result() for task in running]

    def stream_sync(self, request: Request) -> Iterator[Event]:
        """Blocking twin of ``stream``."""
        return self.loop.iterate(self.stream(request))

    def run_sync(self, request: Request) -> Response:
        """Blocking twin of ``run``."""
        return self.loop.run(self.run(request))

    def map_sync(
        self, requests: Iterable[Request], *, concurrency: int = 64
    ) -> list[Response | HeadraceError]:
        """Blocking twin of ``map``."""
        return self.loop.run(self.map(requests, concurrency=concurrency))

    def blocking(self, coroutine: Coroutine[object, object, T]) -> T:
        """Run any coroutine where the blocking calls run, and wait for it."""
        return self.loop.run(coroutine)

    async def aclose(self) -> None:
        """Free the engine, and what stages hold of their own (their ``aclose``). Idempotent.

        One that cannot be closed does not keep the others open; its error is raised at the end.
        """
        async with AsyncExitStack() as closing:
            closing.push_async_callback(self.dispatcher.close)
            for stage in self.stages:
                if (aclose := getattr(stage, "aclose", None)) is not None:
                    closing.push_async_callback(aclose)

    def close(self) -> None:
        """Blocking twin of ``aclose``, which also stops the blocking calls' thread."""
        try:
            self.loop.run(self.aclose())
        finally:
            self.loop.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _around(call_next: Handler, stage: Middleware) -> Handler:
    return partial(_call, stage, call_next)


def _call(stage: Middleware, call_next: Handler, request: Request) -> AsyncGenerator[Event, None]:
    return stage(request, call_next)
