"""The HTML report of one answer: self-contained, nothing fetched."""

from __future__ import annotations

from html import escape

from .files import GENERATOR
from .types import Request, Response

STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #8884 }
td.number { font-variant-numeric: tabular-nums; text-align: right }
pre { white-space: pre-wrap; background: #8882; padding: 1rem; border-radius: .5rem }
"""


def report_page(request: Request, response: Response) -> str:
    """Return a page with the question, the documents used, the answer and what each stage did."""
    usage = response.usage
    stages = "".join(
        f"<tr><td>{escape(row.stage)}</td><td>{escape(row.decision)}</td>"
        f'<td class="number">{_tokens(row.tokens_in, row.tokens_out)}</td>'
        f'<td class="number">{row.seconds:.2f}</td></tr>'
        for row in response.report.stages
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{GENERATOR}'
        f"<title>headrace: {escape(request.question[:80])}</title><style>{STYLE}</style></head>"
        f"<body><h1>{escape(request.question)}</h1>"
        f"<p>{usage.prompt_tokens} prompt tokens, {usage.completion_tokens} completion tokens, "
        f"{usage.num_calls} engine calls, {response.report.tokens_saved} tokens saved, "
        f"finish reason {escape(response.finish_reason)}</p>"
        f"<h2>Answer</h2><pre>{escape(response.text)}</pre>"
        "<h2>Stages</h2><table><tr><th>stage</th><th>what it did</th><th>tokens</th>"
        f"<th>seconds</th></tr>{stages}</table>{_documents(response)}</body></html>\n"
    )


def _tokens(before: int | None, after: int | None) -> str:
    return "" if before is None else f"{before} → {after}"


def _documents(response: Response) -> str:
    row = response.report.stage("rerank")
    used = row.details.get("documents", ()) if row else ()
    if not used:
        return ""
    rows = "".join(
        f"<tr><td>{escape(str(one['id'] or ''))}</td><td>{escape(one['title'])}</td>"
        f'<td class="number">{one["score"]:.3f}</td></tr>'
        for one in used
    )
    return (
        f"<h2>Documents</h2><table><tr><th>id</th><th>title</th><th>score</th></tr>{rows}</table>"
    )
