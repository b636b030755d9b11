"""The roofline as a page: tables and curves, self-contained."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ..files import GENERATOR
from ..pages import STYLE
from .charts import Line, chart, short
from .roofline import Roofline, Stage
from .work import Work

COLUMNS = ("operator", "runs", "OPs", "memory", "OPs/B", "OPs/s", "seconds", "bound")
WORK_COLUMNS = ("request", "prefill", "decode", "total", "tokens/s", "KV cache", "largest batch")


def stage_rows(stage: Stage) -> list[tuple[str, ...]]:
    """Return LLM-Viewer's table of a pass: an operator a row, figures of one run."""
    return [
        (
            row.operator.name,
            str(row.operator.count),
            short(row.operator.ops),
            short(row.operator.memory),
            _ratio(row.operator.intensity),
            short(row.performance),
            seconds(row.seconds),
            row.bound,
        )
        for row in stage.rows
    ]


def _ratio(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else short(value)


def work_rows(works: Sequence[Work]) -> list[tuple[str, ...]]:
    """Return a row a way of answering."""
    return [
        (
            one.name,
            seconds(one.prefill),
            seconds(one.decode),
            seconds(one.seconds),
            short(one.tokens_per_second),
            short(one.kv) + "B",
            str(one.largest_batch),
        )
        for one in works
    ]


def seconds(value: float) -> str:
    """Return a time with its unit.

    >>> seconds(0.0186), seconds(2.5), seconds(4.4e-5)
    ('18.6 ms', '2.50 s', '44.0 us')
    """
    for size, unit in ((1, "s"), (1e-3, "ms")):
        if value >= size * 0.9995:
            return f"{short(value / size)} {unit}"
    return f"{short(value * 1e6)} us"


def roofline_page(
    roofline: Roofline, prefill: Stage, decode: Stage, works: Sequence[Work], facts: Sequence[str]
) -> str:
    """Return the page: facts, what would save what, both tables, three charts."""
    title = f"{roofline.shape.name} on {roofline.device.name}"
    step = prefill.step
    batches = sorted({2**i for i in range(9)} | {step.batch})
    lengths = sorted({2**i for i in range(6, 16)} | {step.context})
    each = [(batch, roofline.decode(step.context, batch).seconds) for batch in batches]
    rate = [(batch, batch / spent) for batch, spent in each]
    long = [(n, roofline.prefill(n, step.batch).seconds) for n in lengths]
    grows = [(n, roofline.decode(n, step.batch).seconds) for n in lengths]
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{GENERATOR}'
        f"<title>headrace: {escape(title)}</title><style>{STYLE}</style></head>"
        f"<body><h1>{escape(title)}</h1>"
        + "".join(f"<p>{escape(fact)}</p>" for fact in facts)
        + f"<h2>A request</h2>{_table(WORK_COLUMNS, work_rows(works))}"
        + f"<h2>Roofline</h2>{_plot(roofline, prefill, decode)}"
        + "<h2>Batch</h2>"
        + chart("batch", "tokens/s", [Line("decode", rate)])
        + "<h2>Sequence</h2>"
        + chart("tokens", "seconds", [Line("prefill", long), Line("decode step", grows)])
        + f"<h2>Prefill</h2>{_table(COLUMNS, stage_rows(prefill))}"
        + f"<h2>Decode step</h2>{_table(COLUMNS, stage_rows(decode))}"
        + "</body></html>\n"
    )


def _plot(roofline: Roofline, prefill: Stage, decode: Stage) -> str:
    bandwidth, peak = roofline.device.bandwidth, roofline.peak
    marks: list[Line] = []
    for name, stage in (("prefill", prefill), ("decode", decode)):
        rows = [row for row in stage.rows if row.operator.ops]
        points = [(row.operator.intensity, row.performance) for row in rows]
        marks.append(Line(name, points, [f"{name} {row.operator.name}" for row in rows]))
    low = min(x for line in marks for x, _ in line.points)
    ridge = peak / bandwidth
    high = max(ridge, *(x for line in marks for x, _ in line.points)) * 4
    roof = Line("roofline", [(low, low * bandwidth), (ridge, peak), (high, peak)])
    return chart("operations a byte", "operations/s", [roof, *marks])


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"
