"""Prompt and output optimisation in front of a language model's engine.

The code lives in the folders at the top of the repository; ``headrace.X`` is ``./X``. The names
below are imported when they are first used, so that ``import headrace`` costs next to nothing.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    __version__: str
    from .compressors import Compressed, JsonPolicy, recover
    from .compressors.context import Context
    from .middleware.breaker import Breaker
    from .middleware.cache import Cache
    from .middleware.compress import Compress
    from .middleware.constrain import Constrain
    from .middleware.constraints import constraint
    from .middleware.dispatcher import Dispatcher
    from .middleware.errors import (
        BackendError,
        DeadlineExceeded,
        HeadraceError,
        InvalidRequest,
        ModelUnavailable,
        Overloaded,
        Truncated,
        UnsupportedConstraint,
    )
    from .middleware.grammars import grammar
    from .middleware.objects import PartialObject, partial_objects
    from .middleware.outlines_plug import outlines_processor
    from .middleware.pipeline import Pipeline
    from .middleware.plan import Plan
    from .middleware.queueing import Order
    from .middleware.report import Report, StageReport
    from .middleware.rerank import Rerank
    from .middleware.retrieve import Retrieve
    from .middleware.sdk import (
        compress,
        compress_documents,
        compress_tools,
        generate,
        rerank,
        stream_objects,
    )
    from .middleware.summarise import Summarise
    from .middleware.template import template
    from .middleware.transform import Transform
    from .middleware.types import (
        Constraint,
        Document,
        Enforcement,
        Event,
        Finished,
        Handler,
        Message,
        Middleware,
        Request,
        Response,
        Sampling,
        TextDelta,
        ToolCallDelta,
        Usage,
    )
    from .middleware.wrap import report_of, wrap

__all__ = [
    "BackendError",
    "Breaker",
    "Cache",
    "Compress",
    "Compressed",
    "Constrain",
    "Constraint",
    "Context",
    "DeadlineExceeded",
    "Dispatcher",
    "Document",
    "Enforcement",
    "Event",
    "Finished",
    "Handler",
    "HeadraceError",
    "InvalidRequest",
    "JsonPolicy",
    "Message",
    "Middleware",
    "ModelUnavailable",
    "Order",
    "Overloaded",
    "PartialObject",
    "Pipeline",
    "Plan",
    "Report",
    "Request",
    "Rerank",
    "Response",
    "Retrieve",
    "Sampling",
    "StageReport",
    "Summarise",
    "TextDelta",
    "ToolCallDelta",
    "Transform",
    "Truncated",
    "UnsupportedConstraint",
    "Usage",
    "compress",
    "compress_documents",
    "compress_tools",
    "constraint",
    "generate",
    "grammar",
    "outlines_processor",
    "partial_objects",
    "recover",
    "report_of",
    "rerank",
    "stream_objects",
    "template",
    "wrap",
]

_HOMES = {
    "compressors": "Compressed JsonPolicy recover",
    "compressors.context": "Context",
    "middleware.breaker": "Breaker",
    "middleware.cache": "Cache",
    "middleware.compress": "Compress",
    "middleware.constrain": "Constrain",
    "middleware.constraints": "constraint",
    "middleware.dispatcher": "Dispatcher",
    "middleware.errors": (
        "BackendError DeadlineExceeded HeadraceError InvalidRequest ModelUnavailable "
        "Overloaded Truncated UnsupportedConstraint"
    ),
    "middleware.grammars": "grammar",
    "middleware.objects": "PartialObject partial_objects",
    "middleware.outlines_plug": "outlines_processor",
    "middleware.pipeline": "Pipeline",
    "middleware.plan": "Plan",
    "middleware.report": "Report StageReport",
    "middleware.queueing": "Order",
    "middleware.rerank": "Rerank",
    "middleware.retrieve": "Retrieve",
    "middleware.sdk": "compress compress_documents compress_tools generate rerank stream_objects",
    "middleware.summarise": "Summarise",
    "middleware.template": "template",
    "middleware.transform": "Transform",
    "middleware.types": (
        "Constraint Document Enforcement Event Finished Handler Message Middleware Request "
        "Response Sampling TextDelta ToolCallDelta Usage"
    ),
    "middleware.wrap": "report_of wrap",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("headrace")
    for home, names in _HOMES.items():
        if name in names.split():
            found = getattr(_import_module(f".{home}", __name__), name)
            globals()[name] = found
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
