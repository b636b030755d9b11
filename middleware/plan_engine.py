"""What ``Plan`` knows of its engines before the first call."""

from __future__ import annotations

from ..backends.base import Backend
from ..planners.known import KnownEngine
from ..planners.small import Small
from ..planners.speed import StepCost
from .cost.predict import Predictor
from .dispatcher import Dispatcher
from .errors import InvalidRequest
from .types import Handler

_SHORT, _LONG, _ROWS = 256, 2048, 16


def step_cost(predictor: Predictor) -> StepCost:
    """Return an engine's step costs from its roofline, corrected by what was observed of it.

    Read off at 1 and 16 rows and at 256 and 2048 tokens of context, between which a memory-bound
    engine's steps are linear (design note 4.1).

    >>> from headrace.middleware.cost import Predictor, Roofline, hardware, shape_of
    >>> cost = step_cost(Predictor(Roofline(shape_of("llama-3.1-8b"), hardware("A100"))))
    >>> 0.005 < cost.seconds(1, 600) < 0.02
    True
    """

    def step(rows: int, context: int) -> float:
        return predictor.predict(context, 2, rows).decode

    one = step(1, _SHORT)
    context = max(step(1, _LONG) - one, 0.0) / (_LONG - _SHORT)
    row = max((step(_ROWS, _SHORT) - one) / (_ROWS - 1) - _SHORT * context, 0.0)
    fixed = max(one - row - _SHORT * context, 1e-9)
    short, long = (predictor.predict(tokens, 0).prefill for tokens in (_SHORT, _LONG))
    prefill = max(long - short, 0.0) / (_LONG - _SHORT)
    return StepCost(fixed, row, context, prefill, max(short - _SHORT * prefill, 0.0))


def known_engine(cost: Predictor | StepCost | None) -> KnownEngine:
    """Return what is known of an engine with these costs; None: nothing."""
    return KnownEngine(step_cost(cost) if isinstance(cost, Predictor) else cost)


def dispatched(engine: Backend | Handler | None) -> Handler | None:
    """Return what asks a second engine: a dispatcher of its own where it is none yet."""
    if engine is None or callable(engine):
        return engine
    if not all(callable(getattr(engine, name, None)) for name in ("generate", "close")):
        raise InvalidRequest(f"small is an engine or what asks one, got {engine!r:.60}")
    return Dispatcher(engine)


def small_of(handler: Handler | None) -> Small | None:
    """Return the second engine for easy parts."""
    return None if handler is None else Small(handler, KnownEngine())
