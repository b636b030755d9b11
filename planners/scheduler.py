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
        self.width = width
        self._nodes: dict[int, Node] = {}
        self._waiting: set[int] = set()
        self._running: set[int] = set()
        self._stalled: set[int] = set()
        self._rank: dict[int, int] | None = None

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All parts, in the order in which they came."""
        return tuple(self._nodes.values())

    @property
    def waiting(self) -> tuple[Node, ...]:
        """Parts that were not taken yet, in the order in which they came."""
        return tuple(node for node in self._nodes.values() if node.id in self._waiting)

    @property
    def num_running(self) -> int:
        """Parts that were taken and have not ended."""
        return len(self._running)

    @property
    def num_waiting(self) -> int:
        """Parts that were not taken yet."""
        return len(self._waiting)

    @property
    def head(self) -> int:
        """The first part that has not ended, which is the one being read."""
        return next((id for id in self._nodes if not self.is_ended(id)), len(self._nodes) + 1)

    def is_running(self, id: int) -> bool:
        """Whether a part was taken and has not ended."""
        return id in self._running

    def is_ended(self, id: int) -> bool:
        """Whether a part was written or given up."""
        return id in self._nodes and not self._is_open(id)

    def copy(self, width: int) -> Schedule:
        """Return a schedule in the same state, to be played through with another width."""
        other = Schedule(width)
        other._nodes, other._rank = dict(self._nodes), self._rank
        other._waiting = self._waiting | self._stalled
        other._running = set(self._running)
        return other

    def add(self, node: Node) -> None:
        """Take a line of the plan. Dependencies on parts that are not there do not count."""
        self._nodes[node.id] = node
        self._waiting.add(node.id)
        self._rank = None

    def end(self, id: int) -> None:
        """Mark a part as written or given up; what waited for it may start either way."""
        for state in (self._running, self._waiting, self._stalled):
            state.discard(id)

    def stall(self, id: int) -> None:
        """Give a running part's place to others; it has not ended, and what needs it waits."""
        self._running.discard(id)
        self._stalled.add(id)

    def resume(self, id: int) -> None:
        """Let a stalled part run again, whatever the width."""
        self._stalled.discard(id)
        self._running.add(id)

    def take(self, head: int) -> list[Node]:
        """Return the parts to start now, most urgent first; ``head`` is the one being read."""
        if not self._waiting or self.num_running >= self.width:
            return []
        if self._rank is None:
            self._rank = tails(self._nodes.values())
        rank = self._rank
        ready = [id for id in self._waiting if self._is_ready(self._nodes[id])]
        ready.sort(key=lambda id: (id != head, -rank[id], id))
        taken = ready[: self.width - self.num_running]
        self._waiting.difference_update(taken)
        self._running.update(taken)
        return [self._nodes[id] for id in taken]

    def _is_ready(self, node: Node) -> bool:
        return not any(self._is_open(id) for id in node.needs)

    def _is_open(self, id: int) -> bool:
        return id in self._waiting or id in self._running or id in self._stalled
