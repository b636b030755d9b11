"""The plan: parts of an answer and what each of them has to wait for.

Names: a *hard* dependency waits for the other part's text, a *soft* one only has to agree with it
(SGD, arXiv 2402.12280; the typed edges are Orion's, arXiv 2510.24390).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import networkx as nx

DEFAULT_LENGTH = 80
MAX_LENGTH = 1000
MAX_TITLE = 200
DEFAULT_DIFFICULTY = 2
MAX_CONTRACT = 200


@dataclass(frozen=True, slots=True)
class Item:
    """A line of a plan as the model wrote it; nothing in it is to be trusted.

    ``key`` is the model's own number, None where it wrote none. ``needs`` and ``agrees`` are such
    numbers. ``length`` is in tokens and ``difficulty`` from 1 to 3, None where not given.
    """

    title: str
    key: int | None = None
    needs: tuple[int, ...] = ()
    agrees: tuple[int, ...] = ()
    length: int | None = None
    note: str = ""
    difficulty: int | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """A part of the answer.

    ``id`` counts from 1 in the order of the answer. ``needs`` (hard) and ``agrees`` (soft) are
    smaller ids. ``length`` is the predicted length in tokens; ``note`` says what belongs in it;
    ``difficulty`` is 1 (easy) to 3 (hard), 2 where the plan says nothing.
    """

    id: int
    title: str
    needs: tuple[int, ...] = ()
    agrees: tuple[int, ...] = ()
    length: int = DEFAULT_LENGTH
    note: str = ""
    difficulty: int = DEFAULT_DIFFICULTY


@dataclass(frozen=True)
class Plan:
    """A valid plan: ids are 1..N in order and every dependency points back.

    ``dropped`` are the edges that made no sense, as text ("3 -> 9: no such part"); ``num_merged``
    is how many lines ended in another line's node (duplicates, and the tail of a long plan).
    ``contract`` is what the plan says about all parts ("lang=en style=plain").
    """

    nodes: tuple[Node, ...] = ()
    dropped: tuple[str, ...] = ()
    num_merged: int = 0
    contract: str = ""

    @classmethod
    def of(cls, items: Iterable[Item], *, max_nodes: int = 8) -> Plan:
        """Return the plan that these lines make. Never raises, whatever the lines hold."""
        builder = Builder(max_nodes)
        for item in items:
            builder.add(item)
        builder.flush()
        return builder.plan

    @cached_property
    def graph(self) -> nx.DiGraph[int]:
        """The graph: a node carries its ``Node`` as ``node``, an edge ``is_hard``."""
        import networkx as nx

        graph: nx.DiGraph[int] = nx.DiGraph()
        for node in self.nodes:
            graph.add_node(node.id, node=node)
            graph.add_edges_from(((other, node.id) for other in node.agrees), is_hard=False)
            graph.add_edges_from(((other, node.id) for other in node.needs), is_hard=True)
        return graph

    @property
    def critical_path(self) -> int:
        """Predicted tokens on the longest chain of hard dependencies."""
        return max(tails(self.nodes).values(), default=0)


def tails(nodes: Iterable[Node]) -> dict[int, int]:
    """Return for each node the predicted tokens of the longest hard chain that starts there."""
    ordered = sorted(nodes, key=lambda node: node.id, reverse=True)
    after: dict[int, int] = {}
    result: dict[int, int] = {}
    for node in ordered:
        result[node.id] = node.length + after.get(node.id, 0)
        for other in node.needs:
            after[other] = max(after.get(other, 0), result[node.id])
    return result


def longest_share(nodes: Iterable[Node], tokens: Mapping[int, int]) -> float:
    """Return which share of all tokens is on the longest chain of hard dependencies.

    >>> longest_share([Node(1, "a"), Node(2, "b"), Node(3, "c", needs=(1,))], {1: 5, 2: 10, 3: 5})
    0.5
    """
    written = [replace(node, length=tokens.get(node.id, 0)) for node in nodes]
    total = sum(node.length for node in written)
    return max(tails(written).values(), default=0) / total if total else 1.0


@dataclass(slots=True)
class Builder:
    """Makes a plan line by line: numbers the nodes, merges duplicates, drops senseless edges.

    A node that ``add`` or ``flush`` has returned never changes any more, so that it can be
    written while the rest of the plan still arrives. Only the last node that fits (``max_nodes``)
    is held back until ``flush``, because the tail of a longer plan ends in it.
    """

    max_nodes: int = 8
    contract: str = ""
    _nodes: list[Node] = field(default_factory=list[Node])
    _last: Node | None = None
    _ids: dict[int, int] = field(default_factory=dict[int, int])
    _titles: dict[str, int] = field(default_factory=dict[str, int])
    _dropped: list[str] = field(default_factory=list[str])
    _num_merged: int = 0

    @property
    def plan(self) -> Plan:
        """The plan so far, without the node that is held back."""
        contract = " ".join(self.contract.split())[:MAX_CONTRACT]
        return Plan(tuple(self._nodes), tuple(self._dropped), self._num_merged, contract)

    @property
    def num_nodes(self) -> int:
        """Nodes so far, with the one that is held back."""
        return len(self._nodes) + (self._last is not None)

    def is_new(self, title: str) -> bool:
        """Whether a line with this title would be a node of its own, not a duplicate."""
        name = same_title(title)
        return bool(name) and name not in self._titles and self._last is None

    def add(self, item: Item) -> Node | None:
        """Take a line and return the node that is ready to be written, if there is one."""
        title = " ".join(item.title.split())[:MAX_TITLE]
        name = same_title(title)
        if not name:
            return None
        id = self.num_nodes + 1
        same = self._titles.get(name)
        if same is not None:
            self._num_merged += 1
            self._name(item.key, same)
            self._dropped += [f"{key} -> {same}: duplicate" for key in item.needs]
            return None
        if self._last is not None:
            self._num_merged += 1
            self._titles[name] = self._last.id
            self._name(item.key, self._last.id)
            self._last = self._merged(self._last, item, title)
            return None
        needs = self._known(item.needs, id, item.key)
        agrees = tuple(i for i in self._known(item.agrees, id, item.key) if i not in needs)
        note = " ".join(item.note.split())
        node = Node(
            id, title, needs, agrees, _length(item.length), note, _difficulty(item.difficulty)
        )
        self._titles[name] = id
        self._name(item.key, id)
        if id == self.max_nodes:
            self._last = node
            return None
        self._nodes.append(node)
        return node

    def flush(self) -> Node | None:
        """End the plan; return the node that was held back, if there is one."""
        node, self._last = self._last, None
        if node is not None:
            self._nodes.append(node)
        return node

    def _name(self, key: int | None, id: int) -> None:
        if key is not None:  # a number used twice means its first line
            self._ids.setdefault(key, id)

    def _merged(self, last: Node, item: Item, title: str) -> Node:
        return replace(
            last,
            title=f"{last.title}; {title}",
            needs=_union(last.needs, self._known(item.needs, last.id, item.key)),
            agrees=_union(last.agrees, self._known(item.agrees, last.id, item.key)),
            length=min(last.length + _length(item.length), MAX_LENGTH),
            note=" ".join(f"{last.note} {item.note}".split()),
            difficulty=max(last.difficulty, _difficulty(item.difficulty)),
        )

    def _known(self, keys: tuple[int, ...], id: int, own: int | None) -> tuple[int, ...]:
        """Map the model's numbers to earlier ids; count what cannot be mapped as dropped."""
        found: list[int] = []
        for key in keys:
            other = self._ids.get(key)
            if other is None:
                reason = "itself" if key == own else "no such part before it"
                self._dropped.append(f"{key} -> {id}: {reason}")
            elif other >= id or key == own:
                self._dropped.append(f"{key} -> {id}: itself")
            elif other not in found:
                found.append(other)
        return tuple(sorted(found))


def _union(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted({*left, *right}))


def _length(length: int | None) -> int:
    return DEFAULT_LENGTH if not length or length < 1 else min(length, MAX_LENGTH)


def _difficulty(difficulty: int | None) -> int:
    return difficulty if difficulty in (1, 2, 3) else DEFAULT_DIFFICULTY


def same_title(title: str) -> str:
    """Return the title without case and punctuation: what equal titles have in common."""
    return re.sub(r"[\W_]+", " ", title.casefold()).strip()


def edges(plan: Plan) -> list[dict[str, Any]]:
    """Return the edges as plain values, for reports."""
    return [
        {"from": start, "to": end, "hard": bool(data["is_hard"])}
        for start, end, data in plan.graph.edges(data=True)
    ]
