"""The proxy as an ASGI application: pages of its own, and everything else to the server."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import Receive, Scope, Send

from ..wrap_bodies import kind_of
from ..wrap_options import stages
from .config import Live
from .errors import NO_RETRY, Failure
from .limits import Gate, Gone, check_key, read_body
from .metrics import Metrics, Record
from .routes import Call, Routes, decide
from .sending import Sending
from .ui import page

_log = logging.getLogger("headrace.proxy")
_WARM = "The mill was built of grey stone in 1841 by the older of the two brothers. " * 4
CHECK_SECONDS = 2.0
_OUR_OWN = "headrace stopped: an error of its own"


def make_app(live: Live, routes: Routes | None = None, *, warm: bool = False) -> Starlette:
    """Return the proxy. ``warm``: models of the policies are loaded before the first request."""
    proxy = Proxy(live, routes or Routes())

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        if warm:
            await asyncio.to_thread(_warm, live)
        yield
        await proxy.routes.close()

    pages = [
        Route("/health", proxy.health),
        Route("/ready", proxy.ready),
        Route("/metrics", proxy.metrics_page),
        Route("/ui", proxy.ui),
        Route("/ui/data", proxy.ui_data),
    ]
    app = Starlette(routes=[*pages, Mount("", app=proxy)], lifespan=lifespan)
    app.state.proxy = proxy
    return app


class Proxy:
    """What is behind the pages, and the application for everything else."""

    def __init__(self, live: Live, routes: Routes) -> None:
        self.live = live
        self.routes = routes
        self.gate = Gate()
        self.metrics = Metrics(live)
        self.metrics.open.set_function(lambda: float(self.gate.num_open))
        self._checked: tuple[float, str | None] = (float("-inf"), None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; it is given up when its caller goes away."""
        if scope["type"] != "http":
            raise RuntimeError(f"a proxy for HTTP, not for {scope['type']}")
        started = time.monotonic()
        sending, record = Sending(send), Record(status=499)
        if scope["method"] == "POST":
            record.route = kind_of(_path(scope)) or "other"
        try:
            config = self.live.config
            with self.gate.enter(config.max_concurrency, record.clock):
                try:
                    await self._guarded(scope, receive, sending, record)
                finally:
                    record.clock.append(time.monotonic() - started)
        except Gone:
            record.is_gone = True
        except Failure as failure:
            record.error, record.status = failure.code, failure.status
            await _fail(sending, failure, record)
        except Exception as error:  # ours, and in one line: a traceback could hold a prompt
            record.error, record.status = "internal", 500
            _log.error(
                "%s: %s", _OUR_OWN, type(error).__name__, exc_info=_log.isEnabledFor(logging.DEBUG)
            )
            await _fail(sending, Failure(500, "internal", _OUR_OWN, NO_RETRY), record)
        finally:
            record.seconds = time.monotonic() - started
            record.status = sending.status or record.status
            if sending.first_at is not None:
                record.first_seconds = sending.first_at - started
            self._note(scope, record)

    async def _guarded(
        self, scope: Scope, receive: Receive, sending: Sending, record: Record
    ) -> None:
        config = self.live.config
        headers = dict(scope["headers"])
        if config.keys:
            check_key(headers, config.keys)
        body = await read_body(headers, receive, config.max_body, config.timeout)
        query = scope["query_string"]
        call = Call(scope["method"], _path(scope), query, scope["headers"], body)
        work = asyncio.create_task(self.routes.answer(config, call, sending, record))
        gone = asyncio.create_task(_gone(receive))
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done() and not sending.is_over:
                raise Gone
            await work
        finally:
            for task in (gone, work):
                task.cancel()
            await asyncio.gather(gone, work, return_exceptions=True)

    def _note(self, scope: Scope, record: Record) -> None:
        try:
            self.metrics.observe(record)
            if record.route != "other" and not record.is_traced:
                self.routes.tracer.refused(self.live.config, record, scope["headers"])
        except Exception as error:
            _log.error("a request was not counted: %s", type(error).__name__)
        if _log.isEnabledFor(logging.INFO):
            saved = f" {record.tokens_before} -> {record.tokens_after} tokens"
            _log.info(
                "%s %s %s%s %.3f s%s",
                scope["method"],
                record.route,
                "gone" if record.is_gone else record.status,
                saved if record.tokens_before else "",
                record.seconds,
                f" {record.error}" if record.error else "",
            )

    async def health(self, request: Request) -> Response:
        """Say that the process answers."""
        return JSONResponse({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """Say whether the server behind answers too; it is asked at most every two seconds."""
        at, problem = self._checked
        if time.monotonic() - at > CHECK_SECONDS:
            problem = await self._problem()
            self._checked = time.monotonic(), problem
        said = {"status": "unavailable" if problem else "ok", "backend": problem or "ok"}
        if self.live.config and self.live.error:
            said["config"] = self.live.error
        return JSONResponse(said, 503 if problem else 200)

    async def metrics_page(self, request: Request) -> Response:
        """Return everything counted, in Prometheus' text format."""
        if (refused := self._refused(request)) is not None:
            return refused
        return Response(self.metrics.text(), media_type="text/plain; version=0.0.4")

    async def ui(self, request: Request) -> Response:
        """Show the page, which holds no numbers itself."""
        return HTMLResponse(page(), headers={"cache-control": "no-store", **_SAFE})

    async def ui_data(self, request: Request) -> Response:
        """Return what the page shows."""
        if (refused := self._refused(request)) is not None:
            return refused
        data = self.metrics.page() | {
            "open": self.gate.num_open,
            "config_error": self.live.error,
        }
        return JSONResponse(data, headers={"cache-control": "no-store"})

    def _refused(self, request: Request) -> Response | None:
        try:
            if keys := self.live.config.keys:
                check_key(dict(request.headers.raw), keys)
        except Failure as failure:
            return Response(failure.body, failure.status, media_type="application/json")
        return None

    async def _problem(self) -> str | None:
        config = self.live.config
        url = f"{config.backend.partition('?')[0]}/models"
        key = [(b"authorization", f"Bearer {config.backend_key}".encode())]
        try:
            async with (
                asyncio.timeout(CHECK_SECONDS),
                self.routes.upstream.answer(
                    config, "GET", url, key if config.backend_key else [], b""
                ) as response,
            ):
                status = response.status_code
        except Failure as failure:
            return failure.message
        except TimeoutError:
            return f"no answer within {CHECK_SECONDS:g} s"
        return f"answers with status {status}" if status >= 500 else None


_SAFE = {
    "content-security-policy": (
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline';"
        " connect-src 'self'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}


def _path(scope: Scope) -> str:
    """Return the path as it was written."""
    return str(scope.get("raw_path", scope["path"].encode()).decode("latin-1"))


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _fail(sending: Sending, failure: Failure, record: Record) -> None:
    if sending.status:
        # Anything but events is left without its end, which breaks the connection: the caller sees
        # that something is missing.
        if sending.is_events and not sending.is_over:
            await sending.end(failure.event)
        return
    if not record.decision and record.route != "other":
        decide(sending, record, "refused")
    headers = [(name.encode(), value.encode()) for name, value in failure.headers.items()]
    json_type = (b"content-type", b"application/json")
    await sending.whole(failure.status, [json_type, *headers], failure.body)


def _warm(live: Live) -> None:
    """Load what the policies name; what cannot be loaded is said, and its requests pass as is."""
    from ..compress import Compress

    for name, policy in live.config.models.items():
        for stage in stages(policy):
            if not isinstance(stage, Compress):
                continue
            try:
                stage.engine.compress([_WARM], stage.budget)
            except Exception as error:  # whatever a model's library says
                said = " ".join(str(error).split()) or type(error).__name__
                _log.warning('[models."%s"] will change nothing: %.200s', name, said)
