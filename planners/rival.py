"""The plain answer, begun beside the planner, for the case that planning does not pay.

Skeleton-of-Thought, arXiv 2307.15337, appendix C.4: run both, and drop the one that is not needed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing

from ..middleware.types import Finished, Message, Response
from .calls import Calls


class Rival:
    """One call for the whole answer whose text is held back until it is chosen."""

    def __init__(self) -> None:
        self.text = ""
        self.num_pieces = 0
        self.response: Response | None = None
        self.is_chosen = False

    async def run(
        self,
        calls: Calls,
        messages: tuple[Message, ...],
        max_tokens: int | None,
        send: Callable[[str], None],
    ) -> None:
        """Read the call to its end, sending what comes once it is chosen.

        Raises what the call raises.
        """
        async with aclosing(calls.stream(messages, max_tokens)) as events:
            async for event in events:
                if isinstance(event, Finished):
                    self.response = event.response
                    continue
                self.num_pieces += 1
                self.text += event.text
                if self.is_chosen:
                    send(event.text)

    def choose(self) -> str:
        """Take it as the answer and return what it has so far."""
        self.is_chosen = True
        return self.text
