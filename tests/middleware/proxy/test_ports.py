"""Where the proxy and an engine listen, and what they say where they cannot."""

from __future__ import annotations

import inspect
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_type_hints

import pytest
from typer.testing import CliRunner

from headrace.middleware.cli import app, main
from headrace.middleware.cli_engines import serve_engine
from headrace.middleware.cli_serve import serve
from headrace.middleware.doctor import LOCAL_ENGINES
from headrace.middleware.errors import HeadraceError
from headrace.middleware.ports import listening

BACKEND = ["--backend", "http://127.0.0.1:9"]


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        yield sock.getsockname()[1]


def port_of(command: object) -> int:
    assert callable(command)
    return int(inspect.signature(command).parameters["port"].default)


def test_the_proxy_and_the_engine_behind_it_start_at_ports_of_their_own() -> None:
    assert get_type_hints(serve)["port"] is int
    engines = {int(url.split(":")[2].split("/")[0]) for url in LOCAL_ENGINES.values()}
    assert port_of(serve) not in {port_of(serve_engine), *engines}
    assert port_of(serve_engine) in engines  # so that doctor finds it
    page = Path(__file__).resolve().parents[3].joinpath("docs", "proxy.md").read_text("utf-8")
    assert f"http://127.0.0.1:{port_of(serve)}/v1" in page


@pytest.mark.parametrize("command", [["serve", *BACKEND], ["serve-engine", "llama"]])
def test_a_port_in_use_is_one_line_with_a_free_one(command: list[str], taken: int) -> None:
    result = CliRunner().invoke(app, [*command, "--port", str(taken)])
    assert isinstance(result.exception, HeadraceError)
    said = str(result.exception)
    assert f"port {taken} is in use; stop what listens at 127.0.0.1:{taken}, or choose" in said
    assert "\n" not in said
    with listening("127.0.0.1", int(said.rpartition("--port ")[2])):
        pass


def test_it_is_all_that_is_printed(
    taken: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["headrace", "serve", *BACKEND, "--port", str(taken)])
    with pytest.raises(SystemExit) as ended:
        main()
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"headrace: error: port {taken} is in use")
    assert ended.value.code


@pytest.mark.parametrize(("host", "words"), [("192.0.2.1", "--host"), ("a" * 70, "--host")])
def test_a_host_that_is_not_this_machine_is_one_line(host: str, words: str) -> None:
    with pytest.raises(HeadraceError, match=f"cannot listen at {host}:0: .*{words}"):
        listening(host, 0)


def test_a_port_that_is_bound_twice_at_once_is_seen_at_once() -> None:
    with (
        listening("127.0.0.1", 0) as sock,
        pytest.raises(HeadraceError, match="is in use"),
    ):
        listening("127.0.0.1", sock.getsockname()[1])
