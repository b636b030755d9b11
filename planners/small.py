"""A second, smaller engine for easy parts."""

from __future__ import annotations

from dataclasses import dataclass

from ..middleware.types import Handler, Request
from .calls import Calls
from .graph import Node
from .known import KnownEngine
from .speed import StepCost


@dataclass(frozen=True, slots=True)
class Small:
    """``handler`` asks the small engine, ``engine`` is what is known of it.

    It writes parts that the plan calls easy (``h1``), where that is predicted to be faster: the
    small engine has read nothing of the prompt yet, which the large one has. Before anything is
    known of its speed it is tried with one part at a time.
    """

    handler: Handler
    engine: KnownEngine

    def calls(self, request: Request) -> Calls:
        """Return its calls for one answer."""
        return Calls(request, self.engine.watch(self.handler))

    def takes(
        self, node: Node, large: StepCost, *, length: int, prompt: int, cached: int, rows: int
    ) -> bool:
        """Whether it should write this part; ``rows`` run on the large engine already.

        Of the ``prompt`` (tokens) the large engine need not read ``cached``.
        """
        if node.difficulty > 1:
            return False
        if not self.engine.is_known:
            return self.engine.num_open == 0
        cost, others = self.engine.cost, self.engine.num_open
        own = cost.first(prompt) + cost.steps(length, 1 + others, prompt * (1 + others))
        theirs = large.first(prompt - cached) + large.steps(length, 1 + rows, prompt * (1 + rows))
        return own < theirs
