"""``headrace plan``: what it prints, with an engine that is simulated."""

from __future__ import annotations

import json
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from engine import Reply, SimulatedEngine, planned

from headrace.middleware import cli
from headrace.middleware.plan_page import plan_page

LIST = "What are the benefits of regular exercise?"
GRAPH = "@plan\n1|Heart & <b>|~6\n2|Mood|~6\n3|Sleep|<1|~6\n4|Rest|%2|~6\n@end\n"


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> SimulatedEngine:
    made = SimulatedEngine(planned(GRAPH, {1: Reply("Text one.", delay=0.02)}))
    monkeypatch.setattr("headrace.backends.make_backend", lambda backend, model: made)
    return made


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["headrace", "plan", *arguments])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return int(caught.value.code or 0)


def facts(capfd: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capfd.readouterr().out)
    return found


def test_a_dry_run_asks_the_planner_only(
    engine: SimulatedEngine, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, LIST, "--strategy", "graph", "--dry-run", "--json") == 0
    found = facts(capfd)
    assert len(engine.log) == 1
    assert [node["title"] for node in found["nodes"]] == ["Heart & <b>", "Mood", "Sleep", "Rest"]
    assert found["nodes"][2]["needs"] == [1]
    assert [one["id"] for one in sorted(found["predicted_spans"], key=lambda s: s["id"])] == [
        1, 2, 3, 4,
    ]  # fmt: skip
    assert found["predicted_seconds"] > found["plan_seconds"] > 0
    assert (found["text"], found["actual_seconds"]) == ("", None)


@pytest.mark.parametrize(
    "arguments",
    [
        ("Translate each:\n1. a\n2. b\n3. c", "--strategy", "map"),
        (LIST, "--outline", "Body", "--outline", "Mind"),
        (LIST, "--strategy", "off"),
        ("Who wrote Hamlet?",),
    ],
)
def test_a_dry_run_without_a_planner_makes_no_call(
    engine: SimulatedEngine,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
) -> None:
    assert run(monkeypatch, *arguments, "--dry-run", "--json") == 0
    found = facts(capfd)
    assert engine.log == []
    assert bool(found["nodes"]) == bool(found["predicted_spans"])
    assert found["decision"]


def test_an_answer_is_printed_and_the_plan_beside_it(
    engine: SimulatedEngine, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, LIST, "--strategy", "graph", "--when", "always") == 0
    printed = capfd.readouterr()
    assert "2. **Mood**: Text of part 2." in printed.out
    assert "Sleep" in printed.err
    assert "at the same time" in printed.err
    assert "=" in printed.err


def test_the_json_has_predicted_and_actual_times(
    engine: SimulatedEngine, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, LIST, "--strategy", "graph", "--when", "always", "--json") == 0
    found = facts(capfd)
    assert found["actual_seconds"] > 0
    assert found["predicted_seconds"] is not None
    assert all(node["end"] >= node["start"] for node in found["nodes"])
    assert "Text of part 4." in found["text"]


class Checked(HTMLParser):
    """Counts elements and notes what would load something."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loads += [value or "" for name, value in attrs if name in ("src", "href")]


@pytest.mark.parametrize("dry", [True, False])
def test_the_page_stands_alone_and_escapes_what_models_write(
    engine: SimulatedEngine,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    dry: bool,
) -> None:
    path = tmp_path / "plan.html"
    question = LIST + " <script>alert(1)</script>"
    extra = ["--dry-run"] if dry else ["--when", "always"]
    assert run(monkeypatch, question, "--strategy", "graph", "--html", str(path), *extra) == 0
    text = path.read_text("utf-8")
    page = Checked()
    page.feed(text)
    assert page.loads == []
    assert page.tags.count("svg") == 2
    assert "script" not in page.tags
    assert "b" not in page.tags
    assert "Heart &amp; &lt;b&gt;" in text
    assert "color-scheme: light dark" in text
    assert text.count('class="wait"') == (4 if dry else text.count('class="wait"'))
    assert run(monkeypatch, LIST, "--strategy", "off", "--html", str(path), "--dry-run") == 0


def test_a_page_without_parts_says_what_was_chosen() -> None:
    page = plan_page(
        {
            "question": "Q", "strategy": "off", "why": "switched off", "decision": "one call",
            "nodes": [], "text": "", "plan_tokens": 0, "predicted_seconds": None,
            "actual_seconds": None, "is_dry": True,
        }
    )  # fmt: skip
    assert "switched off" in page
    assert "<svg" not in page


@pytest.mark.parametrize(
    "arguments",
    [
        (" ",),
        (LIST, "--max-nodes", "1"),
        (LIST, "--width", "0"),
        (LIST, "--outline", "One"),
        (LIST, "--outline", "One", "--outline", "Two", "--strategy", "graph"),
        (LIST, "--schema", "missing.json"),
    ],
)
def test_bad_usage_is_a_line_and_exit_code_2(
    engine: SimulatedEngine,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
) -> None:
    assert run(monkeypatch, *arguments) == 2
    assert capfd.readouterr().err.count("\n") == 1
