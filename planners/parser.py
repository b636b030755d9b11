"""A tolerant parser of what a planner writes, fed in any pieces; it never raises.

Two forms: a *skeleton* is a numbered list (Skeleton-of-Thought, arXiv 2307.15337, section 2.1); a
*graph* has a line a part with its dependencies:

    @plan lang=en style=plain
    1|What a heat pump does|~6
    2|Running cost|<1|~9|h3
    3|Noise|%2|~5|!what neighbours may do
    @end

``<`` are hard and ``%`` soft dependencies, ``~`` is the length in units of 10 tokens, ``h`` the
difficulty from 1 to 3, ``!`` says what the part leaves to others. What stands behind ``@plan`` is
the contract: what holds for all parts.
"""

from __future__ import annotations

import codecs
import io
import re
from dataclasses import replace
from typing import Literal

from .graph import Builder, Item, Node, Plan
from .heads import Head, clean, read_head, read_sub_point, split_inline

Mode = Literal["skeleton", "graph"]

_LINE = re.compile(r"[ \t*_`>-]*(?P<n>\d{1,2})[ \t]*\|(?P<rest>.*)")
_NEEDS = re.compile(r"(?:<|after|deps?|needs|depends on|uses)[ \t:=<]*(?P<ids>\d.*)", re.I)
_SAID = re.compile(
    r"[(\[][^()\[\]]{0,40}?\b(?:uses?|using|needs?|depends? on|after|from|requires?|based on)\b"
    r"(?P<ids>[^()\[\]]*\d[^()\[\]]*)[)\]]",
    re.I,
)
_THINK = re.compile(r"<(?P<end>/?)think(?:ing)?>", re.I)
_FENCE = re.compile(r"\s*(```|~~~)")
_HARD = re.compile(r"h(?:ard)?[ =:]*(?P<level>[1-3])", re.I)
_MAX_INT = 99


