"""The wanted value out of a free text. Nothing is ever invented: what is unclear stays as it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .fits import matches, strict_json

_FENCE = re.compile(r"```[\w+-]*[ \t]*\n?(.*?)```", re.S)
_THOUGHTS = re.compile(r"^\s*<think(?:ing)?>.*?</think(?:ing)?>", re.S)
_CLOSING = {"{": "}", "[": "]"}
_MAX_STARTS = 64  # places at which a value is looked for
_WRAPPING = " \t\r\n`*_\"'“”‘’"


def json_text(text: str, fits: Callable[[Any], bool]) -> str | None:
    """Return the JSON text in an answer, None when there is none.

    Looked at in this order: the whole text, code fences, the balanced values in the prose. The
    first that ``fits`` is taken, else the first that is JSON at all. Repaired are commas before a
    closing bracket, and brackets that are missing at the very end after a complete value.
    """
    text = _THOUGHTS.sub("", text)
    first: str | None = None
    for candidate in _candidates(text):
        repaired = _json(candidate)
        if repaired is None:
            continue
        if fits(strict_json(repaired)):
            return repaired
        first = first or repaired
    return first


def choice_text(text: str, options: Sequence[str]) -> str | None:
    """Return the one option that the answer names, None when it names none or several.

    An option inside a longer one that is named does not count: "New York City" is not "New".

    >>> choice_text("I would say **New York City**.", ["New", "New York City"])
    'New York City'
    """
    text = _THOUGHTS.sub("", text)
    for bare in (text.strip(), text.strip(_WRAPPING).rstrip(".").strip(_WRAPPING)):
        if bare in options:
            return bare
    for flags in (re.NOFLAG, re.IGNORECASE):
        pattern = "|".join(re.escape(o) for o in sorted(options, key=len, reverse=True))
        found = re.findall(rf"(?<!\w)(?:{pattern})(?!\w)", text, flags)
        named = {o for o in options for f in found if o == f or (flags and o.lower() == f.lower())}
        if len(named) == 1:
            return named.pop()
        if named:
            return None
    return None


def regex_text(text: str, pattern: str) -> str | None:
    """Return the text or the only line of it that matches as a whole, None without such a line."""
    text = _THOUGHTS.sub("", text)
    if matches(pattern, text):
        return text
    lines = [text, *text.splitlines()]
    bare = {form for line in lines for form in (line.strip(), line.strip(_WRAPPING))}
    found = {line for line in bare if matches(pattern, line)}
    return found.pop() if len(found) == 1 else None


def fenced_text(text: str) -> str:
    """Return what is inside the only code fence, else the text without white space around it."""
    text = _THOUGHTS.sub("", text)
    fences = _FENCE.findall(text)
    return fences[0].strip("\n") if len(fences) == 1 else text.strip()


def _candidates(text: str) -> Iterator[str]:
    yield text.strip()
    yield from (fence.strip() for fence in _FENCE.findall(text))
    at, starts = 0, 0
    while (start := _start(text, at)) is not None and starts < _MAX_STARTS:
        starts += 1
        end, is_closed = _end(text, start)
        yield text[start:end]
        at = end if is_closed else start + 1


def _start(text: str, at: int) -> int | None:
    places = [place for sign in _CLOSING if (place := text.find(sign, at)) >= 0]
    return min(places, default=None)


def _end(text: str, start: int) -> tuple[int, bool]:
    """Return where the value that starts here ends, and whether its brackets are closed there."""
    depth = 0
    for at, sign in _signs(text, start):
        depth += (sign in "{[") - (sign in "}]")
        if depth == 0:
            return at + 1, True
    return len(text), False


def _signs(text: str, start: int) -> Iterator[tuple[int, str]]:
    """Yield the brackets and commas outside of strings with their places."""
    in_string = False
    skip = False
    for at in range(start, len(text)):
        char = text[at]
        if skip:
            skip = False
        elif in_string:
            skip = char == "\\"
            in_string = char != '"'
        elif char == '"':
            in_string = True
        elif char in "{}[],":
            yield at, char


def _json(text: str) -> str | None:
    """Return the text as JSON, mended where it has to be, None when it is none."""
    try:
        if not _is_json(text):
            text = _mended(text)
    except ValueError:
        return None
    return text if _is_json(text) else None


def _is_json(text: str) -> bool:
    try:
        strict_json(text)
    except (ValueError, RecursionError):
        return False
    return True


def _mended(text: str) -> str:
    """Return the text without trailing commas and with the brackets that are missing at its end."""
    stack: list[str] = []
    dropped: set[int] = set()
    comma: int | None = None
    for at, sign in _signs(text, 0):
        if sign in "}]" and comma is not None and not text[comma + 1 : at].strip():
            dropped.add(comma)
        comma = at if sign == "," else None
        if sign in _CLOSING:
            stack.append(_CLOSING[sign])
        elif sign in "}]" and (not stack or stack.pop() != sign):
            raise ValueError("brackets that do not match")
    kept = "".join(char for at, char in enumerate(text) if at not in dropped).rstrip()
    return kept.removesuffix(",") + "".join(reversed(stack)) if stack else kept
