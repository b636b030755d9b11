"""Diffs among words: what ``git show``, ``git format-patch`` and a mail with a patch hold."""

from __future__ import annotations

import re
from collections.abc import Iterator

_HEAD = re.compile(
    r"^(?P<lead>[ \t]{0,8}(?:> ?)?)(?:diff --git [^\n]*\n"
    r"(?:(?![ \t>]*(?:@@ |diff |$))[^\n]*(?:\n|\Z)){0,12}"
    r"|diff --(?:cc|combined) [^\n]*\n(?:(?!@@@ )[^\n]*\n){0,8}"
    r"|--- [^\n]*\n[^\n]{0,10}\+\+\+ [^\n]*\n|(?=@@@? -\d))",
    re.MULTILINE,
)
_HUNK = re.compile(
    r"@@ -\d+(?:,(?P<old>\d+))? \+\d+(?:,(?P<new>\d+))? @@[^\n]*(?:\n|\Z)"
    r"|@@@+ (?P<many>-\d)[^\n]*\n"
)
_LINE = re.compile(r"[^\n]*(?:\n|\Z)")
_SAMPLE = 200_000


def diffs(text: str) -> Iterator[tuple[int, int]]:
    r"""Yield where unified diffs lie: the head of a file's changes with all of their hunks.

    A hunk ends with the line that its head counts; one that is cut off with the text. Heads without
    a hunk are a diff where git says so (renames, modes, binary files).

    >>> list(diffs("We did:\n--- a\n+++ b\n@@ -1,2 +1 @@\n x\n-y\nAll is well.\n"))
    [(8, 39)]
    """
    at = 0
    while head := _HEAD.search(text, at):
        lead = head["lead"]
        end = start = head.start()
        place = head.end()
        if text.startswith("@@", place):  # a hunk without a head
            place -= len(lead)
        while text.startswith(lead, place) and (hunk := _HUNK.match(text, place + len(lead))):
            place = end = _lines(text, hunk, lead)
        if end == start and head[0].lstrip(" \t>").startswith("diff --git "):
            end = head.end()
        if end > start:
            begin = start + len(lead)
            yield begin, begin + len(text[begin:end].rstrip())
        at = max(end, head.end(), start + 1)


def is_mostly_diff(text: str) -> bool:
    """Whether half of a text or more is a diff: a commit with its message, say."""
    sample = text[:_SAMPLE]
    if "@@" not in sample and "diff --git " not in sample:
        return False
    return sum(end - start for start, end in diffs(sample)) >= 0.5 * len(sample.strip())


def _lines(text: str, hunk: re.Match[str], lead: str) -> int:
    """Return where the lines of a hunk end."""
    old, new = (int(hunk[name] or 1) if not hunk["many"] else 10**9 for name in ("old", "new"))
    at = hunk.end()
    while at < len(text):
        line = _LINE.match(text, at)
        body = line[0].removeprefix(lead) if line else ""
        mark = body[:1]
        is_note = mark == "\\"
        if line is None or not (is_note or (old > 0 or new > 0)):
            break
        if mark not in (" ", "+", "-", "\\", "\n", "\r"):
            break
        if not is_note:
            old -= mark != "+"
            new -= mark != "-"
        at = line.end()
    return at
