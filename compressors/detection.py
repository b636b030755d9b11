"""What a text is: prose, a log, or a format that a dropped word would break."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

from .columns import is_short_table
from .dialects import is_dialect, is_directives
from .diffs import is_mostly_diff
from .listings import unlisted
from .parts import is_csv_part, is_diff, is_json_part, is_subtitles, is_tex, is_xml_part
from .shapes import is_code, is_csv, is_toml, is_xml, is_yaml
from .source import is_settings, is_source
from .structured.lines import is_log
from .structured.loose import records
from .structured.mixed import is_all

Format = Literal[
    "json",
    "jsonl",
    "csv",
    "xml",
    "yaml",
    "toml",
    "code",
    "diff",
    "tex",
    "subtitles",
    "log",
    "records",
    "table",
    "prose",
]

NAMES: dict[Format, str] = {
    "json": "JSON",
    "jsonl": "JSON Lines",
    "csv": "CSV",
    "xml": "XML",
    "yaml": "YAML",
    "toml": "a file of settings",
    "code": "source code",
    "diff": "a diff",
    "tex": "TeX",
    "subtitles": "a subtitle file",
    "log": "a log",
    "records": "text with records in it",
    "table": "a table of one row or two",
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
    "log": "log",
    "prose": "prose md markdown mdx rst adoc",
}  # fmt: skip
_MOST = 400_000  # characters; longer texts are cut in chunks, records in them as a whole
_OPENING = re.compile(r'\s*(?:\{\s*["}]|\[\s*(?:[\[{"\d\]-]|true\b|false\b|null\b))')
_COMMENT = re.compile(r"^\s*//[^\n]*|/\*(?:[^*]|\*(?!/)){0,2000}\*/", re.MULTILINE)
_BROKEN = re.compile(r"\{.*\}|\[\s*[\[{\"].*\]", re.DOTALL)
_JSON_LINE = re.compile(
    r'^\s*(?:[{}\[\]],?|"(?:[^"\\\n]|\\.)*"\s*:?.*|[-\d.]+,?|(?:true|false|null),?)\s*$'
)


def detect(text: str, hint: str | None = None) -> Format:
    """Return the format of a text, from the hint if it says one, else from the content.

    >>> detect('{"a": 1}'), detect("x,y", "data.csv"), detect("Hello there.")
    ('json', 'csv', 'prose')
    """
    if not text.strip():
        return "prose"
    bare = text.strip("\ufeff \t\r\n")
    if bare[:1] == '"' and ("\\" in bare or bare == '""') and parses(text, "json"):
        return "json"
    if hint and (known := _hinted(hint)):
        return known
    if _OPENING.match(text.lstrip("\ufeff")):
        if (is_value := parses(text, "json")) or parses(text, "jsonl"):
            return "json" if is_value else "jsonl"
        lines = [line for line in text.splitlines() if line.strip()]
        if _BROKEN.fullmatch(text.strip("\ufeff \t\r\n")):
            return _json_or_records(text)
        if len(lines) > 3 and sum(map(bool, map(_JSON_LINE.match, lines))) >= 0.9 * len(lines):
            return _json_or_records(text)
    if is_json_part(_COMMENT.sub("", text) if bare[:1] in "{[" else text):
        return _json_or_records(text)
    checks: Sequence[tuple[Format, Callable[[str], bool]]] = (
        ("diff", is_diff),
        ("diff", is_mostly_diff),
        ("subtitles", is_subtitles),
        ("tex", is_tex),
        ("xml", is_xml),
        ("toml", is_toml),
        ("yaml", is_yaml),
        ("csv", is_csv),
        ("code", is_code),
        ("log", is_log),
        ("toml", is_settings),
        ("code", is_source),
        ("code", is_dialect),
        ("toml", is_directives),
        ("code", _is_listing),
        ("table", is_short_table),
        ("xml", is_xml_part),
        ("csv", is_csv_part),
    )
    for kind, check in checks:
        if check(text):
            return kind
    return "records" if len(text) <= _MOST and records(text) else "prose"


def _is_listing(text: str) -> bool:
    """Whether the lines are those of a program or of data, each with its number before it."""
    body = unlisted(text)
    if body is None:
        return False
    return is_code(body) or is_source(body, is_picked=True) or is_yaml(body) or is_settings(body)


def _json_or_records(text: str) -> Format:
    """Return "records" where all that is like JSON is understood, else it stays whole."""
    if len(text) > _MOST or is_log(text) or not is_all(text, records(text)):
        return "json"
    return "records"


def _hinted(hint: str) -> Format | None:
    name = re.split(r"[\\/]", hint.strip().lower())[-1]
    ending = name.rpartition(".")[2]
    return next((kind for kind, known in _HINTS.items() if ending in known.split()), None)


def parses(text: str, kind: Format) -> bool:
    """Whether the text is JSON, or JSON Lines: a value a line, more than one, records or lists."""
    body = text.removeprefix("\ufeff")
    try:
        if kind == "json":
            _loads(body)
            return True
        rows = [line for line in body.split("\n") if line.strip()]
        values = [_loads(row) for row in rows]
        return len(values) > 1 and isinstance(values[0], (dict, list))
    except (ValueError, RecursionError):
        return False


def _loads(text: str) -> Any:
    """Parse without making numbers of numerals, which may have thousands of digits."""
    return json.loads(text, parse_int=str, parse_float=str)
