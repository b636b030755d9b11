"""Code fences in a text."""

from __future__ import annotations

import re

# "```x``` in a line" is no fence: what stands behind the marks of one has no such mark itself.
_FENCE = re.compile(r"^[ ]{0,3}(`{3,}(?=[^`\n]*$)|~{3,})([^\n]*)$", re.M)


def open_fence(text: str) -> str:
    """Return the marks of a code fence that is left open in the text, "" where none is."""
    fence = ""
    for found in _FENCE.finditer(text):
        mark, rest = found.groups()
        if not fence:
            fence = mark
        elif mark[0] == fence[0] and len(mark) >= len(fence) and not rest.strip():
            fence = ""
    return fence


def closing_fence(text: str) -> str:
    """Return what closes a code fence left open in the text: "" or a line break and the fence."""
    fence = open_fence(text)
    return f"\n{fence}" if fence else ""
