"""One call ahead of the others, where nobody has read the beginning that they share yet.

Calls that are admitted together may each read it: vLLM issue 9643; SGLang PR 2442 holds siblings
back for that. The dispatcher does the same for engines that say they have a prefix cache; this is
for those that do not say it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

TOKENS = 256  # a common beginning from here on is worth being read once
SECONDS = 0.150


class Lead:
    """Says whether only one part may run; ``over`` is called when the others may follow."""

    def __init__(self, over: Callable[[], None]) -> None:
        self.is_on = False
        self._is_decided = False
        self._over = over
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, *, shared_tokens: int, is_warm: bool) -> None:
        """Decide, before the first call. ``is_warm``: the planner's call has read the beginning."""
        if self._is_decided:
            return
        self._is_decided = True
        self.is_on = shared_tokens > TOKENS and not is_warm
        if self.is_on:
            self._timer = asyncio.get_running_loop().call_later(SECONDS, self.end)

    def end(self) -> None:
        """Let the others go: the first call has its first token, or is slow."""
        if self.is_on:
            self.close()
            self._over()

    def close(self) -> None:
        """Stop the timer."""
        self.is_on = False
        if self._timer is not None:
            self._timer.cancel()
