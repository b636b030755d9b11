"""What the caller wants of the values of a JSON text, by key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, cast

from ...middleware.errors import InvalidRequest
from .nodes import Path

Rule = float | Literal["keep", "drop"]

_STEP = re.compile(r'\*\*|\*|\[(?P<place>\d+|\*)\]|\["(?P<quoted>[^"]*)"\]|(?P<key>[^.\[\]*]+)')


@dataclass(frozen=True)
class JsonPolicy:
    """Rules for the values of JSON and JSON Lines.

    ``rules`` maps a path to a rate in [0, 1] (a string there keeps at most that share of its own
    tokens, and at least one word), "keep" (nothing under it changes) or "drop" (the key goes, with
    its comma). In a path, ``.key`` is a key, ``["a.b"]`` a key with dots, ``[3]`` and ``[*]`` a
    place in a list (or a row of JSON Lines), ``*`` any key and ``**`` any number of steps. Where
    several paths fit, the last one counts.

    Strings without a rule are shortened under the common budget when they are prose of
    ``min_words`` words or more, and with ``only_rules`` not at all. With ``max_records``, lists of
    objects keep no more than so many: the first, the last and those that the question names most.
    Without it, no record ever goes.

    Raises InvalidRequest for a path or a rule that is none.

    >>> policy = JsonPolicy({"items[*].body": 0.3, "**.debug": "drop"})
    >>> policy.rule(("items", 4, "body")), policy.rule(("a", "b", "debug")), policy.rule(("a",))
    (0.3, 'drop', None)
    """

    rules: Mapping[str, Rule] = field(default_factory=dict[str, Rule])
    max_records: int | None = None
    min_words: int = 20
    only_rules: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.rules, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidRequest(f"rules map paths to rates, got {self.rules!r:.80}")
        _ = self._parsed
        if type(self.min_words) is not int or self.min_words < 0:
            raise InvalidRequest(f"min_words must be 0 or more, got {self.min_words!r:.40}")
        if self.max_records is not None and (
            type(self.max_records) is not int or self.max_records < 1
        ):
            raise InvalidRequest(f"max_records must be 1 or more, got {self.max_records!r}")

    @cached_property
    def _parsed(self) -> list[tuple[Path, Rule]]:
        return [(_steps(path), _checked(path, rule)) for path, rule in self.rules.items()]

    def rule(self, path: Path) -> Rule | None:
        """Return the rule for a value: the last one whose path fits, None without one."""
        for steps, rule in reversed(self._parsed):
            if _fits(steps, path):
                return None if rule == "drop" and not path else rule  # the text itself never goes
        return None


def _steps(path: str) -> Path:
    if not isinstance(path, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidRequest(f"a JSON path must be a string, got {path!r:.80}")
    steps: list[str | int] = []
    at = 0
    while at < len(path):
        if path[at] == "." and at:
            at += 1
        match = _STEP.match(path, at)
        if match is None:
            raise InvalidRequest(
                f"{path!r:.80} is no path: cannot read {path[at:]!r:.40}; write items[*].body"
            )
        if match["place"] is not None:
            steps.append("[*]" if match["place"] == "*" else int(match["place"]))
        elif match["quoted"] is not None or match["key"] is not None:
            steps.append("." + (match["quoted"] if match["quoted"] is not None else match["key"]))
        else:
            steps.append(match[0])
        at = match.end()
    return tuple(steps)


def _checked(path: str, rule: object) -> Rule:
    if rule in ("keep", "drop"):
        return cast("Rule", rule)
    if isinstance(rule, (int, float)) and not isinstance(rule, bool) and 0 <= rule <= 1:
        return float(rule)
    raise InvalidRequest(
        f'the rule of {path!r:.80} must be a rate in [0, 1], "keep" or "drop", got {rule!r:.40}'
    )


def _fits(steps: Path, path: Path) -> bool:
    """Whether a path fits, step by step; the places reached so far are a set (Thompson's way)."""
    reached = {0}
    for here in (*path, None):
        todo = list(reached)
        while todo:  # "**" may be skipped
            place = todo.pop()
            if place < len(steps) and steps[place] == "**" and place + 1 not in reached:
                reached.add(place + 1)
                todo.append(place + 1)
        if here is None:
            break
        after: set[int] = set()
        for place in reached:
            step = steps[place] if place < len(steps) else None
            if step == "**":
                after.add(place)
            elif _is_step(step, here):
                after.add(place + 1)
        reached = after
    return len(steps) in reached


def _is_step(step: str | int | None, here: str | int) -> bool:
    if isinstance(here, int):
        return step == here or step == "[*]"
    return step == "*" or step == "." + here