class PlanParser:
    """Reads a plan while it streams.

    Nodes come out as soon as nothing later in the text can change them: in graph mode with the
    end of their line, in skeleton mode with the beginning of the next point, since lines in between
    may be sub-points. The result does not depend on how the text was cut into pieces.
    """

    def __init__(self, mode: Mode = "skeleton", *, max_nodes: int = 8) -> None:
        self.text = ""
        self._mode: Mode = mode
        self._max_nodes = max_nodes
        self._bytes = codecs.getincrementaldecoder("utf-8")("replace")
        self._breaks = io.IncrementalNewlineDecoder(None, translate=True)
        self._rest = ""
        self._is_thinking = False
        self._num_restarts = 0
        self._restart()

    def _restart(self) -> None:
        self._builder = Builder(self._max_nodes)
        self._open: Item | None = None
        self._style: Head | None = None
        self._fence: Literal["", "around", "inside"] = ""
        self._is_ended = False

    @property
    def plan(self) -> Plan:
        """The nodes that have come out so far."""
        return self._builder.plan

    @property
    def num_nodes(self) -> int:
        """How many nodes there will be at least."""
        is_more = self._open is not None and self._builder.is_new(self._open.title)
        return self._builder.num_nodes + is_more

    @property
    def num_restarts(self) -> int:
        """How often ``</think>`` showed that all before it was reasoning, not the plan.

        The nodes that came out until then are void; ids begin at 1 again.
        """
        return self._num_restarts

    def feed(self, piece: str | bytes) -> list[Node]:
        """Take a piece of text, or of UTF-8, and return the nodes that it completed."""
        text = self._bytes.decode(piece) if isinstance(piece, bytes) else piece
        text = self._breaks.decode(text)
        if not self.text:
            text = text.removeprefix("\ufeff")
        self.text += text
        *lines, self._rest = (self._rest + text).split("\n")
        return self._lines(lines)

    @property
    def is_thinking(self) -> bool:
        """Whether the text is in the middle of a thought (``<think>``)."""
        return bool(ends := _THINK.findall(self.text)) and not ends[-1]

    def finish(self, *, is_cut: bool = False) -> list[Node]:
        """End the text and return the nodes that were still open.

        ``is_cut``: the planner ran out of tokens, so a last line without its end is dropped
        (where two nodes are there without it).
        """
        text = self._breaks.decode(self._bytes.decode(b"", final=True), final=True)
        self.text += text
        *lines, last = (self._rest + text).split("\n")
        self._rest = ""
        nodes = self._lines(lines)
        if not (is_cut and self.num_nodes >= 2):
            nodes = self._line(last, nodes)
        return [*nodes, *self._close(), *_some(self._builder.flush())]

    def _lines(self, lines: list[str]) -> list[Node]:
        nodes: list[Node] = []
        for line in lines:
            nodes = self._line(line, nodes)
        return nodes

    def _line(self, line: str, nodes: list[Node]) -> list[Node]:
        """Read a line; return these nodes and its own, or its own only after a restart."""
        while found := _THINK.search(line):
            before, line = line[: found.start()], line[found.end() :]
            if found["end"] and not self._is_thinking:  # the opening tag was in the prompt
                self._restart()
                self._num_restarts += 1
                nodes = []
            elif not self._is_thinking:
                nodes = [*nodes, *self._visible(before)]
            self._is_thinking = not found["end"]
        return nodes if self._is_thinking else [*nodes, *self._visible(line)]

    def _visible(self, line: str) -> list[Node]:
        if _FENCE.match(line):
            has_items = self.num_nodes > 0
            self._fence = "" if self._fence else "inside" if has_items else "around"
            return []
        if self._fence == "inside" or self._is_ended or not line.strip():
            return []
        if self._mode == "graph":
            return self._graph_line(line)
        return self._skeleton_line(line)

    def _skeleton_line(self, line: str) -> list[Node]:
        head = read_head(line)
        if head is not None and self._is_point(head):
            self._style = self._style or head
            nodes: list[Node] = []
            for one in split_inline(head):
                nodes += self._close()
                self._open = _skeleton_item(one)
            return nodes
        if self._open is None:
            return []
        if not self._open.title and head is None:  # "1." alone, its title in the next line
            self._open = replace(self._open, title=clean(line))
            return []
        sub = read_sub_point(line)
        text = head.text if head is not None else ""
        if sub is not None and sub[0] == self._open.key:
            text = sub[1]
        if text and self._open.title:
            note = f"{self._open.note}; {text}" if self._open.note else f"cover {text}"
            self._open = replace(self._open, note=note[:400])
        return []

    def _is_point(self, head: Head) -> bool:
        """Whether the head is a point, and not a sub-point of the open one."""
        if self._style is None:
            return True
        if head.indent >= self._style.indent + 2 and self._open is not None:
            return False
        kinds = {self._style.kind, head.kind}
        return len(kinds) == 1 or head.kind == "number" or kinds == {"roman", "letter"}

    def _close(self) -> list[Node]:
        item, self._open = self._open, None
        return _some(self._builder.add(item)) if item is not None else []

    def _graph_line(self, line: str) -> list[Node]:
        word = line.strip().strip("`*").casefold()
        if word.startswith("@end"):
            self._is_ended = True
            return []
        if word.startswith("@plan"):
            if not self.num_nodes:
                self._builder.contract = line.strip().strip("`*")[len("@plan") :].strip()
            return []
        if found := _LINE.match(line):
            item = _graph_item(int(found["n"]), found["rest"])
        elif (head := read_head(line)) is not None and head.number is not None:
            item = _graph_item(head.number, head.text)
        else:
            return []
        return _some(self._builder.add(item))


def _skeleton_item(head: Head) -> Item:
    """Split "Title: what it says", so that the heading stays short."""
    title, colon, detail = head.text.partition(": ")
    if colon and len(title.split()) <= 8:
        return Item(clean(title), head.number, note=f"cover {detail.strip()}"[:400])
    return Item(head.text, head.number)


def _graph_item(key: int, rest: str) -> Item:
    title, *fields = (part.strip() for part in rest.split("|"))
    needs: list[int] = []
    agrees: list[int] = []
    length: int | None = None
    difficulty: int | None = None
    note = ""
    for said in _SAID.finditer(title):
        needs += _ids(said["ids"])
    title = _SAID.sub("", title)
    for part in fields:
        if found := _NEEDS.match(part):
            needs += _ids(found["ids"])
        elif part.startswith("%"):
            agrees += _ids(part)
        elif part.startswith("~"):
            units = _ids(part)
            length = 10 * units[0] if units else None
        elif part.startswith("!"):
            note = f"leave out {part[1:].strip()}"
        elif found := _HARD.fullmatch(part):
            difficulty = int(found["level"])
    return Item(clean(title), key, tuple(needs), tuple(agrees), length, note, difficulty)


def _ids(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d{1,9}", text) if int(n) <= _MAX_INT]


def _some(node: Node | None) -> list[Node]:
    return [node] if node is not None else []


def parse_plan(text: str | bytes, mode: Mode = "skeleton", *, max_nodes: int = 8) -> Plan:
    r"""Return the plan in a whole text; it has no nodes where the text has no plan.

    >>> [node.title for node in parse_plan("Sure!\n1) Cost\n2) Noise").nodes]
    ['Cost', 'Noise']
    """
    parser = PlanParser(mode, max_nodes=max_nodes)
    parser.feed(text)
    parser.finish()
    return parser.plan
