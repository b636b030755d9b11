"""Where training starts: the published encoder's weights, and its cosines as a teacher."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from ...middleware.models import resolve
from ..mini import tensorfile, weights
from ..mini.network import Encoder, Network, Shape, fresh, mean
from ..tokens import load_tokenizer

BASE = "minilm"
"""all-MiniLM-L6-v2 (Apache-2.0), as ``headrace.middleware.models.resolve`` knows it."""


def base_network(seed: int, dropout: float = 0.0) -> Network:
    """Return the network with the published encoder and fresh heads."""
    folder = resolve(BASE, kind="encoder")
    network = fresh(shape_in(folder), dropout, seed)
    network.bert.load_state_dict(encoder_weights(folder))
    return network


def shipped_network(folder: Path, dropout: float = 0.0) -> Network:
    """Return the network in a model folder that this package wrote, to train it further."""
    network = Network(shape_in(folder), dropout)
    network.load_state_dict(weights.as_tensors(weights.read(folder)))
    return network


def base_tokenizer() -> Any:
    """Return the published encoder's tokenizer, which reads "[SEP]" in a text as text."""
    tokenizer = load_tokenizer(resolve(BASE, kind="encoder"))
    tokenizer.encode_special_tokens = True
    return tokenizer


def shape_in(folder: Path) -> Shape:
    """Return the sizes in a model folder."""
    return Shape.of(json.loads((folder / "config.json").read_text("utf-8")))


def encoder_weights(folder: Path) -> dict[str, Any]:
    """Return the encoder's tensors in a model folder."""
    tensors, _ = tensorfile.load(folder / "model.safetensors")
    return {
        name: tensor
        for name, tensor in tensors.items()
        if not name.startswith("pooler.") and not name.endswith("position_ids")
    }


class Teacher:
    """Unit vectors of texts by the published encoder: the mean of its states, remembered."""

    def __init__(self, device: str) -> None:
        folder = resolve(BASE, kind="encoder")
        self._encoder = Encoder(shape_in(folder))
        self._encoder.load_state_dict(encoder_weights(folder))
        self._encoder.to(device).eval()
        self._tokenizer = base_tokenizer()
        self._device = device
        self._known: dict[str, Any] = {}

    def __call__(self, texts: Sequence[str]) -> Any:
        """Return a numpy matrix, a row a text."""
        import numpy

        new = sorted({text for text in texts if text not in self._known}, key=len)
        for first in range(0, len(new), 64):
            part = new[first : first + 64]
            for text, vector in zip(part, self._embed(part), strict=True):
                self._known[text] = vector
        return numpy.stack([self._known[text] for text in texts])

    def _embed(self, texts: Sequence[str]) -> Any:
        rows = [e.ids[:256] for e in self._tokenizer.encode_batch(list(texts))]
        width = max(map(len, rows))
        ids = torch.tensor([row + [0] * (width - len(row)) for row in rows])
        mask = torch.tensor([[i < len(row) for i in range(width)] for row in rows])
        ids, mask = ids.to(self._device), mask.to(self._device)
        with torch.inference_mode(), torch.autocast(self._device, dtype=torch.bfloat16):
            hidden = self._encoder(ids, torch.zeros_like(ids), mask).float()
        return functional.normalize(mean(hidden, mask), dim=-1).cpu().numpy()
