"""How long an engine's steps take, learnt from the times between its tokens.

A decode step takes ``step + row * rows + context * tokens in all rows`` seconds (TAPER, arXiv
2605.06914, fits the same three numbers online with an error below 2 %), a new call
``call + prefill * new prompt tokens`` until its first token.
"""

from __future__ import annotations

import statistics
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, fields

from ..middleware.errors import InvalidRequest

KEPT = 200  # steps of one row, and as many of several; older ones are forgotten
_SEVERAL = 1.5  # rows; what a batch costs stays known while calls come one at a time
_ODD = 30.0, 8.0  # so many times above or below what is expected is left out, first and then
_FRESH, _CHANGED = 8, 1.5  # so many new steps so many times faster or slower: the old do not count
_LEAST = 1e-3  # of the prior's own step: a step is never free
_RIDGE = 0.05  # the prior weighs as much as a twentieth of an observation


@dataclass(frozen=True, slots=True)
class StepCost:
    """An engine's costs in seconds.

    ``step`` is a step's own, ``row`` a row's in it, ``context`` a token's of context in a row,
    ``prefill`` a prompt token's to read and ``call`` a call's.

    The default is what an 8B model takes on an A100 (16 GB of weights and 131 kB of KV cache a
    token at 2 TB/s, 10,000 prompt tokens a second, 30 ms a call). Before anything was observed,
    only its proportions matter.

    >>> cost = StepCost()
    >>> round(cost.seconds(32, 32 * 600) / cost.seconds(1, 600), 2)
    1.15
    """

    step: float = 0.010
    row: float = 1e-5
    context: float = 6.5e-8
    prefill: float = 1e-4
    call: float = 0.030

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value >= 0:
                raise InvalidRequest(f"a step's {field.name} is 0 or more seconds, got {value!r}")
        if self.step + self.row <= 0:
            raise InvalidRequest("a step takes more than 0 seconds; give step or row")

    def seconds(self, rows: float, context: float) -> float:
        """Return the seconds of one step with so many rows and tokens in all of them."""
        return self.step + self.row * rows + self.context * context

    def steps(self, number: float, rows: int, context: float) -> float:
        """Return the seconds of ``number`` steps, each of which adds a token to every row."""
        grown = rows * number * max(number - 1, 0) / 2
        return number * self.seconds(rows, context) + self.context * grown

    def first(self, new_tokens: float) -> float:
        """Return the seconds from a call to its first token."""
        return self.call + self.prefill * new_tokens


class Speed:
    """Fits a ``StepCost`` to what was observed lately, beginning with ``prior``. Thread-safe.

    Least squares of the relative errors, no coefficient negative. First the whole prior is scaled
    by the median, so that an engine of another size is known after a few steps; only what the
    observations tell apart (steps with one row and with eight) changes its proportions. Steps of
    several rows are forgotten at once where the newest show another engine: nobody may make new
    ones for as long as they say that a batch does not pay.
    """

    def __init__(self, prior: StepCost | None = None) -> None:
        self.prior = prior or StepCost()
        self._alone: deque[tuple[Sequence[float], float]] = deque(maxlen=KEPT)
        self._together: deque[tuple[Sequence[float], float]] = deque(maxlen=KEPT)
        self._firsts: deque[tuple[Sequence[float], float]] = deque(maxlen=KEPT)
        self._num_new = 0  # steps of several rows since they were last compared with the older
        self._lock = threading.Lock()
        self._cost: StepCost | None = self.prior

    @property
    def num_steps(self) -> int:
        """How many observations of steps it is made of."""
        return len(self._alone) + len(self._together)

    def observe_step(self, rows: float, context: float, seconds: float) -> None:
        """Take the time of a step with so many rows and tokens in all of them."""
        is_alone = rows < _SEVERAL
        self._num_new += not is_alone
        self._take(self._alone if is_alone else self._together, (1.0, rows, context), seconds)

    def observe_first(self, new_tokens: int, seconds: float) -> None:
        """Take the time from a call to its first token; what waited in a queue does not count."""
        self._take(self._firsts, (1.0, float(new_tokens)), seconds)

    @property
    def cost(self) -> StepCost:
        """The costs as they are known now."""
        with self._lock:
            if self._cost is None:
                prior = self.prior
                self._forget()
                seen = [*self._alone, *self._together]
                scale, steps = fit((prior.step, prior.row, prior.context), seen)
                _, first = fit((prior.call * scale, prior.prefill * scale), self._firsts)
                call, prefill = first
                fixed, row, context = steps
                fixed = max(fixed, scale * prior.step * _LEAST)
                self._cost = StepCost(fixed, row, context, prefill, call)
            return self._cost

    def _forget(self) -> None:
        """Forget old steps of several rows where the newest are not what they let expect."""
        if self._num_new < _FRESH:
            return
        together = list(self._together)
        number, self._num_new = min(self._num_new, len(together)), 0
        old, new = together[:-number], together[-number:]
        if not old:
            return
        prior = self.prior
        _, steps = fit((prior.step, prior.row, prior.context), [*self._alone, *old])
        ratios = [y / said for x, y in new if (said := _dot(steps, x)) > 0]
        middle = statistics.median(ratios) if ratios else 1.0
        if not 1 / _CHANGED <= middle <= _CHANGED:
            self._together.clear()
            self._together.extend(new)

    def _take(
        self, seen: deque[tuple[Sequence[float], float]], x: Sequence[float], seconds: float
    ) -> None:
        if seconds > 0:
            with self._lock:
                seen.append((x, seconds))
                self._cost = None


