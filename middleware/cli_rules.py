"""The option ``--rule``: what becomes of a JSON text's values by key; rules that fit nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..compressors import JsonPolicy
from ..compressors.structured.policy import Rule
from .errors import InvalidRequest


@dataclass(frozen=True)
class WatchedRules(JsonPolicy):
    """Rules that know which of them have been asked for a value that they fit."""

    _used: set[str] = field(default_factory=set[str], compare=False, repr=False)

    @cached_property
    def _each(self) -> dict[str, JsonPolicy]:
        return {path: JsonPolicy({path: "keep"}) for path in self.rules}

    def rule(self, path: tuple[str | int, ...]) -> Rule | None:
        """Return the rule for a value, and note all that fit."""
        for name, one in self._each.items():
            if name not in self._used and one.rule(path):
                self._used.add(name)
        return super().rule(path)

    @property
    def unused(self) -> list[str]:
        """The paths that have fitted no value so far."""
        return [path for path in self.rules if path not in self._used]


def plain_rules(rules: Sequence[str] | None) -> JsonPolicy | None:
    """Return the same rules unwatched: as they are written down with a run of many rows."""
    watched = read_rules(rules)
    return None if watched is None else JsonPolicy(watched.rules)


def read_rules(rules: Sequence[str] | None) -> WatchedRules | None:
    """Return the rules that are written as PATH=RATE, PATH=keep and PATH=drop, None for none.

    Raises InvalidRequest.
    """
    if not rules:
        return None
    found: dict[str, Any] = {}
    for rule in rules:
        path, _, value = rule.rpartition("=")
        try:
            found[path] = value if value in ("keep", "drop") else float(value)
        except ValueError:
            path = ""
        if not path:
            raise InvalidRequest(f"--rule is PATH=RATE, PATH=keep or PATH=drop, got {rule!r:.80}")
    return WatchedRules(found)
