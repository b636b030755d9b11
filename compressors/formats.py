"""Texts that a dropped word would break: JSON, tables of data, markup, configuration, code."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from .parts import is_csv_part, is_diff, is_json_part, is_subtitles, is_tex, is_xml_part
from .render import Span
from .shapes import is_code, is_csv, is_toml, is_xml, is_yaml

Format = Literal[
    "json", "jsonl", "csv", "xml", "yaml", "toml", "code", "diff", "tex", "subtitles", "prose"
]

_NAMES: dict[Format, str] = {
    "json": "JSON",
    "jsonl": "JSON Lines",
    "csv": "CSV",
    "xml": "XML",
    "yaml": "YAML",
    "toml": "TOML",
    "code": "source code",
    "diff": "a diff",
    "tex": "TeX",
    "subtitles": "a subtitle file",
    "prose": "prose",
}
_HINTS: dict[Format, str] = {
    "json": "json ipynb geojson har",
    "jsonl": "jsonl ndjson",
    "csv": "csv tsv psv",
    "xml": "xml html htm xhtml svg xsd xsl rss pom plist",
    "yaml": "yaml yml",
    "toml": "toml ini cfg conf properties env",
    "code": "code python py pyi c h cc cpp c++ hpp cxx go golang java kt kotlin scala rs rust js"
    " mjs cjs javascript jsx ts tsx typescript rb ruby php swift cs csharp sh bash zsh ps1 sql lua"
    " pl r jl dart ex exs hs clj ml mm m css scss less dockerfile makefile cmake gradle proto vue",
    "diff": "diff patch",
    "tex": "tex latex sty bib",
    "subtitles": "srt vtt sbv",
    "prose": "prose log md markdown mdx rst adoc",
}  # fmt: skip
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|(?P<space>[ \t\r\n]+)', re.DOTALL)
_OPENING = re.compile(r'\s*(?:\{\s*["}]|\[\s*(?:[\[{"\d\]-]|true\b|false\b|null\b))')
_BROKEN = re.compile(r"\{.*\}|\[\s*[\[{\"].*\]", re.DOTALL)
_JSON_LINE = re.compile(
    r'^\s*(?:[{}\[\]],?|"(?:[^"\\\n]|\\.)*"\s*:?.*|[-\d.]+,?|(?:true|false|null),?)\s*$'
)


@dataclass(frozen=True, slots=True)
class Guarded:
    """The spans that stay of a text in a strict format; ``reason`` says why not fewer."""

    format: Format
    spans: list[Span]
    reason: str

    @property
    def is_whole(self) -> bool:
        """Whether the format allows nothing to go."""
        return self.format not in ("json", "jsonl")


def guard(text: str, hint: str | None = None, forced: Sequence[Span] = ()) -> Guarded | None:
    """Return what must stay of a text in a strict format, None for prose.

    Of JSON and JSON Lines only white space between tokens goes (RFC 8259, section 2), but for
    what lies in ``forced``; every other strict format stays whole. ``hint`` is a format's name, a
    file's name or its extension; a hint that says nothing is ignored.
    """
    kind = detect(text, hint)
    if kind == "prose":
        return None
    name = _NAMES[kind]
    whole = [(0, len(text))]
    if kind in ("json", "jsonl"):
        if _parses(text, kind):
            reason = f"{name} loses only white space between its tokens"
            return Guarded(kind, _without_space(text, forced, kind == "jsonl"), reason)
        return Guarded("code", whole, f"{name} that does not parse is kept whole")
    return Guarded(kind, whole, f"{name} is kept whole: without a part it would no longer be valid")


def detect(text: str, hint: str | None = None) -> Format:
    """Return the format of a text, from the hint if it says one, else from the content.

    >>> detect('{"a": 1}'), detect("x,y", "data.csv"), detect("Hello there.")
    ('json', 'csv', 'prose')
    """
    if not text.strip():
        return "prose"
    if text.lstrip()[0] == '"' and "\\" in text and _parses(text, "json"):
        return "json"
    if hint and (known := _hinted(hint)):
        return known
    if _OPENING.match(text.lstrip("\ufeff")):
        if (is_value := _parses(text, "json")) or _parses(text, "jsonl"):
            return "json" if is_value else "jsonl"
        lines = [line for line in text.splitlines() if line.strip()]
        if _BROKEN.fullmatch(text.strip("\ufeff \t\r\n")):
            return "json"
        if len(lines) > 3 and sum(map(bool, map(_JSON_LINE.match, lines))) >= 0.9 * len(lines):
            return "json"
    if _OPENING.match(text.lstrip("\ufeff")) is None and is_json_part(text):
        return "json"
    checks: Sequence[tuple[Format, Callable[[str], bool]]] = (
        ("diff", is_diff),
        ("subtitles", is_subtitles),
        ("tex", is_tex),
        ("xml", is_xml),
        ("toml", is_toml),
        ("yaml", is_yaml),
        ("csv", is_csv),
        ("code", is_code),
        ("xml", is_xml_part),
        ("csv", is_csv_part),
    )
    for kind, check in checks:
        if check(text):
            return kind
    return "prose"


def _hinted(hint: str) -> Format | None:
    name = re.split(r"[\\/]", hint.strip().lower())[-1]
    ending = name.rpartition(".")[2]
    return next((kind for kind, known in _HINTS.items() if ending in known.split()), None)


def _parses(text: str, kind: Format) -> bool:
    body = text.removeprefix("\ufeff")
    try:
        if kind == "json":
            json.loads(body)
            return True
        rows = [line for line in body.split("\n") if line.strip()]
        values = [json.loads(row) for row in rows]
        return len(values) > 1 and isinstance(values[0], (dict, list))
    except (ValueError, RecursionError):
        return False


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
    return _merged(spans)


def _merged(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in spans:
        if start < end and merged and merged[-1][1] == start:
            merged[-1] = (merged[-1][0], end)
        elif start < end:
            merged.append((start, end))
    return merged
