"""A page that shows what was cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from .compressor import Compressed

_MAX_SCORES = 20_000
_STYLE = """
:root { color-scheme: light dark;
  --text: #1a1a1a; --page: #ffffff; --cut: #767676; --line: #d0d0d0; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e8e8e8; --page: #161616; --cut: #8a8a8a; --line: #404040; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page);
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--line);
  font-weight: normal; }
th { color: var(--cut); }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font: inherit; padding-top: 1rem;
  border-top: 1px solid var(--line); }
ins { color: var(--cut); font-style: italic; text-decoration: none; }
del { color: var(--cut); text-decoration: line-through; text-decoration-thickness: 1px; }
"""


def to_html(results: Sequence[Compressed], *, title: str) -> str:
    """Return one page: the originals with what was dropped greyed and struck through.

    What a note says in its place ("[55 more lines like this]") stands before it, in italics.

    Tokens before and after, rate, compressor, seconds and reason stand on top of each text. A
    word's score is shown on hover; for texts of more than 20,000 words together it is left out,
    to keep the page small. The page needs no network, and everything in it is escaped.
    """
    with_scores = sum(len(result.scores) for result in results) <= _MAX_SCORES
    before = sum(result.tokens_in for result in results)
    after = sum(result.tokens_out for result in results)
    body = "\n".join(_section(result, with_scores) for result in results)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="generator" content="headrace">'
        f"<title>{_safe(title)}</title><style>{_STYLE}</style></head><body>\n"
        f"<h1>{_safe(title)}</h1>\n<p>{before:,} tokens in, {after:,} out</p>\n{body}\n"
        "</body></html>\n"
    )


def _section(result: Compressed, with_scores: bool) -> str:
    rows = [
        ("tokens in", f"{result.tokens_in:,}"),
        ("tokens out", f"{result.tokens_out:,}"),
        ("rate", f"{result.rate:.3f}"),
        ("compressor", result.compressor),
        ("seconds", f"{result.seconds:.3f}"),
    ]
    if result.reason:
        rows.append(("not as asked", result.reason))
    head = "".join(f"<tr><th>{_safe(k)}</th><td>{_safe(v)}</td></tr>" for k, v in rows)
    body = _marked(result, with_scores)
    return f'<section><table>{head}</table>\n<pre dir="auto">{body}</pre></section>'


def _marked(result: Compressed, with_scores: bool) -> str:
    parts: list[str] = []
    scores = list(result.scores) if with_scores else []
    notes = list(result.notes)
    for start, end, is_kept in _stretches(result):
        while notes and notes[0].at <= start:
            parts.append(f"<ins>{_safe(notes.pop(0).text)}</ins>")
        content = "".join(_scored(result.original, start, end, scores))
        parts.append(content if is_kept else f"<del>{content}</del>")
    parts += [f"<ins>{_safe(note.text)}</ins>" for note in notes]
    return "".join(parts)


def _stretches(result: Compressed) -> Iterator[tuple[int, int, bool]]:
    at = 0
    for start, end in result.spans:
        if at < start:
            yield at, start, False
        yield start, end, True
        at = end
    if at < len(result.original):
        yield at, len(result.original), False


def _scored(text: str, start: int, end: int, scores: list[tuple[int, int, float]]) -> Iterator[str]:
    """Yield a stretch with its words' scores; ``scores`` loses those that it passes."""
    used = 0
    for body, stop, score in scores:
        if body >= end:
            break
        used += 1
        if body >= start and stop <= end:
            yield _safe(text[start:body])
            yield f'<span title="{score:.2f}">{_safe(text[body:stop])}</span>'
            start = stop
    del scores[:used]
    yield _safe(text[start:end])


def _safe(text: str) -> str:
    """Escape, and show what no page may hold: control characters and lone surrogates."""
    return escape(
        "".join(
            c
            if c in "\n\t"
            or (c >= " " and not "\x7f" <= c <= "\x9f" and not "\ud800" <= c <= "\udfff")
            else "\ufffd"
            for c in text.replace("\r\n", "\n")
        )
    )
