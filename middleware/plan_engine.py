"""What ``Plan`` knows of its engines before the first call."""

from __future__ import annotations

from functools import partial

from ..backends.base import Backend
from ..planners.known import KnownEngine
from ..planners.small import Small
from ..planners.speed import StepCost
from .cost.predict import Predictor
from .dispatcher import Dispatcher
from .errors import HeadraceError, InvalidRequest
from .types import Handler

_SHORT, _LONG, _ROWS = 256, 2048, 16
_FREE = 0.02  # of a step


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


def dispatcher_behind(handler: Handler) -> Dispatcher | None:
    """Return the dispatcher behind a pipeline's stages, None where something else is there."""
    while isinstance(handler, partial) and handler.args:
        handler = handler.args[-1]
    return handler if isinstance(handler, Dispatcher) else None


async def is_race_free(known: KnownEngine, call_next: Handler, width: int) -> bool:
    """Whether a plain answer beside a plan costs nothing: an engine of one's own with room for it.

    That is an engine in process, or a server that says it is vLLM, SGLang, llama.cpp or the like
    (nobody bills its tokens), whose steps are known to be no longer for one row more.
    """
    if not known.is_known or (dispatcher := dispatcher_behind(call_next)) is None:
        return False
    for backend in dispatcher.backends:
        try:
            found = await backend.capabilities()
        except HeadraceError:
            return False
        is_own = found.name != "openai" or found.has_prefix_cache or found.has_row_caches
        rows = found.max_batch * (1 if found.is_continuous else found.max_concurrency)
        if not is_own or known.num_open + width + 2 > rows:
            return False
    each, few = known.context / max(known.num_rows, 1), known.num_rows + 2
    more = known.cost.seconds(few + 1, (few + 1) * each) / known.cost.seconds(few, few * each)
    return more <= 1 + _FREE


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
