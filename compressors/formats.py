"""Texts that a dropped word would break: JSON, tables of data, markup, configuration, code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .blocks import fenced
from .detection import NAMES, Format, detect, parses
from .render import Span
from .structured.logs import view_of_log
from .structured.loose import records
from .structured.mixed import between, nodes_of
from .structured.policy import JsonPolicy
from .structured.scan import scan
from .structured.scripts import is_script
from .structured.values import Framed, framed
from .structured.view import View, merged, minus

__all__ = ["Format", "Guarded", "detect", "guard"]

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|(?P<space>[ \t\r\n]+)', re.DOTALL)
_ANY = JsonPolicy()


@dataclass(frozen=True, slots=True)
class Guarded:
    """The spans that stay of a text in a strict format; ``reason`` says why not fewer.

    With a ``view``, what is cut is the view's; ``spans`` are then what is left without white space.
    """

    format: Format
    spans: list[Span]
    reason: str
    view: View | None = None
    framed: Framed | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the format allows nothing to go."""
        return self.format not in ("json", "jsonl", "log", "records")

    @property
    def is_forced(self) -> bool:
        """Whether something must go whatever the budget is: the caller's rules say so."""
        return self.framed is not None and self.framed.is_forced


def guard(
    text: str,
    hint: str | None = None,
    forced: Sequence[Span] = (),
    *,
    json: JsonPolicy | None = None,
    fold: bool = True,
    share: float = 0.0,
    question: str | None = None,
) -> Guarded | None:
    """Return what must stay of a text in a strict format, None for prose.

    JSON and JSON Lines lose white space between tokens (RFC 8259, section 2), but for what lies in
    ``forced``, and words of long texts in strings, by the ``json`` policy; text with records in it
    loses words around them too. Logs lose repeated
    lines with ``fold``, until about ``share`` of the text is left, and words. Every other strict
    format stays whole. ``hint`` is a format's name, a file's name or its extension; a hint that
    says nothing is ignored.
    """
    kind = detect(text, hint)
    if kind == "prose":
        return None
    name = NAMES[kind]
    whole = [(0, len(text))]
    if kind == "log":
        log = view_of_log(text, fold=fold, share=share, question=question, forced=forced)
        return Guarded(kind, whole, "", log)
    if kind == "records":
        return _guarded_records(text, forced, json or _ANY, question)
    if kind not in ("json", "jsonl"):
        reason = f"{name} is kept whole: without a part it would no longer be valid"
        return Guarded(kind, whole, reason)
    if not parses(text, kind):
        return Guarded("code", whole, f"{name} that does not parse is kept whole")
    spans = _without_space(text, forced, kind == "jsonl")
    found = framed(
        text, spans, scan(text), _is_prose, json or _ANY, question, lines=kind == "jsonl"
    )
    view = found.view(text) if found.values else None
    more = " and words of the long texts in it" if view else " between its tokens"
    reason = "; ".join(filter(None, (f"{name} loses only white space{more}", found.said)))
    return Guarded(kind, list(found.frame) if view is None else spans, reason, view, found)


def _guarded_records(
    text: str, forced: Sequence[Span], policy: JsonPolicy, question: str | None
) -> Guarded:
    """Return a text with records: words around them and long texts in them may go.

    White space goes between the tokens of JSON only, not where a line may end a comment.
    """
    found = records(text)
    spans: list[Span] = [(0, len(text))]
    for record in found:
        body = text[record.start : record.end]
        if parses(body, "json"):
            own = [(a - record.start, b - record.start) for a, b in forced]
            kept = [
                (a + record.start, b + record.start) for a, b in _without_space(body, own, False)
            ]
            spans = minus(spans, minus([(record.start, record.end)], kept))
    fences = [(region.start, region.end) for region in fenced(text)]
    words = between(text, found, fences)
    split = framed(text, spans, nodes_of(found), _is_prose, policy, question, between=words)
    view = split.view(text) if split.values else None
    reason = "; ".join(
        filter(
            None,
            ("records keep their keys and values, only words around and in them go", split.said),
        )
    )
    return Guarded("records", list(split.frame) if view is None else spans, reason, view, split)


def _is_prose(text: str) -> bool:
    return detect(text) in ("prose", "log") and not is_script(text)


def _without_space(text: str, forced: Sequence[Span], lines: bool) -> list[Span]:
    """Return the spans between the white space outside strings; JSON Lines keep their breaks."""
    spans: list[Span] = []
    at = 0
    for match in _TOKEN.finditer(text):
        start, end = match.span()
        if match["space"] is None or any(a < end and start < b for a, b in forced):
            continue
        if (
            lines
            and start > 0
            and end < len(text)
            and (newline := text.find("\n", start, end)) >= 0
        ):
            spans += [(at, start), (newline, newline + 1)]
        else:
            spans.append((at, start))
        at = end
    spans.append((at, len(text)))
    return merged(spans)
