"""Values that look like JSON and are none: what Python prints, JSON5, records cut off at the end.

Nothing is evaluated. What fits the grammar below is a record; what doubt there is speaks against
it, since text that is taken for a record is not cut but for the long texts in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .nodes import ESCAPE, Node, char_of

_COMMENT = r"(?://[^\n]*|/\*(?:[^*]|\*(?!/)){0,2000}\*/)"
_NOTES = rf"\s*+(?:{_COMMENT}\s*+){{0,20}}+"  # what JSON5 and JSONC allow before a key
_TOKEN = re.compile(
    r"\s*(?:(?P<long>'{3}.*?'{3}|\"{3}.*?\"{3})"
    r"|(?P<string>[bBuUrRfF]{0,2}(?:\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'))"
    rf"|(?P<comment>{_COMMENT}|\#[^\n]*)"
    r"|(?P<mark>[{}\[\]():,=])|(?P<atom><[^<>\n]{1,200}>|[^\s{}\[\]():,='\"]+)|(?P<end>\Z)"
    r"|(?P<torn>[bBuUrRfF]{0,2}[\"'](?:[^\\\n]|\\.)*\Z))",
    re.DOTALL,
)
_OPENING = re.compile(
    rf"\{{{_NOTES}(?:[\"'][^\n]|:?[\w$]{{1,80}}\s*(?:=>|[:=]))"
    rf"|\[{_NOTES}"
    r"(?=[\[{(\"'\d-]|\w{1,80}\()"
    r"|(?<![\w.])[A-Za-z_][\w.]{0,80}\(\s*\w{1,80}=(?!=)"
    r"|^(?:[A-Za-z_]\w{0,80}=[^\s=][^\n<]*?[ ,;]\w{1,80}=[^\s=]|[ \t]*\[\w{1,80}\] => )",
    re.MULTILINE,
)
_PAIR = r":?[\w$]{1,80}\s{0,4}(?:=>|[:=])\s{0,4}[^\s=]"
_KEYED = re.compile(
    rf"\{{{_NOTES}(?:\"[^\"\n]{{1,80}}\"|'[^'\n]{{1,80}}')\s*:"
    rf"|\{{(?=[^\n]{{0,4000}}\}})\s*{_PAIR}[^\n]{{0,400}}?[,;\s]\s{{0,4}}{_PAIR}"
    r"|(?<![\w.])[A-Za-z_][\w.]{0,80}\((?=[^\n]{0,4000}\))"
    rf"\s*{_PAIR}[^\n]{{0,400}}?, {_PAIR}"
    r"|(?<![^\n])(?:[A-Za-z_]\w{0,80}=|[ \t]*\[\w{1,80}\] => )"
)
_CLOSERS = {"{": "}", "[": "]", "(": ")"}
_FEWEST = 3  # containers of a record without a key: [[1, 2], [3, 4]]
_MOST_WORK = 3  # times the length of the text, for what turns out to be no record


@dataclass(frozen=True, slots=True)
class Record:
    """A value at ``start`` to ``end`` with all that is in it; no ``nodes``: it is not understood.

    The nodes are as ``scan`` gives them, their parents counted from the record's first.
    """

    start: int
    end: int
    nodes: tuple[Node, ...] = ()


def records(text: str) -> list[Record]:
    """Return the records among the words of a text, in order, disjoint.

    A record has a key or several lists in it. What begins as one and cannot be read (a missing
    quote, Ruby's ``{:id=>1}``, PHP's ``[id] => 1``, a line of ``id=1 name='Ann'``) is one to the
    end of its line, with all that is indented below.

    >>> [(r.start, r.end) for r in records("I got {'ok': True, 'x': [1, None],} from it [3].")]
    [(6, 35)]
    """
    found: list[Record] = []
    at, work = 0, _MOST_WORK * len(text)
    while work >= 0 and (opening := _OPENING.search(text, at)):
        start = opening.start()
        record, read = _record(text, start)
        if record is None and _KEYED.match(text, start):
            record = Record(start, _end_of_lines(text, start))
        if record is None or not record.nodes:
            work -= read - start
        if record is not None:
            found.append(record)
        at = start + 1 if record is None else record.end
    if work < 0 and (rest := _KEYED.search(text, at)):
        found.append(Record(rest.start(), len(text)))
    return found


def _record(text: str, start: int) -> tuple[Record | None, int]:
    """Return the record that begins here, None where there is none, and how far was read.

    At the end of the text all that is open is taken as closed.
    """
    reader, read = _Reader(text), start
    for token in _tokens(text, start):
        read = token.end()
        if token.lastgroup == "comment":
            continue
        if token.lastgroup in ("end", "torn"):
            is_cut = bool(reader.open) and reader.num_keys > 0
            return reader.record(start, len(text.rstrip())) if is_cut else None, read
        if not reader.takes(token):
            return None, read
        if not reader.open and not reader.is_name:
            break
    containers = sum(node.kind in ("object", "array") for node in reader.nodes)
    if reader.open or not reader.nodes or not (reader.num_keys or containers >= _FEWEST):
        return None, read
    return reader.record(start, reader.nodes[0].end), read


def _tokens(text: str, at: int) -> Iterator[re.Match[str]]:
    while token := _TOKEN.match(text, at):
        yield token
        at = token.end()
        if token.lastgroup in ("end", "torn"):
            return


class _Reader:
    """Reads tokens one by one; ``open`` are the containers that are not closed yet."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.nodes: list[Node] = []
        self.open: list[tuple[int, str]] = []
        self.num_keys = 0
        self.wants = "item"
        self._key: tuple[str, int] | None = None

    @property
    def is_name(self) -> bool:
        """Whether all that is there is a name, behind which arguments may come."""
        return len(self.nodes) == 1 and self.nodes[0].kind == "other"

    def record(self, start: int, end: int) -> Record:
        for index, _ in self.open:
            self.nodes[index].end = end
        return Record(start, end, tuple(self.nodes))

    def takes(self, token: re.Match[str]) -> bool:
        """Take in a token; False where it cannot stand."""
        start, end = token.span(token.lastgroup or 0)
        mark = self.text[start:end] if token.lastgroup == "mark" else ""
        if not mark:
            is_plain = token.lastgroup == "string" and self.text[start] in "\"'"
            return self._add("string" if is_plain else "other", start, end)
        if mark in _CLOSERS:
            return self._opens(mark, start, end)
        if mark in "}])":
            return self._closes(mark, end)
        if not self.open or self.wants != "next":
            return False
        if mark == ",":
            self.wants = "item"
            self._key = None
            return True
        return self._names(mark, start)

    def _add(self, kind: str, start: int, end: int) -> bool:
        if self.wants == "next":
            return kind == "string" and self._goes_on(end)
        parent = self.open[-1][0] if self.open else -1
        siblings = self.nodes[parent].children if self.open else []
        step, member = self._key or (len(siblings), start)
        siblings.append(len(self.nodes))
        self.nodes.append(Node(kind, start, end, member, parent, step, []))  # type: ignore[arg-type]
        self.wants = "next"
        return True

    def _goes_on(self, end: int) -> bool:
        """Take a string right after another as its rest, as Python does; both stay whole."""
        last = self.nodes[-1] if self.nodes else None
        if last is None or not self.open or last.parent != self.open[-1][0]:
            return False
        if self.text[last.start] not in "\"'" or last.kind not in ("string", "other"):
            return False
        last.kind, last.end = "other", end
        return True

    def _opens(self, mark: str, start: int, end: int) -> bool:
        last = self.nodes[-1] if self.nodes else None
        if mark == "(" and self.wants == "next" and last is not None:
            if last.kind != "other" or last.end != start or not self.text[start - 1].isalnum():
                return False
            last.kind = "object"  # a call: Point(x=1)
        elif not self._add("object" if mark == "{" else "array", start, end):
            return False
        is_call = last is not None and self.nodes[-1] is last
        self.open.append((len(self.nodes) - 1, "call" if is_call else mark))
        self.wants, self._key = "item", None
        return True

    def _closes(self, mark: str, end: int) -> bool:
        if not self.open or self.wants == "value":
            return False
        index, kind = self.open.pop()
        self.nodes[index].end = end
        self.wants, self._key = "next", None
        return mark == _CLOSERS.get(kind, ")")

    def _names(self, mark: str, start: int) -> bool:
        index, kind = self.open[-1]
        last = self.nodes[-1]
        is_simple = last.parent == index and last.kind in ("string", "other")
        if (
            not is_simple
            or self._key is not None
            or (kind, mark) not in (("{", ":"), ("call", "="))
        ):
            return False
        self.nodes.pop()
        self.nodes[index].children.pop()
        is_quoted = last.kind == "string"
        written = self.text[last.start + is_quoted : last.end - is_quoted]
        name = ESCAPE.sub(lambda escape: char_of(escape[0]), written)
        self._key = name, last.start
        self.num_keys += 1
        self.wants = "value"
        return True


def _end_of_lines(text: str, start: int) -> int:
    """Return where the line ends, with those below it that are indented or close it."""
    end = text.find("\n", start)
    while 0 <= end < len(text) - 1 and text[end + 1] in " \t}])":
        end = text.find("\n", end + 1)
    return len(text) if end < 0 else end
