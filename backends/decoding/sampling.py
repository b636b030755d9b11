"""Logits to one token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...middleware.types import Sampling

if TYPE_CHECKING:
    import torch


class Sampler:
    """Chooses the tokens of one answer.

    Greedy when the temperature is None or 0; else one random number a token, drawn from the
    row's own generator, picks from the nucleus (top_p, Holtzman et al. 2020). A seed gives the
    same draws whatever else is in the batch.
    """

    def __init__(self, sampling: Sampling) -> None:
        import torch

        self._temperature = sampling.temperature or 0.0
        self._top_p = 1.0 if sampling.top_p is None else sampling.top_p
        self._generator = torch.Generator()
        if sampling.seed is None:
            self._generator.seed()
        else:
            self._generator.manual_seed(sampling.seed % 2**63)

    @property
    def is_greedy(self) -> bool:
        """Whether the most probable token is taken each time."""
        return self._temperature == 0

    def pick(self, logits: torch.Tensor) -> int:
        """Return a token id. ``logits``: [vocabulary], forbidden tokens at minus infinity."""
        import torch

        if self.is_greedy:
            return int(logits.argmax())
        scaled = logits.double().cpu()
        scaled = (scaled - scaled.max()) / self._temperature
        weights = torch.softmax(scaled, -1)
        if self._top_p < 1:
            weights = _nucleus(weights, self._top_p)
        cumulative = weights.cumsum(-1)
        draw = torch.rand(1, generator=self._generator, dtype=torch.double) * cumulative[-1]
        # The first token whose cumulative weight exceeds the draw is never one of weight 0.
        token = int(torch.searchsorted(cumulative, draw, right=True))
        return token if token < weights.numel() else int(weights.argmax())


def _nucleus(weights: torch.Tensor, top_p: float) -> torch.Tensor:
    """Zero all but the fewest tokens that together have a share of at least ``top_p``."""
    ranked, order = weights.sort(descending=True, stable=True)
    before = ranked.cumsum(-1) - ranked
    keep = before < top_p
    keep[0] = True
    return weights.new_zeros(weights.shape).scatter(0, order[keep], ranked[keep])
