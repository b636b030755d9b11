"""Where the engine writes a mark that is there already: a list's number, a fence around a line."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FENCED = re.compile(r"\s*(?:`{3,}[^`\n]*|~{3,}[^\n]*)\n")
_FENCING = re.compile(r"\s*(?:`{0,2}|~{0,2}|`{3,}[^`\n]*|~{3,}[^\n]*)")


def without_fence(text: str, *, is_ended: bool) -> str | None:
    r"""Return a text of one line without the code fence that opens before it.

    None while more of the text has to be known; what closes the fence is on another line, which is
    none of such a text.

    >>> without_fence("```text\nhigh\n```", is_ended=True), without_fence("``", is_ended=False)
    ('high\n```', None)
    """
    if found := _FENCED.match(text):
        rest = text[found.end() :].lstrip()
        if not is_ended and re.fullmatch(r"[`~]*[ \t]*", rest):
            return None
        return (
            "" if re.match(r"(?:`{3,}|~{3,})[ \t]*(?:\n|\Z)", rest) else rest
        )  # it closes at once
    return None if not is_ended and _FENCING.fullmatch(text) else text


_BEGUN = re.compile(
    r"[*_]{0,2}(?:i|it|ite|item)?[ \t]*\(?[\w•–*-]{0,3}[.):]{0,2}[*_]{0,2}\s*", re.I
)


@dataclass(frozen=True, slots=True)
class ListMark:
    """The mark before an answer to an ``item`` of a list: "3.", "b)", "-", "2. Paris:", nothing.

    A model that is given one item often writes its mark again, or begins a list of its own with
    it. Both go, unless they may be meant: the number is in the item ("May 3" is "3. Mai" in
    German), or the answer is a list itself, whose second point follows.
    """

    mark: str
    item: str

    def without(self, text: str, *, is_ended: bool) -> str | None:
        r"""Return the text without the mark at its beginning, None while that is not clear.

        >>> ListMark("3.", "Third thing").without("3. Troisième chose", is_ended=True)
        'Troisième chose'
        >>> ListMark("1.", "Synonyms of big").without("1. large\n2. huge", is_ended=False)
        '1. large\n2. huge'
        """
        start = text.lstrip()
        if not is_ended and _BEGUN.fullmatch(start):
            return None
        for label, follower in self._labels():
            found = _head(label).match(start)
            if found is None:
                continue
            if follower and re.search(rf"^[ \t]*{_head(follower).pattern}", start[1:], re.M):
                return text
            if follower and not is_ended:
                return None
            return self._without_item(start[found.end() :], is_ended=is_ended)
        return self._without_item(text, is_ended=is_ended)

    def _labels(self) -> list[tuple[str, str]]:
        """Return the marks that may be repeated, each with what would follow it in a list.

        That is "" behind another mark than a first one: no list begins with it.
        """
        found = re.match(r"\(?(\d{1,3}|[a-zA-Z])[.):]|([-*•–])", self.mark)
        if found is not None and found[2]:
            return [(found[2], found[2])]
        own = [found[1]] if found is not None else []
        labels = [label for label in dict.fromkeys([*own, "1"]) if not self._says(label)]
        return [(one, chr(ord(one) + 1) if one in ("1", "a", "A") else "") for one in labels]

    def _says(self, number: str) -> bool:
        """Whether the number is a part of the item."""
        said = rf"(?<!\d){number}(?!\d)"
        return number.isdigit() and re.search(said, self.item) is not None

    def _without_item(self, text: str, *, is_ended: bool) -> str | None:
        """Take the item away where the mark ends with it: "2. Paris:"."""
        said = f"{self.item}:"
        if not self.mark.endswith(said):
            return text
        start = text.lstrip()
        if start.startswith(said) and start[len(said) :].strip():
            return start[len(said) :].lstrip()
        return None if not is_ended and said.startswith(start.rstrip()) else text


def _head(label: str) -> re.Pattern[str]:
    """Return the pattern of a mark and the space behind it: "3. ", "(3) ", "**Item 3:** "."""
    if not label.isalnum():
        return re.compile(rf"{re.escape(label)}[ \t]+(?=\S)")
    return re.compile(rf"[*_]{{0,2}}(?:[Ii]tem )?\(?{label}[.):][*_]{{0,2}}[ \t]+(?=\S)")
