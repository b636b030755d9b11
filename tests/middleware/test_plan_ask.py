"""The options of planning on the command line, with an engine that is simulated."""

from __future__ import annotations

import sys

import pytest
from engine import Cost, SimulatedEngine, calls_of, planned

from headrace.middleware import cli

LIST = "What are the benefits of regular exercise?"
GRAPH = "@plan\n1|Heart|~6\n2|Mood|~6\n3|Sleep|~6\n4|Rest|~6\n@end\n"


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> SimulatedEngine:
    made = SimulatedEngine(planned(GRAPH, plain=" ".join(f"word{k}" for k in range(300))))
    monkeypatch.setattr("headrace.backends.make_backend", lambda backend, model: made)
    return made


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["headrace", *arguments])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return int(caught.value.code or 0)


def test_ask_divides_an_outline_without_a_planner(
    engine: SimulatedEngine, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    options = ("--outline", "Costs", "--outline", "Noise", "--plan-when", "always")
    assert run(monkeypatch, "ask", LIST, *options) == 0
    out = capfd.readouterr().out
    assert out.startswith("1. **Costs**:")
    assert "\n\n2. **Noise**:" in out
    assert not any("Do not answer yet" in r.request.messages[-1].text for r in engine.log)


@pytest.mark.parametrize(
    ("command", "strategy", "when"),
    [("ask", "--plan", "--plan-when"), ("plan", "--strategy", "--when")],
)
def test_both_commands_take_every_option(
    engine: SimulatedEngine,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    command: str,
    strategy: str,
    when: str,
) -> None:
    options = ("--max-nodes", "2", "--width", "1", "--race", "--seams")
    assert run(monkeypatch, command, LIST, strategy, "graph", when, "always", *options) == 0
    assert "2. **Mood" in capfd.readouterr().out
    assert len(calls_of(engine, 2)) == 1
    assert not calls_of(engine, 3)  # the tail is merged
    assert any(record.request.messages[-1].text == LIST for record in engine.log)  # raced


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--max-nodes", "1"), "max_nodes must be from 2 to 99, got 1"),
        (("--width", "0"), "width must be at least 1, got 0"),
        (("--plan", "graph", "--outline", "A"), "an outline"),
        (("--outline", "A", "--outline", "a"), "twice"),
    ],
)
def test_senseless_options_are_said_in_a_line_before_the_engine_is_asked(
    engine: SimulatedEngine,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    said: str,
) -> None:
    assert run(monkeypatch, "ask", LIST, *options) == 2
    err = capfd.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1
    assert not engine.log


def test_a_plain_answer_that_is_there_before_the_plan_is_shown_with_what_the_plan_had(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    made = SimulatedEngine(planned(GRAPH, plain="Short one."), cost=Cost(step=0.001))
    monkeypatch.setattr("headrace.backends.make_backend", lambda backend, model: made)
    assert run(monkeypatch, "plan", LIST, "--strategy", "graph", "--race") == 0
    out, err = capfd.readouterr()
    assert out.startswith("Short one.")
    assert "not awaited" in err