def fit(
    prior: Sequence[float], seen: Sequence[tuple[Sequence[float], float]]
) -> tuple[float, tuple[float, ...]]:
    """Return the prior's scale and the coefficients that explain what was seen.

    Every element of ``seen`` is a pair of factors and a value. Where nothing was seen it is 1 and
    the prior. The time is that of one pass over ``seen``.

    >>> scale, (fixed, slope) = fit((1.0, 1.0), [((1.0, 2.0), 30.0)])
    >>> scale, round(fixed, 6), round(slope, 6)
    (10.0, 10.0, 10.0)
    """
    pairs = [(x, y) for x, y in seen if _dot(prior, x) > 0]
    if not pairs:
        return 1.0, tuple(prior)
    scale = statistics.median(y / _dot(prior, x) for x, y in pairs)
    found = [scale * p for p in prior]
    for odd in _ODD:
        rows = [
            ([scale * p * v / said for p, v in zip(prior, x, strict=True)], y / said)
            for x, y in pairs
            if (said := _dot(found, x)) > 0 and 1 / odd <= y / said <= odd
        ]
        shares = _solve(rows, list(range(len(prior))), len(prior))
        found = [scale * p * share for p, share in zip(prior, shares, strict=True)]
    return scale, tuple(found)


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


def _solve(
    rows: Sequence[tuple[Sequence[float], float]], free: list[int], size: int
) -> list[float]:
    """Return non-negative least squares towards 1; ``free`` are the unknowns that are not 0."""
    matrix = [[sum(f[i] * f[j] for f, _ in rows) for j in free] for i in free]
    right = [sum(f[i] * y for f, y in rows) for i in free]
    for k in range(len(free)):
        weight = max(_RIDGE * matrix[k][k] / max(len(rows), 1), 1e-12)
        matrix[k][k] += weight
        right[k] += weight
    found = _gauss(matrix, right)
    low = min(found, default=0.0)
    if low < 0:
        return _solve(rows, [i for i, value in zip(free, found, strict=True) if value > low], size)
    shares = [0.0] * size
    for i, value in zip(free, found, strict=True):
        shares[i] = value
    return shares


def _gauss(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Solve a small positive definite system by elimination."""
    size = len(right)
    for k in range(size):
        for i in range(k + 1, size):
            factor = matrix[i][k] / matrix[k][k]
            right[i] -= factor * right[k]
            for j in range(k, size):
                matrix[i][j] -= factor * matrix[k][j]
    found = [0.0] * size
    for k in reversed(range(size)):
        rest = sum(matrix[k][j] * found[j] for j in range(k + 1, size))
        found[k] = (right[k] - rest) / matrix[k][k]
    return found
