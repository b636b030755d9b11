"""Text to units: the pieces that are kept whole or dropped whole.

The units of a text tile it. A unit owns the white space before it, so that what stays between
two kept units can be chosen among what was there. Words carry a score; punctuation, brackets and
list markers stay or go with the words that need them (``needs``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Role = Literal["word", "open", "close", "end", "join", "between", "mark"]


@dataclass(frozen=True, slots=True)
class Unit:
    """White space ``text[start:body]`` and content ``text[body:end]``.

    ``role``: only a "word" is scored. "open"/"close" are brackets, quotes and tags in pairs,
    "end" closes a sentence, "join" is a comma or the like, "between" stands between two words,
    "mark" heads a line (bullet, heading, speaker) or a table. ``kind`` says what was recognised
    (word, number, code, fence, json, table, url, ...). ``sentence`` numbers the sentences or lines
    of the text. ``needs`` are ranges of unit indices, each of which must hold a kept word for
    the unit to stay.
    """

    start: int
    body: int
    end: int
    role: Role = "word"
    kind: str = "word"
    sentence: int = 0
    needs: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Units:
    """A text and its units; ``tail`` is where the white space after the last unit starts.

    ``title`` is what the text stands under: a scorer may read it, and it is not cut.
    """

    text: str
    units: tuple[Unit, ...]
    tail: int
    title: str = ""

    @property
    def words(self) -> list[int]:
        """Indices of the units that carry a score."""
        return [i for i, unit in enumerate(self.units) if unit.role == "word"]

    def content(self, index: int) -> str:
        """Return a unit without its leading white space."""
        unit = self.units[index]
        return self.text[unit.body : unit.end]
