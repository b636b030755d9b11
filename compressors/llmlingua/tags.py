"""``<llmlingua, rate=0.4, compress=False>..</llmlingua>``: the reference's structured prompts."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...middleware.errors import InvalidRequest

_TAG = re.compile(r"<llmlingua(?P<inside>(?:\s*,[^<>]*)?)\s*>|</llmlingua>")
_OPTION = re.compile(r"\s*(?P<name>rate|compress)\s*=\s*(?P<value>[\w.+-]+)\s*")


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a structured prompt; ``rate`` None is the common one, 1.0 is untouched."""

    text: str
    rate: float | None = None


def parts(text: str) -> list[Part]:
    """Return what the tags of a text say; all other characters, "<" too, are text.

    What is outside tags has the common rate. ``compress=False`` overrides the rate.

    Raises InvalidRequest for tags that nest, do not pair, or have other options.

    >>> parts("Id <llmlingua, compress=False>A<1</llmlingua> rest")
    [Part(text='Id ', rate=None), Part(text='A<1', rate=1.0), Part(text=' rest', rate=None)]
    """
    found: list[Part] = []
    at, rate, is_open = 0, None, False
    for tag in _TAG.finditer(text):
        closes = tag[0].startswith("</")
        if closes != is_open:
            problem = "closes nothing" if closes else "is inside another, which does not nest"
            raise InvalidRequest(f"the tag {tag[0]!r:.80} at character {tag.start()} {problem}")
        if at < tag.start():
            found.append(Part(text[at : tag.start()], rate))
        at, is_open = tag.end(), not closes
        rate = None if closes else _rate(tag[0], tag["inside"])
    if is_open:
        raise InvalidRequest("a <llmlingua> tag is not closed; write </llmlingua> after it")
    if at < len(text):
        found.append(Part(text[at:]))
    return found


def _rate(tag: str, inside: str) -> float | None:
    rate, is_whole = None, False
    for option in inside.split(",")[1:]:
        match = _OPTION.fullmatch(option)
        if match is None:
            raise InvalidRequest(f"the tag {tag!r:.80} may say rate= and compress=, not {option!r}")
        if match["name"] == "compress":
            if match["value"] not in ("True", "False"):
                raise InvalidRequest(f"compress must be True or False in {tag!r:.80}")
            is_whole = match["value"] == "False"
            continue
        try:
            rate = float(match["value"])
        except ValueError:
            rate = -1.0
        if not 0 <= rate <= 1:
            raise InvalidRequest(f"rate must be in [0, 1] in {tag!r:.80}")
    return 1.0 if is_whole else rate
