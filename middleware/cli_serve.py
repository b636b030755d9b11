"""``headrace serve``: the proxy in front of a server."""

from __future__ import annotations

import contextlib
import logging
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from .errors import HeadraceError, InvalidRequest
from .ports import listening

_LOOPBACK = frozenset(("127.0.0.1", "::1", "localhost"))
_INSTALL = "the proxy needs packages that are not here; run: pip install 'headrace[proxy]'"


def serve(
    backend: Annotated[
        str | None, typer.Option(help="URL of the OpenAI-compatible server behind it.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML file with policies; read again when it changes.")
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen at.", min=0, max=65535)] = 8090,
    open_to_all: Annotated[
        bool, typer.Option(help="Listen beyond this machine without keys of its own.")
    ] = False,
    drain: Annotated[
        int, typer.Option(help="Seconds that requests may go on after a stop.", min=0)
    ] = 30,
    quiet: Annotated[bool, typer.Option(help="No line for each request.")] = False,
) -> None:
    """Compress what passes between OpenAI's clients and a server; Ctrl-C ends it.

    Point a client at http://HOST:PORT/v1. /ui shows what is saved, /metrics is for Prometheus.
    """
    try:
        import uvicorn

        for name in ("httpx", "prometheus_client"):
            import_module(name)
        from .proxy.app import make_app
    except ImportError as error:
        raise HeadraceError(f"{_INSTALL} ({error})") from error
    from .proxy.config import Live

    live = Live(config, backend=backend)
    if host not in _LOOPBACK and not live.config.keys and not open_to_all:
        raise InvalidRequest(
            f"{host} can be reached by others: set keys_env in the configuration, or pass"
            " --open-to-all"
        )
    sock = listening(host, port)
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(is_told)
    logging.basicConfig(handlers=[handler], format="%(message)s", level=logging.WARNING)
    logging.getLogger("headrace.proxy").setLevel(logging.WARNING if quiet else logging.INFO)
    settings = uvicorn.Config(
        make_app(live, warm=True),
        host=host,
        port=port,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        ws="none",
        timeout_keep_alive=75,  # longer than clients do, so that it is they who close
        timeout_graceful_shutdown=drain,
    )
    server = uvicorn.Server(settings)
    bound = sock.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    sys.stderr.write(f"http://{shown}:{bound}/v1 (page: http://{shown}:{bound}/ui)\n")
    sys.stderr.flush()
    with contextlib.suppress(KeyboardInterrupt):  # said again when all requests have ended
        server.run(sockets=[sock])


def is_told(record: logging.LogRecord) -> bool:
    """Whether a line is for the terminal: some libraries set levels of their own and chatter."""
    return record.levelno >= logging.WARNING or record.name.startswith("headrace")
