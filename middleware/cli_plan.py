"""The command ``headrace plan``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from .errors import HeadraceError, InvalidRequest
from .terminal import print_json, print_table, print_text, say

if TYPE_CHECKING:
    from .plan_preview import Preview
    from .report import StageReport

Strategy = Literal["auto", "map", "template", "skeleton", "graph", "decide", "sot", "off"]
Outline = Annotated[list[str] | None, typer.Option(help="Title of a section; repeat for each.")]
MaxNodes = Annotated[int, typer.Option(help="Parts at most.")]
Width = Annotated[int, typer.Option(help="Parts at a time.")]
Race = Annotated[
    bool | None,
    typer.Option(
        "--race/--no-race",
        help="Begin a plain answer beside the planner.",
        show_default="where it is free",
    ),
]
Seams = Annotated[bool, typer.Option("--seams", help="Sentences between parts, by one more call.")]
_BAR = 32


def plan(
    question: Annotated[str, typer.Argument(help="What to answer; - is stdin.")],
    strategy: Annotated[Strategy, typer.Option(help="How to divide the answer.")] = "auto",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="The planner's call at most; no answer.")
    ] = False,
    outline: Outline = None,
    schema: Annotated[Path | None, typer.Option(help="JSON schema file for the answer.")] = None,
    when: Annotated[
        Literal["pays", "always"], typer.Option(help="Divide if predicted to pay, or always.")
    ] = "pays",
    max_nodes: MaxNodes = 8,
    width: Width = 8,
    race: Race = None,
    seams: Seams = False,
    max_tokens: Annotated[int | None, typer.Option(help="Length of the answer.")] = None,
    backend: Annotated[
        str | None, typer.Option(help="transformers, or the URL of an OpenAI-compatible server.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="The engine's model.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write a page with graph and times.")] = None,
) -> None:
    """Plan an answer: say what is chosen and why, which parts it has, and when each is written.

    The answer goes to stdout, the plan to stderr; with --dry-run the plan goes to stdout.
    """
    from ..backends import make_backend
    from .constrain import Constrain
    from .constraints import schema_file
    from .files import check_writable, read_text, write_text
    from .pipeline import Pipeline
    from .plan import Plan
    from .plan_page import plan_page
    from .plan_preview import preview
    from .sdk import make_request
    from .types import Finished, Response, TextDelta

    if html is not None:
        check_writable(html)
    stage = Plan(strategy, max_nodes, width, tuple(outline or ()), when, race, seams)
    constraint = None if schema is None else schema_file(schema)
    if question == "-":
        question = read_text("-").strip()
    if not question.strip():
        raise InvalidRequest("the question is empty; pass a text, or - and a text on stdin")
    request = make_request(question, constraint=constraint, max_tokens=max_tokens)
    response: Response | None = None
    with Pipeline((), make_backend(backend, model)) as bare:
        if dry_run:
            seen = bare.blocking(preview(stage, request, bare.dispatcher))
            facts = preview_facts(question, seen)
        else:
            pipeline = Pipeline([stage, Constrain()], bare.dispatcher, loop=bare.loop)
            for event in pipeline.stream_sync(request):
                if isinstance(event, TextDelta) and not as_json:
                    print_text(event.text)
                elif isinstance(event, Finished):
                    response = event.response
            row = response.report.stage("plan") if response else None
            if response is None or row is None:
                raise HeadraceError("the pipeline ended without an answer")
            facts = answer_facts(question, response.text, row)
    if html is not None:
        write_text(html, plan_page(facts))
    if as_json:
        print_json(facts)
        return
    if not dry_run:
        print_text("\n")
    if backend in (None, "transformers") and model is None:
        say("note: the embedded 135M model; --backend URL is for a real one")
    _print(facts, to_stderr=not dry_run)


def preview_facts(question: str, seen: Preview) -> dict[str, Any]:
    """Return a preview as plain values; times are seconds since the request began."""
    from ..planners.calibration import num_tokens
    from .plan_report import node_facts, said, spans

    found = seen.forecast
    is_divided = found is not None and not seen.verdict.startswith("one call")
    left = None if found is None else found.parallel if is_divided else found.sequential
    return {
        "question": question,
        "is_dry": True,
        **said(seen.choice),
        "decision": seen.verdict,
        "nodes": [
            {
                "id": node.id,
                "title": node.title,
                **node_facts(node),
                "start": None,
                "end": None,
                "tokens": 0,
                "error": None,
            }
            for node in seen.nodes
        ],
        "predicted_spans": spans(found, seen.plan_seconds),
        "predicted_gain": found.gain if found else None,
        "predicted_seconds": None if left is None else seen.plan_seconds + left,
        "sequential_seconds": found.sequential if found else None,
        "actual_seconds": None,
        "plan_tokens": seen.usage.completion_tokens or num_tokens(seen.plan_text),
        "plan_seconds": seen.plan_seconds,
        "plan_text": seen.plan_text,
        "text": "",
    }


def answer_facts(question: str, text: str, row: StageReport) -> dict[str, Any]:
    """Return what happened to an answer, from the report's row."""
    kept: dict[str, Any] = {
        "nodes": [],
        "predicted_spans": [],
        "predicted_gain": None,
        "predicted_seconds": None,
        "sequential_seconds": None,
        "actual_seconds": None,
        "plan_tokens": 0,
        "plan_seconds": 0.0,
    }
    return {"question": question, "is_dry": False, **kept, **row.details} | {
        "decision": row.decision,
        "text": text,
    }


def _print(facts: Mapping[str, Any], *, to_stderr: bool) -> None:
    from .plan_page import said

    print_table(("", ""), said(facts), to_stderr=to_stderr)
    if not facts["nodes"]:
        return
    guess = {one["id"]: one for one in facts["predicted_spans"]}
    ends = [one["end"] for one in (*facts["nodes"], *guess.values()) if one["end"] is not None]
    end = max([*ends, 1e-9])
    rows: list[tuple[str, ...]] = []
    for node in facts["nodes"]:
        one = guess.get(node["id"], {"start": None, "end": None})
        real = node if node["end"] is not None else one
        needs = ", ".join(map(str, node["needs"]))
        agrees = ", ".join(f"~{id}" for id in node["agrees"])
        rows.append(
            (
                str(node["id"]),
                node["title"],
                ", ".join(text for text in (needs, agrees) if text),
                str(node["tokens"] or node["length"]),
                _times(one),
                _times(node),
                _bar(real, end),
            )
        )
    columns = ("", "part", "needs", "tokens", "predicted", "written", "")
    print_table(columns, rows, to_stderr=to_stderr)


def _times(one: Mapping[str, Any]) -> str:
    return "" if one["end"] is None else f"{one['start']:.2f} - {one['end']:.2f} s"


def _bar(one: Mapping[str, Any], end: float) -> str:
    """Return a bar of the time, "   ====  "."""
    if one["end"] is None:
        return ""
    start = round(_BAR * float(one["start"]) / end)
    stop = round(_BAR * float(one["end"]) / end)
    return " " * start + "=" * max(stop - start, 1)
