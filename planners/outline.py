"""How the sections of an outline that is the caller's own are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..middleware.types import Message
from .graph import Node
from .parser import Mode
from .prompts import with_task


@dataclass(frozen=True, slots=True)
class OutlineWords:
    """The wording for a plan that is given: all calls share the messages and the outline."""

    titles: tuple[str, ...]

    def plan(
        self, messages: tuple[Message, ...], mode: Mode, max_nodes: int
    ) -> tuple[Message, ...]:
        """Return the messages as they are: there is no planner's call."""
        return messages

    def node(
        self,
        planned: tuple[Message, ...],
        plan_text: str,
        node: Node,
        texts: Mapping[int, tuple[str, str]],
        *,
        reason: str = "",
    ) -> tuple[Message, ...]:
        """Return the messages that ask for one section."""
        outline = "\n".join(f"{at}. {title}" for at, title in enumerate(self.titles, 1))
        again = f" {reason}" if reason else ""
        task = (
            f"\n\nThe answer has these sections:\n{outline}\n\n"
            f'Write only the text of section {node.id}, "{node.title}", without its heading. Leave '
            f"to the other sections what belongs there.{again}"
        )
        return with_task(planned, task)
