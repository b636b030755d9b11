"""How deep a compiler goes that follows references one into the other.

llguidance recurses along them, and a long chain ends the process. Depth is told here without any
recursion, in the order in which references are written, each followed the first time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from ...middleware.errors import UnsupportedConstraint
from ...middleware.subschemas import NAMED, VALUES

MAX_LEVELS = 1_000  # of lowered schemas; the process ends at about 2,500


def check_chain(schema: Any, definitions: Mapping[str, Any]) -> None:
    """Raise UnsupportedConstraint when references lead deeper than ``MAX_LEVELS``."""
    seen: set[str] = set()
    stack: list[Iterator[Any]] = [iter((schema,))]
    while stack:
        if len(stack) > MAX_LEVELS:
            raise UnsupportedConstraint(
                f"the JSON schema's references lead {MAX_LEVELS} levels deep; constrain less of it"
            )
        node = next(stack[-1], None)
        if node is None:
            stack.pop()
        elif isinstance(node, dict):
            stack.append(_below(cast("dict[str, Any]", node), definitions, seen))
        elif isinstance(node, list):
            stack.append(iter(cast("Sequence[Any]", node)))


def _below(
    node: Mapping[str, Any], definitions: Mapping[str, Any], seen: set[str]
) -> Iterator[Any]:
    for key, value in node.items():
        if key == "$ref" and isinstance(value, str):
            name = value.rpartition("/")[2]
            if name not in seen and name in definitions:
                seen.add(name)
                yield definitions[name]
        elif key in NAMED:
            yield [*value.values()]
        elif key not in VALUES:
            yield value
