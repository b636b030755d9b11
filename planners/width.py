"""How many parts of one answer may be written at a time, so that other requests do not suffer."""

from __future__ import annotations

from .speed import StepCost

SLACK = 0.5  # of a step: what all other requests together may lose in each


def allowed_width(cost: StepCost, *, limit: int, others: int, context: float) -> int:
    """Return the width for a request beside ``others`` that are under way at the engine.

    A row more makes every step longer, for the others too (TAPER, arXiv 2605.06914: the
    externality of a branch). Rows are added while what all others lose in a step is less than half
    of one. Always at least 1, never above ``limit``. ``context`` is the tokens in a row.

    >>> [allowed_width(StepCost(), limit=8, others=n, context=600) for n in (0, 100, 1000)]
    [8, 2, 1]
    """
    if others <= 0:
        return max(limit, 1)
    alone = cost.seconds(others + 1, (others + 1) * context)
    grows = cost.seconds(others + 2, (others + 2) * context) - alone
    if grows <= 0:
        return max(limit, 1)
    return max(min(limit, 1 + int(SLACK * alone / (grows * others))), 1)
