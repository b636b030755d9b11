"""What training minimises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional

from .encode import Batch


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each part of the loss counts.

    ``certain`` weighs tokens with a label of 0.9 or more, against the many that go.
    ``relevance`` is for the passage alone, ``ranking`` for the order within a group, half from the
    labels and half from the teacher's cosines, sharpened by ``sharpness``.
    """

    certain: float = 2.0
    relevance: float = 0.3
    ranking: float = 0.3
    sharpness: float = 15.0


def loss_of(keep: Tensor, relevance: Tensor, batch: Batch, weights: Weights) -> dict[str, Tensor]:
    """Return the parts of the loss, weighted; their sum is to be minimised."""
    certain = 1.0 + (weights.certain - 1.0) * (batch.labels >= 0.9)
    each = functional.binary_cross_entropy_with_logits(keep, batch.labels, reduction="none")
    tokens = (each * batch.weights * certain).sum() / batch.weights.gt(0).sum().clamp(min=1)
    parts = {"tokens": tokens}
    known = ~batch.relevance.isnan()
    if known.any():
        parts["relevance"] = weights.relevance * functional.binary_cross_entropy_with_logits(
            relevance[known], batch.relevance[known]
        )
    if weights.ranking and (ranked := _ranking(relevance, batch, weights.sharpness)) is not None:
        parts["ranking"] = weights.ranking * ranked
    return parts


def _ranking(relevance: Tensor, batch: Batch, sharpness: float) -> Tensor | None:
    """Return the mean cross entropy of the order within each group of several passages."""
    found: list[Tensor] = []
    numbers: list[int] = cast("Any", batch.owner).tolist()
    for number in dict.fromkeys(numbers):
        own = batch.owner == number
        if int(own.sum()) < 2:
            continue
        target = batch.relevance[own] / batch.relevance[own].sum().clamp(min=1e-6)
        teacher = batch.teacher[own]
        if not teacher.isnan().any():
            target = 0.5 * target + 0.5 * (teacher * sharpness).softmax(0)
        found.append(-(target * relevance[own].log_softmax(0)).sum())
    return torch.stack(found).mean() if found else None
