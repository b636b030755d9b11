"""Recognising a part of a file, as a chunker cuts it, and short or special texts that are data."""

from __future__ import annotations

import re

from .shapes import is_code, is_csv
from .structured.scripts import is_function

_JSON_TOKEN = re.compile(
    r'"(?:[^"\\\n]|\\.){0,20000}"|[{}\[\]:,]|-?\d[\d.eE+-]*|true|false|null|\s+'
)
_JSON_KEY = re.compile(r'"\s{0,4}:')
_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@", re.MULTILINE)
_DIFF_LINE = re.compile(
    r"[ +\-@\\]|diff |index [0-9a-f]|new file|deleted|similarity|rename|old mode|new mode|Binary|$"
)
_DIFF_HEAD = re.compile(r"^(?:diff --git |--- .*\r?\n\+\+\+ )", re.MULTILINE)
_SUBTITLE = re.compile(r"^\d\d:\d\d(?::\d\d)?[,.]\d{3} --> \d", re.MULTILINE)
_XML_LINE = re.compile(r"\s*<(?:/?[A-Za-z][\w:.-]*[^<>]*>|!--)")
_TAG = re.compile(r"</?[A-Za-z][\w:.-]{0,80}(?:\s[^<>]{0,2000})?/?>")
_TAG_END = re.compile(r"[<>]")
_TEX = re.compile(r"\\(?:documentclass|begin\{document\}|usepackage)")
_PARAGRAPH = re.compile(r"(?:^[^\n]*\S[^\n]*(?:\n|\Z))+", re.MULTILINE)
_HINT_OF_CODE = re.compile(r"[=({;]|^\s*(?:def|class|SELECT|select)\b", re.MULTILINE)
_SAMPLE = 200_000


def is_diff(text: str) -> bool:
    """Whether the text is a unified diff."""
    sample = text[:_SAMPLE]
    if not (_DIFF_HEAD.search(sample) and (_HUNK.search(sample) or "diff --git " in sample)):
        return False
    lines = sample.splitlines()
    return sum(bool(_DIFF_LINE.match(line)) for line in lines) >= 0.9 * len(lines)


def is_subtitles(text: str) -> bool:
    """Whether the text is SubRip or WebVTT: two cues or more, one on every few lines."""
    sample = text[:_SAMPLE]
    cues = len(_SUBTITLE.findall(sample))
    return cues >= 2 and cues * 8 >= sample.count("\n")


def is_tex(text: str) -> bool:
    """Whether the text is a TeX document, by its preamble."""
    return len(_TEX.findall(text[:_SAMPLE])) >= 2 and text.lstrip()[:1] in ("\\", "%")


def is_json_part(text: str) -> bool:
    """Whether nearly all of a text that does not parse are tokens of JSON, with keys."""
    sample = text[:_SAMPLE]
    if len(_JSON_KEY.findall(sample)) < 3:
        return False
    starts = (0, sample.find('"') + 1)  # the cut may lie inside a string
    return any(
        sum(len(token[0]) for token in _JSON_TOKEN.finditer(sample, start)) >= 0.9 * len(sample)
        for start in starts
    )


def is_csv_part(text: str) -> bool:
    """Whether the rows but the first and the last, which may be cut, are CSV."""
    lines = text[:_SAMPLE].strip("\r\n").split("\n")
    return len(lines) >= 5 and is_csv("\n".join(lines[1:-1]))


def is_xml_part(text: str) -> bool:
    """Whether nearly every line is a tag or starts with one, and tags are much of the text."""
    sample = text[:_SAMPLE]
    lines = [line for line in sample.splitlines()[:2000] if line.strip()]
    tags = _TAG.findall(sample)
    if len(tags) < 5 or sum(map(len, tags)) < 0.4 * len(sample):
        return False
    if not all(_TAG_END.search(line) for line in (lines[0], lines[-1])):
        return False  # prose around a table
    inner = lines[1:-1] if len(lines) > 4 else lines
    return sum(bool(_XML_LINE.match(line)) for line in inner) >= 0.9 * len(inner)


def code_paragraphs(text: str) -> list[tuple[int, int]]:
    """Return where paragraphs of three lines or more, or a function, are code without a fence."""
    found: list[tuple[int, int]] = []
    for match in _PARAGRAPH.finditer(text):
        body = match[0]
        num_lines = body.count("\n") + (not body.endswith("\n"))
        if num_lines < 2 or not _HINT_OF_CODE.search(body):
            continue
        if is_function(body) or (num_lines > 2 and is_code(body)):
            start = match.start() + len(body) - len(body.lstrip())
            found.append((start, match.start() + len(body.rstrip())))
    return found
