"""The two ways to run the network: torch, and numpy where importing torch would take longer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

from . import nibbles, tensorfile, weights

Precision = Literal["float32", "bfloat16"]
EMBEDDER = "embedder.safetensors"
TIED = ("embeddings.word_embeddings.weight", "embeddings.position_embeddings.weight")
"""What training left as it was, and both encoders share."""


class Runner(Protocol):
    """Forward passes over rows of token ids, special tokens included."""

    def score(
        self, rows: Sequence[Sequence[int]], passages: Sequence[int | None]
    ) -> tuple[list[list[float]], list[float]]:
        """Return keep probabilities, token by token, and relevance logits, row by row.

        ``passages`` says where each row's passage starts, None when there is no question (relevance
        0).
        """
        ...

    def embed(self, rows: Sequence[Sequence[int]]) -> Any:
        """Return a numpy matrix with a unit vector a row."""
        ...


class ArrayRunner:
    """float32 in numpy, on the CPU."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tensors = weights.read(folder)

    def score(
        self, rows: Sequence[Sequence[int]], passages: Sequence[int | None]
    ) -> tuple[list[list[float]], list[float]]:
        """Return keep probabilities and relevance; see ``Runner``."""
        from . import arrays

        hidden = self._encoder(rows, passages)
        return arrays.heads(self._tensors, hidden, rows, passages)

    def embed(self, rows: Sequence[Sequence[int]]) -> Any:
        """Return unit vectors; see ``Runner``."""
        import numpy

        hidden = self._embedder(rows)
        ends = numpy.cumsum([len(row) for row in rows])[:-1]
        means = numpy.stack([states.mean(0) for states in numpy.split(hidden, ends)])
        return means / numpy.linalg.norm(means, axis=1, keepdims=True)

    @cached_property
    def _encoder(self) -> Any:
        from .arrays import Encoder

        return Encoder(self._tensors, _config(self._folder), "bert.")

    @cached_property
    def _embedder(self) -> Any:
        from .arrays import Encoder

        tied = {name: self._tensors[f"bert.{name}"] for name in TIED}
        return Encoder(read_embedder(self._folder) | tied, _config(self._folder))


class TorchRunner:
    """torch, on any device; ``precision`` is that of the matrix products."""

    def __init__(self, folder: Path, device: str, precision: Precision) -> None:
        self._folder = folder
        self._device = device
        self._is_short = precision == "bfloat16"
        self._network = weights.load(folder, device)

    def score(
        self, rows: Sequence[Sequence[int]], passages: Sequence[int | None]
    ) -> tuple[list[list[float]], list[float]]:
        """Return keep probabilities and relevance; see ``Runner``."""
        import torch

        ids, mask = self._padded(rows)
        places = torch.arange(ids.shape[1], device=ids.device)
        starts = [ids.shape[1] if start is None else start for start in passages]
        types = (places >= torch.tensor(starts, device=ids.device)[:, None]).to(ids.dtype)
        with torch.inference_mode(), self._precision():
            keep, relevance = self._network(ids, types * mask, mask)
            found: list[list[float]] = keep.sigmoid().cpu().tolist()
            logits: list[float] = relevance.cpu().tolist()
        tokens = [line[: len(row)] for line, row in zip(found, rows, strict=True)]
        asked = [
            0.0 if start is None else logit for start, logit in zip(passages, logits, strict=True)
        ]
        return tokens, asked

    def embed(self, rows: Sequence[Sequence[int]]) -> Any:
        """Return unit vectors; see ``Runner``."""
        import torch
        from torch.nn import functional

        from .network import mean

        ids, mask = self._padded(rows)
        with torch.inference_mode(), self._precision():
            hidden = self._embedder(ids, torch.zeros_like(ids), mask).float()
            return functional.normalize(mean(hidden, mask), dim=-1).cpu().numpy()

    @cached_property
    def _embedder(self) -> Any:
        import torch

        from .network import Encoder, Shape

        shared = self._network.bert.state_dict()
        own = weights.as_tensors(read_embedder(self._folder))
        tensors = {name: tensor.to(self._device) for name, tensor in own.items()}
        with torch.device("meta"):
            encoder = Encoder(Shape.of(_config(self._folder)))
        encoder.load_state_dict(tensors | {name: shared[name] for name in TIED}, assign=True)
        return encoder.eval()

    def _padded(self, rows: Sequence[Sequence[int]]) -> tuple[Any, Any]:
        import torch

        width = max(map(len, rows))
        ids = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows])
        lengths = torch.tensor([len(row) for row in rows])
        mask = torch.arange(width)[None, :] < lengths[:, None]
        return ids.to(self._device), mask.to(self._device)

    def _precision(self) -> Any:
        import torch

        kind = torch.device(self._device).type
        return torch.autocast(kind, dtype=torch.bfloat16, enabled=self._is_short)


def read_embedder(folder: Path) -> dict[str, Any]:
    """Return the second encoder's own tensors as numpy arrays, float32.

    Raises ModelUnavailable when the folder does not hold it.
    """
    try:
        return nibbles.unpack(tensorfile.arrays(folder / EMBEDDER))
    except (OSError, ValueError, KeyError) as error:
        raise weights.unreadable(folder, error) from error


def best_device() -> str:
    """Return torch's name for the fastest device here."""
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _config(folder: Path) -> dict[str, Any]:
    try:
        config: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise weights.unreadable(folder, error) from error
    return config
