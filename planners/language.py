"""The plan language as a pattern, for engines that can hold the planner to it."""

from __future__ import annotations

from ..middleware.errors import InvalidRequest
from .parser import Mode

_TITLE = r"[^|\n<>%~!@*_` \t][^|\n]{1,79}"
_POINT = r"[^\s\d*_#>`:.)\-][^\n]{1,79}"


def plan_pattern(mode: Mode = "skeleton", *, max_nodes: int = 8) -> str:
    r"""Return the pattern of the plans that a planner may write: 2 to ``max_nodes`` parts.

    Parts are numbered from 1, and a part of a graph needs only parts before it, so that a plan has
    no cycle. ``Plan`` holds the planner of a graph to it where the engine can: text still streams
    under a pattern, and the plan ends where it is whole. A skeleton is not held: its parser reads
    any list, and a model that answers "Sure!" instead would be forced to make one up.

    >>> import re
    >>> bool(re.fullmatch(plan_pattern(), "1. Cost\n2. Noise\n"))
    True
    """
    if not 2 <= max_nodes <= 99:
        raise InvalidRequest(f"max_nodes must be from 2 to 99, got {max_nodes}")
    line = _graph_line if mode == "graph" else _skeleton_line
    rest = ""
    for number in range(max_nodes, 2, -1):
        rest = f"(?:{line(number)}{rest})?"
    body = line(1) + line(2) + rest
    return f"@plan\\n{body}@end" if mode == "graph" else body


def _skeleton_line(number: int) -> str:
    return rf"{number}\. {_POINT}\n"


def _graph_line(number: int) -> str:
    before = "|".join(str(other) for other in range(number - 1, 0, -1))
    ids = rf"(?:{before})(?:,(?:{before}))*"
    needs = rf"(?:\|<{ids})?(?:\|%{ids})?" if before else ""
    return rf"{number}\|{_TITLE}{needs}\|~[1-9][0-9]?(?:\|h[123])?\n"
