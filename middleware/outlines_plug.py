"""Our automaton in an Outlines generator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .constraints import constraint
from .errors import InvalidRequest

if TYPE_CHECKING:
    from ..backends.decoding.processor import ConstraintProcessor


def outlines_processor(
    model: Any, output_type: Any, *, like: ConstraintProcessor | None = None
) -> ConstraintProcessor:
    """Return the processor that holds an Outlines transformers model to a constraint.

        write = outlines.Generator(model, processor=headrace.outlines_processor(model, Person))

    ``output_type`` is whatever ``headrace.constraint`` takes, Outlines' own types and
    ``headrace.template(...)`` too. The generator returns the text; ``constraint(...).parse`` reads
    it. Reading the model's vocabulary takes half a second: pass an earlier processor of the same
    model as ``like`` to share it. One processor belongs to one generation at a time; batches and
    beams are fine. Raises InvalidRequest, and UnsupportedConstraint for what no automaton holds.
    """
    from ..backends.decoding.processor import ConstraintProcessor

    made = constraint(output_type)
    if like is not None:
        return ConstraintProcessor(like.compiler, made)
    tokenizer = getattr(model, "hf_tokenizer", None)
    network = getattr(model, "model", None)
    if tokenizer is None or not hasattr(network, "get_output_embeddings"):
        raise InvalidRequest(
            f"{type(model).__name__} is no model of outlines.from_transformers(...); other Outlines"
            " models take no processor of ours"
        )
    return ConstraintProcessor.of(network, tokenizer, made)
