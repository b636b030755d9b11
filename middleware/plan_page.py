"""A planned answer as a page: the graph of its parts and when each was written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from .files import GENERATOR
from .pages import STYLE

_BOX, _HIGH, _GAP, _DOWN = 190, 34, 60, 16
_WIDE, _LEFT, _ROW = 860, 210, 26
# Colours that can be read on white and on black; text is the page's own.
_STYLE = """
svg { max-width: 100%; height: auto; font: 13px system-ui, sans-serif }
svg text { fill: currentColor }
.box { fill: #3b82f62e; stroke: #3b82f6 } .edge { stroke: currentColor; fill: none; opacity: .7 }
.soft { stroke-dasharray: 4 4 } .axis { stroke: currentColor; fill: none; opacity: .3 }
.wait { fill: none; stroke: currentColor; stroke-dasharray: 3 3; opacity: .7 }
.done { fill: #3b82f6b0 } .failed { fill: #dc2626b0 } .planner { fill: #8888889c }
"""


def plan_page(facts: Mapping[str, Any]) -> str:
    """Return a self-contained page; ``facts`` is what ``headrace plan --json`` prints."""
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in said(facts)
    )
    nodes: Sequence[Mapping[str, Any]] = facts["nodes"]
    drawn = ""
    if nodes:
        drawn = (
            f"<h2>Parts</h2>{graph_svg(nodes)}<h2>Time</h2>{gantt_svg(facts)}"
            "<p>Solid bars are what was written, dashed ones what was predicted; a dashed arrow "
            "means that a part agrees with another one and does not wait for it.</p>"
        )
    answer = f"<h2>Answer</h2><pre>{escape(facts['text'])}</pre>" if facts["text"] else ""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{GENERATOR}'
        f"<title>headrace plan: {escape(facts['question'][:80])}</title>"
        f"<style>{STYLE}{_STYLE}</style></head><body><h1>{escape(facts['question'])}</h1>"
        f"<table>{rows}</table>{drawn}{answer}</body></html>\n"
    )


def said(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what was chosen, predicted and measured, as lines of a name and a text."""
    rows = [
        ("strategy", f"{facts['strategy']}: {facts['why']}"),
        ("decision", facts["decision"]),
    ]
    if facts["plan_tokens"]:
        seconds = facts["plan_seconds"]
        took = "not awaited" if seconds is None else f"in {seconds:.2f} s"
        rows.append(("planner", f"{facts['plan_tokens']} tokens {took}"))
    if facts["predicted_seconds"] is not None:
        one = f", one call {facts['sequential_seconds']:.2f} s" if facts["is_dry"] else ""
        gain = f", gain {facts['predicted_gain']:.2f}" if facts["predicted_gain"] else ""
        rows.append(("predicted", f"{facts['predicted_seconds']:.2f} s{one}{gain}"))
    if facts["actual_seconds"] is not None:
        rows.append(("actual", f"{facts['actual_seconds']:.2f} s"))
    return rows


def graph_svg(nodes: Sequence[Mapping[str, Any]]) -> str:
    """Return the parts as boxes, each right of what it needs, with an arrow from there."""
    column: dict[int, int] = {}
    for node in nodes:
        right = [column[id] + 1 for id in node["needs"]] + [column[id] for id in node["agrees"]]
        column[node["id"]] = max(right, default=0)
    height: dict[int, int] = {}
    place: dict[int, tuple[int, int]] = {}
    for node in nodes:
        at = column[node["id"]]
        row = height.get(at, 0)
        height[at] = row + 1
        place[node["id"]] = 30 + at * (_BOX + _GAP), 10 + row * (_HIGH + _DOWN)
    wide = 40 + (max(column.values()) + 1) * (_BOX + _GAP) - _GAP
    high = 10 + max(height.values()) * (_HIGH + _DOWN)
    parts: list[str] = []
    for node in nodes:
        x, y = place[node["id"]]
        for kind, others in (("edge", node["needs"]), ("edge soft", node["agrees"])):
            for other in others:
                path = _path(place[other], (x, y))
                parts.append(f'<path class="{kind}" marker-end="url(#tip)" d="{path}"/>')
    for node in nodes:
        x, y = place[node["id"]]
        name = f"{node['id']}. {node['title']}"
        parts.append(
            f'<g><title>{escape(name)}</title><rect class="box" rx="6" x="{x}" y="{y}" '
            f'width="{_BOX}" height="{_HIGH}"/><text x="{x + 8}" y="{y + 22}">'
            f"{escape(_cut(name, 26))}</text></g>"
        )
    tip = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="currentColor"/></marker>'
        "</defs>"
    )
    return _svg(wide, high, tip + "".join(parts), "The parts and what they need")


def _path(other: tuple[int, int], own: tuple[int, int]) -> str:
    """Return the way from one box to another: to the right, or around on the left."""
    (left, top), (x, y) = other, own
    start, end = top + _HIGH / 2, y + _HIGH / 2
    if left == x:
        return f"M{x} {start:g}C{x - 30} {start:g} {x - 30} {end:g} {x} {end:g}"
    return f"M{left + _BOX} {start:g}L{x} {end:g}"


def gantt_svg(facts: Mapping[str, Any]) -> str:
    """Return a bar a part: when it was predicted to be written, and when it was."""
    nodes: Sequence[Mapping[str, Any]] = facts["nodes"]
    guess = {one["id"]: one for one in facts["predicted_spans"]}
    ends = [one["end"] for one in (*nodes, *guess.values()) if one["end"] is not None]
    end: float = max([*ends, facts["plan_seconds"] or 0.0, 1e-9])

    def x(seconds: float) -> float:
        return _LEFT + (_WIDE - _LEFT - 60) * float(seconds) / end

    parts: list[str] = []
    rows = [*_planner(facts), *nodes]
    for row, node in enumerate(rows):
        y = 8 + row * _ROW
        name = f"{node['id']}. {node['title']}" if node["id"] else node["title"]
        parts.append(
            f'<g><title>{escape(name)}</title><text x="0" y="{y + 15}">'
            f"{escape(_cut(name, 28))}</text></g>"
        )
        if one := guess.get(node["id"]):
            parts.append(_bar("wait", x(one["start"]), x(one["end"]), y + 1, 18))
        if node["start"] is not None and node["end"] is not None:
            kind = "failed" if node.get("error") else "done" if node["id"] else "planner"
            parts.append(_bar(kind, x(node["start"]), x(node["end"]), y + 4, 12))
            text = f"{node['end']:.2f} s"
            parts.append(f'<text x="{x(node["end"]) + 5:.1f}" y="{y + 15}">{text}</text>')
    bottom = 8 + len(rows) * _ROW
    parts.append(
        f'<path class="axis" d="M{_LEFT} 4V{bottom}H{x(end):.1f}"/>'
        f'<text x="{_LEFT}" y="{bottom + 16}">0</text>'
        f'<text x="{x(end):.1f}" y="{bottom + 16}" text-anchor="end">{end:.2f} s</text>'
    )
    return _svg(_WIDE, bottom + 24, "".join(parts), "When the parts are written")


def _planner(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    if not facts["plan_tokens"]:
        return []
    return [{"id": 0, "title": "planner", "start": 0.0, "end": facts["plan_seconds"]}]


def _bar(kind: str, start: float, end: float, y: float, high: int) -> str:
    return (
        f'<rect class="{kind}" x="{start:.1f}" y="{y}" width="{max(end - start, 1):.1f}" '
        f'height="{high}" rx="3"/>'
    )


def _svg(wide: float, high: float, inner: str, label: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:g} {high:g}" '
        f'width="{wide:g}" role="img" aria-label="{label}">{inner}</svg>'
    )


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else text[: size - 1] + "…"
