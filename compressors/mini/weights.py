"""Weights on disk: one byte a number, one scale a row.

A matrix is kept as int8 with a float16 scale for each row, so that a row's largest magnitude
becomes 127; vectors and small matrices are kept in float16.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ...middleware.errors import ModelUnavailable

DATA = Path(__file__).parent / "data"
"""The folder with the weights that come with the package."""

FILE = "model.safetensors"
SCALE = ".row_scale"
_SMALLEST = 4096


def pack(tensors: dict[str, Any]) -> dict[str, Any]:
    """Return the tensors as they are stored: matrices quantised row by row."""
    import torch

    packed: dict[str, Any] = {}
    for name, tensor in tensors.items():
        whole = tensor.detach().float().cpu()
        if whole.ndim != 2 or whole.numel() < _SMALLEST:
            packed[name] = whole.half().contiguous()
            continue
        scale = (whole.abs().amax(1, keepdim=True) / 127.0).clamp(min=1e-7).half()
        packed[name] = (whole / scale.float()).round().clamp(-127, 127).to(torch.int8)
        packed[name + SCALE] = scale
    return packed


def unpack(packed: dict[str, Any]) -> dict[str, Any]:
    """Return float32 tensors under their own names."""
    return {
        name: tensor.float() * packed[name + SCALE].float()
        if name + SCALE in packed
        else tensor.float()
        for name, tensor in packed.items()
        if not name.endswith(SCALE)
    }


def load(folder: Path, device: str) -> Any:
    """Return the network in eval mode.

    Raises ModelUnavailable when the folder does not hold it.
    """
    import torch
    from safetensors import SafetensorError

    from . import tensorfile
    from .network import Network, Shape

    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
        tensors = unpack(tensorfile.load(folder / FILE)[0])
        with torch.device("meta"):
            network = Network(Shape.of(config))
        network.load_state_dict(tensors, assign=True)
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ModelUnavailable(f"cannot load headrace-mini from {folder}: {first:.200}") from error
    return network.to(device).eval()
