"""Listings: lines with their numbers, or with the file that they were found in."""

from __future__ import annotations

import re
from itertools import pairwise

_NUMBERED = re.compile(r"[ \t]*(?P<number>\d{1,6})(?:[ \t]*[:|→│][ ]?|\t|[-=](?=\D)|$)")
_FOUND = re.compile(
    r"(?P<file>(?:[A-Za-z]:)?[^\s:*?\"<>|]*[./][^\s:*?\"<>|]*|[A-Z]\w+file)(?P<mark>[:-])\d{1,6}(?:[:-]\d{1,4})?(?P=mark)"
)
_BLAMED = re.compile(
    r"\^?[0-9a-f]{7,40}[ \t][^(\n]{0,200}\([^\n]{1,200}? \d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d "
    r"[+-]\d{4} +\d+\) ?"
)
_RULE = re.compile(r"--$|\[.*\]$|\(\d+ more lines.*\)$")
_SAMPLE = 100_000
_MOST_LINES = 400
_FEWEST = 3


def unlisted(text: str) -> str | None:
    r"""Return the lines of a listing without what it puts before them, None for other texts.

    Listings are those of ``cat -n``, editors and agents (each line with its number) and of
    ``grep -n`` and ``rg`` (each with its number, its file as well), and of ``git blame``.

    >>> unlisted("  7\tif a:\n  8\t    b = 1\n  9\t    c = 2\n")
    'if a:\n    b = 1\n    c = 2'
    """
    lines = [line for line in text[:_SAMPLE].splitlines() if line.strip()][:_MOST_LINES]
    if len(lines) < _FEWEST or not any(char.isdigit() for char in text[:400]):
        return None
    found = [_FOUND.match(line) for line in lines]
    if sum(map(bool, found)) >= 0.9 * sum(not _RULE.match(line) for line in lines):
        return "\n".join(line[m.end() :] for line, m in zip(lines, found, strict=True) if m)
    if len(blamed := [m for line in lines if (m := _BLAMED.match(line))]) >= 0.9 * len(lines):
        return "\n".join(m.string[m.end() :] for m in blamed)
    numbered = [m for line in lines if (m := _NUMBERED.match(line))]
    if len(numbered) < max(_FEWEST, 0.75 * len(lines)):
        return None
    numbers = [int(m["number"]) for m in numbered]
    if sum(a < b for a, b in pairwise(numbers)) < 0.85 * (len(numbers) - 1):
        return None
    return "\n".join(m.string[m.end() :] for m in numbered)
