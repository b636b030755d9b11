"""Which part to write next: plain data, no clock and no tasks.

A part may start when its line is there and its hard dependencies are written; nothing waits for
the end of the plan or of a "level" (Plato, arXiv 2402.12280v2: planning and writing overlap).
First comes the part that the reader waits for, then the one with the longest chain behind it.
"""

from __future__ import annotations

from .graph import Node, tails


class Schedule:
    """The parts of one answer and their state; ``width`` is how many may run at a time."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._nodes: dict[int, Node] = {}
        self._waiting: set[int] = set()
        self._running: set[int] = set()

    @property
    def num_running(self) -> int:
        """Parts that were taken and have not ended."""
        return len(self._running)

    @property
    def num_waiting(self) -> int:
        """Parts that were not taken yet."""
        return len(self._waiting)

    def add(self, node: Node) -> None:
        """Take a line of the plan. Dependencies on parts that are not there do not count."""
        self._nodes[node.id] = node
        self._waiting.add(node.id)

    def end(self, id: int) -> None:
        """Mark a part as written or given up; what waited for it may start either way."""
        self._running.discard(id)

    def take(self, head: int) -> list[Node]:
        """Return the parts to start now, most urgent first; ``head`` is the one being read."""
        rank = tails(self._nodes.values())
        ready = [id for id in self._waiting if self._is_ready(self._nodes[id])]
        ready.sort(key=lambda id: (id != head, -rank[id], id))
        taken = ready[: max(self._width - self.num_running, 0)]
        self._waiting.difference_update(taken)
        self._running.update(taken)
        return [self._nodes[id] for id in taken]

    def _is_ready(self, node: Node) -> bool:
        return not any(id in self._waiting or id in self._running for id in node.needs)
