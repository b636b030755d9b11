"""Puts parts that are written at the same time into one text, in the order of the plan.

The part at the head of the line is passed on as it comes; later ones wait in a buffer, whose size
is bounded by what their calls may write. What was passed on is never taken back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from .calibration import most_tokens
from .endings import ended, whole_length
from .fences import closing_fence
from .graph import Node, same_title
from .heads import read_head
from .overlap import torn_word

_BLOCK = re.compile(r"[ ]{4}|```|~~~|[-*+][ \t]|\d+[.)][ \t]|[|#>]")
_LEAD = r"[\s*_#>\"“«]*(?:(?:point|part|section)\s+)?(?:\(?%d\W{0,3}\s*)?[\s*_#>\"“«]*"
_AFTER = (
    r"(?:[*_\"”»]{0,3}[ \t]*[:：](?![\d/])[*_]*|(?:\*{1,3}|_{1,2}|[\"”»])(?-i:(?=\s+[A-Z\d]|\s*$))"
    r"|[.。]?[*_]*[ \t]*(?:\n|$)|\s+[-–—]\s)\s*"
)
_ROOM = 24
_ENDING = 4  # tokens: an ellipsis, a fence that is closed


def without_title(text: str, node: Node) -> str:
    """Return the text without the part's own number and title before it, if they are there.

    A sentence that merely begins with the words of the title stays whole.
    """
    title = r"\s+".join(re.escape(word) for word in node.title.split())
    found = re.match(_LEAD % node.id + title + _AFTER, text, re.I)
    return text[found.end() :] if found else text


def may_be_more(text: str, node: Node) -> bool:
    """Whether what comes next can make a text's beginning the part's number and title, or a block.

    Only a word that is none of the title's is surely neither.
    """
    if not re.match(r"\s{0,3}[^\W\d_]", text):
        return True
    said, title = same_title(text), same_title(node.title)
    names = [title, f"{node.id} {title}"]
    names += [f"{word} {name}" for word in ("point", "part", "section") for name in names]
    return any(name.startswith(said) or said.startswith(name) for name in names)


def is_echo(text: str, titles: Iterable[str], *, is_ended: bool) -> bool:
    """Whether the text has two lines or more and all of them are titles of the plan.

    While it has not ended, its last line may be the beginning of a title.
    """
    names = {same_title(title) for title in titles}
    heads = [(read_head(line), line) for line in text.splitlines() if line.strip()]
    lines = [same_title(head.text if head else line) for head, line in heads]
    if is_ended:
        return len(lines) > 1 and names.issuperset(lines)
    *whole, last = lines or [""]
    return names.issuperset(whole) and any(name.startswith(last) for name in names)


@dataclass(slots=True)
class _Section:
    node: Node
    raw: str = ""  # what the model wrote
    text: str | None = None  # the same without its title, None until that is decided
    num_sent: int = 0
    is_ended: bool = False
    is_whole: bool = False  # several parts with their headings, as the model writes them
    is_near_end: bool = False  # it may be cut soon

    def advance(self, titles: Iterable[str]) -> None:
        """Decide about the title once there is enough text to do so."""
        if is_echo(self.raw, titles, is_ended=self.is_ended):
            self.text = "" if self.is_ended else None
            return
        is_short = len(self.raw.lstrip()) < len(self.node.title) + _ROOM
        if is_short and not self.is_ended and may_be_more(self.raw, self.node):
            return
        text = self.raw if self.is_whole else without_title(self.raw, self.node)
        text = re.sub(r"\A(?:[^\S\n]*\n)+", "", text)
        if not text.startswith("    "):  # not a block of code
            text = text.lstrip()
        if text.strip() or self.is_ended:
            self.text = text

    def pending(self) -> str:
        """Text that may be sent: all but the white space at the end, which may be the last.

        Where it may be cut soon, only whole sentences.
        """
        if self.text is None:
            return ""
        text = self.text.rstrip()
        if self.is_near_end and not self.is_ended:
            text = text[: whole_length(text)]
        return text[self.num_sent :]


@dataclass(slots=True)
class Join:
    """The answer as it grows. Every method that returns text returns what to send now.

    While it ``is_held`` nothing is to be sent.
    """

    text: str = ""
    head: int = 1
    is_held: bool = False
    _num_shown: int = 0
    _sections: dict[int, _Section] = field(default_factory=dict[int, _Section])
    _names: list[str] = field(default_factory=list[str])
    _seams: dict[int, str] = field(default_factory=dict[int, str])

    def add(self, node: Node) -> None:
        """Announce a part, in the order of the ids."""
        self._sections[node.id] = _Section(node)
        self._names.append(node.title)

    def gather(self, node: Node) -> None:
        """Let this part hold all from its id on: one text with headings of its own."""
        self._sections = {id: one for id, one in self._sections.items() if id < node.id}
        self._sections[node.id] = _Section(node, is_whole=True)

    def connect(self, id: int, sentence: str) -> bool:
        """Put a sentence between a part and the one before; False if it is too late for that."""
        if id <= 1 or id not in self._sections or self.is_sent(id) or id <= self.head:
            return False
        self._seams[id] = " ".join(sentence.split())
        return True

    def feed(self, id: int, delta: str) -> str:
        """Take a piece of a part."""
        section = self._sections[id]
        section.raw += delta
        if section.text is None:
            section.advance(self._titles())
        else:
            section.text += delta
        return self.release()

    def end(self, id: int, *, is_cut: bool = False) -> str:
        """Complete a part; one without text is left out and does not get a number.

        One that ``is_cut``, with others behind it, ends with its last whole sentence, or in an
        ellipsis where more than that was sent.
        """
        section = self._sections[id]
        section.is_ended = True
        if section.text is None:
            section.advance(self._titles())
        section.text = (section.text or "").rstrip()
        if self.is_blank(id) and not section.num_sent:
            section.text = ""
        elif is_cut:
            section.text = ended(section.text, section.num_sent)
        section.text += closing_fence(section.text)
        return self.release()

    def approach(self, id: int, *, is_near_end: bool) -> None:
        """Say whether a part may be cut soon, so that no sentence is sent by half."""
        self._sections[id].is_near_end = is_near_end

    def num_frame_tokens(self, id: int) -> int:
        """Return the most tokens of what is put around a part's text: heading, breaks, an end."""
        section = self._sections[id]
        if section.is_whole:
            return most_tokens("\n\n") + _ENDING
        return most_tokens(f"\n\n{id}. **{section.node.title}**:\n\n") + _ENDING

    def reset(self, id: int) -> bool:
        """Forget a part's text so that it can be written again; False if some of it was sent."""
        section = self._sections[id]
        if section.num_sent:
            return False
        section.raw, section.text = "", None
        return True

    def tear(self, id: int) -> str:
        """Return what is written of a part that was cut, without a torn last word that waits.

        A word of which some was sent stays, so that the text may still end inside one.
        """
        section = self._sections[id]
        word = torn_word(section.raw)
        text = section.text
        if word and text is not None and len(text) - len(word) >= section.num_sent:
            section.raw = section.raw[: -len(word)]
            section.text = text[: -len(word)]
        return section.raw

    def body(self, id: int) -> str:
        """Return the part's text so far, without title."""
        section = self._sections[id]
        if section.text is not None:
            return section.text.strip()
        if is_echo(section.raw, self._titles(), is_ended=True):
            return ""
        if section.is_whole:
            return section.raw.strip()
        return without_title(section.raw, section.node).strip()

    def written(self, id: int) -> str:
        """Return what the model has written of the part, as it wrote it."""
        return self._sections[id].raw

    def is_whole(self, id: int) -> bool:
        """Whether the part holds all from its id on."""
        return self._sections[id].is_whole

    def ended(self) -> dict[int, str]:
        """Return the texts of the parts that have ended, by id."""
        return {id: self.body(id) for id, one in self._sections.items() if one.is_ended}

    def is_sent(self, id: int) -> bool:
        """Whether some of the part was passed on."""
        return self._sections[id].num_sent > 0

    def is_blank(self, id: int) -> bool:
        """Whether the part has no words of its own so far."""
        return not re.search(r"\w", self.body(id))

    def _titles(self) -> list[str]:
        return self._names

    def release(self) -> str:
        """Return what may be sent now."""
        out = ""
        while not self.is_held and (section := self._sections.get(self.head)) is not None:
            out += self._heading(section, pending) if (pending := section.pending()) else ""
            section.num_sent += len(pending)
            if not section.is_ended:
                break
            self.head += 1
        self.text += out
        return out

    def _heading(self, section: _Section, pending: str) -> str:
        """Put number and title before a part's first piece."""
        if section.num_sent:
            return pending
        gap = "\n\n" if self._num_shown else ""
        if section.is_whole:
            return gap + pending
        if self._num_shown and (seam := self._seams.get(section.node.id)):
            gap = f"\n\n{seam}\n\n"
        self._num_shown += 1
        start = "\n\n" if _BLOCK.match(pending) else " "
        return f"{gap}{self._num_shown}. **{section.node.title}**:{start}{pending}"
