"""Replies for an engine behind a ``Plan`` stage: who asks is told by the last message."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from headrace.middleware.types import Request

from .simulated import Record, Reply, SimulatedEngine

PLAIN = "The plain answer."
_POINT = re.compile(r'What can you say about point (\d+), "')


def planned(
    plan: Reply | str,
    nodes: Mapping[int, Reply | str | Sequence[Reply | str]] | None = None,
    *,
    plain: Reply | str = PLAIN,
) -> Callable[[Request], Reply | str]:
    """Return a reply function: ``plan`` for the planner, ``nodes[id]`` for a part (a sequence
    answers one try after the other; "Text of part 3." by default), else ``plain``."""
    tries: dict[int, int] = {}

    def reply(request: Request) -> Reply | str:
        who = _who(request)
        if who is None:
            return plan if "Do not answer yet" in request.messages[-1].text else plain
        said = (nodes or {}).get(who, f"Text of part {who}.")
        if isinstance(said, (str, Reply)):
            return said
        tries[who] = tries.get(who, 0) + 1
        return said[min(tries[who], len(said)) - 1]

    return reply


def calls_of(engine: SimulatedEngine, part: int | None) -> list[Record]:
    """Return the log of one part's calls; None: of the planner and of plain calls."""
    return [record for record in engine.log if _who(record.request) == part]


def _who(request: Request) -> int | None:
    asked = [int(n) for m in request.messages for n in _POINT.findall(m.text) if m.role == "user"]
    return asked[-1] if asked else None
