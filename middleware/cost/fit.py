"""A line through what was observed lately, which a few odd observations do not move."""

from __future__ import annotations

import statistics
import threading
from collections import deque
from itertools import combinations

KEPT = 32  # observations; older ones are forgotten
_SPREAD = 2.0  # largest x over least x from which on a fixed part can be told from a slope


class Fit:
    """``fixed + slope * x``: Theil (1950) and Sen (1968), medians of pairwise slopes and of rests.

    Up to 29 % of the observations may be wild. Neither part is ever negative; while the x lie
    within a factor of two there is a slope only. Before the first observation the slope is
    ``prior``. Thread-safe.

    >>> fit = Fit()
    >>> for x in (1.0, 2.0, 4.0):
    ...     fit.add(x, 0.5 + 3 * x)
    >>> fit.at(10.0)
    30.5
    """

    def __init__(self, prior: float = 1.0) -> None:
        self._seen: deque[tuple[float, float]] = deque(maxlen=KEPT)
        self._lock = threading.Lock()
        self._fixed, self._slope = 0.0, prior

    def __len__(self) -> int:
        """How many observations it is made of."""
        return len(self._seen)

    def add(self, x: float, y: float) -> None:
        """Observe ``y`` at ``x``; what is not positive is left out."""
        if not (x > 0 and y > 0):
            return
        with self._lock:
            self._seen.append((x, y))
            self._fixed, self._slope = _line([*self._seen])

    def forget(self) -> None:
        """Drop every observation; the line stays until the next one."""
        with self._lock:
            self._seen.clear()

    def at(self, x: float) -> float:
        """Return the line's value; 0 at 0, where nothing is done."""
        with self._lock:
            return self._fixed + self._slope * x if x > 0 else 0.0


def _line(seen: list[tuple[float, float]]) -> tuple[float, float]:
    low, high = min(x for x, _ in seen), max(x for x, _ in seen)
    if high >= _SPREAD * low:
        least = (high - low) / 4  # points too close to each other tell only of noise
        slope = statistics.median(
            (b - d) / (a - c) for (a, b), (c, d) in combinations(seen, 2) if abs(a - c) >= least
        )
        fixed = statistics.median(y - slope * x for x, y in seen)
        if slope > 0 and fixed >= 0:
            return fixed, slope
    middle = statistics.median if len(seen) > 2 else min  # of two, not the cold start
    return 0.0, middle([y / x for x, y in seen])
