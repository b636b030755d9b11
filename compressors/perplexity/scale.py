"""From nats to scores in [0, 1]."""

from __future__ import annotations

from collections.abc import Sequence

HALF = 3.0


def score_of(nats: float) -> float:
    """Map self-information from 0 on to [0, 1): s / (s + 3 nats).

    Strictly growing: 3 nats, about the mean of a token of prose for a small model, score 0.5.

    >>> score_of(3.0)
    0.5
    """
    nats = max(nats, 0.0)
    return nats / (nats + HALF)


def ranks(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Return the share of the weight that is worth less than each value, half of its own included.

    Equal values share a rank. The best share r of the weight is what ranks above 1 - r.

    >>> ranks([0.2, 0.9, 0.5], [1, 1, 2])
    [0.125, 0.875, 0.5]
    """
    order = sorted(range(len(values)), key=lambda i: values[i])
    total = sum(weights) or 1.0
    found = [0.0] * len(values)
    below, at = 0.0, 0
    while at < len(order):
        end = at
        while end < len(order) and values[order[end]] == values[order[at]]:
            end += 1
        own = sum(weights[i] for i in order[at:end])
        for i in order[at:end]:
            found[i] = (below + own / 2) / total
        below += own
        at = end
    return found
