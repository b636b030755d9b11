"""Whole contexts: which stay, and in which order."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...middleware.errors import InvalidRequest
from .ranking import Ranked

_BUDGET = re.compile(r"\s*(?P<sign>\*\*|//|[+\-*/])?\s*(?P<number>\d+(?:\.\d+)?)\s*")
ORDERS = ("original", "sort", "two_stage")


def context_budget(target: float, rule: str) -> float:
    """Return the tokens that whole contexts may take: ``target`` and a rule such as "+100".

    The reference runs the rule as Python; this knows + - * / and one number.

    >>> context_budget(50, "+100"), context_budget(50, "*1.5")
    (150.0, 75.0)
    """
    match = _BUDGET.fullmatch(rule) if isinstance(rule, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]
    if match is None or match["sign"] not in ("+", "-", "*", "/"):
        raise InvalidRequest(
            f"context_budget must be a sign + - * / and a number like '+100', got {rule!r:.80}"
        )
    number = float(match["number"])
    if match["sign"] == "/":
        if not number:
            raise InvalidRequest(f"context_budget cannot divide by zero, got {rule!r:.80}")
        return target / number
    if match["sign"] == "*":
        return target * number
    return target + number if match["sign"] == "+" else target - number


def chosen(
    ranking: Ranked,
    tokens: Sequence[int],
    budget: float,
    forced: Sequence[int] | None = None,
    most: int | None = None,
) -> list[int]:
    """Return the contexts that stay, best first: forced ones, then until the budget is crossed.

    The context that crosses it stays, as in the reference. ``most`` bounds their number. The
    caller's list is left alone.

    Raises InvalidRequest for a forced context that there is not.
    """
    order = [i for i, _ in ranking]
    must = list(dict.fromkeys(forced or ()))
    for i in must:
        if not 0 <= i < len(tokens):
            raise InvalidRequest(
                f"force_context_ids has {i!r}, and there are {len(tokens)} contexts, from 0 on"
            )
    kept = set(must)
    left = budget - sum(tokens[i] for i in must)
    for i in order:
        if i in kept:
            continue
        if left <= 0 or (most is not None and len(kept) >= most):
            break
        kept.add(i)
        left -= tokens[i]
    return [i for i in order if i in kept]


def ordered(best_first: Sequence[int], how: str) -> list[int]:
    """Return contexts in the order asked for: "original", "sort" (best first) or "two_stage".

    "two_stage" puts the best at both ends.

    >>> ordered([3, 1, 0, 2], "two_stage")
    [3, 0, 2, 1]
    """
    if how not in ORDERS:
        raise InvalidRequest(f"reorder_context must be one of {', '.join(ORDERS)}, got {how!r:.80}")
    if how == "original":
        return sorted(best_first)
    if how == "sort":
        return list(best_first)
    return [*best_first[::2], *reversed(best_first[1::2])]
