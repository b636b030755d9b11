"""Weights on disk: one byte a number, one scale a row.

A matrix is kept as int8 with a float16 scale for each row, so that a row's largest magnitude
becomes 127; vectors and small matrices are kept in float16.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

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
    """Return float32 numpy arrays under their own names, of arrays as ``pack`` stores them."""
    import numpy

    return {
        name: array * packed[name + SCALE].astype(numpy.float32)
        if name + SCALE in packed
        else array.astype(numpy.float32)
        for name, array in packed.items()
        if not name.endswith(SCALE)
    }


def read(folder: Path) -> dict[str, Any]:
    """Return the network's tensors as numpy arrays, float32.

    Raises ModelUnavailable when the folder does not hold them.
    """
    from . import tensorfile

    try:
        return unpack(tensorfile.arrays(folder / FILE))
    except (OSError, ValueError, KeyError) as error:
        raise unreadable(folder, error) from error


def load(folder: Path, device: str) -> Any:
    """Return the network in torch, in eval mode.

    Raises ModelUnavailable when the folder does not hold it.
    """
    import torch

    from .network import Network, Shape

    tensors = as_tensors(read(folder))
    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
        with torch.device("meta"):
            network = Network(Shape.of(config))
        network.load_state_dict(tensors, assign=True)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise unreadable(folder, error) from error
    return network.to(device).eval()


def as_tensors(arrays: dict[str, Any]) -> dict[str, Any]:
    """Return the arrays as torch's tensors, without a copy."""
    import torch

    convert = cast("Any", torch).from_numpy
    return {name: convert(array) for name, array in arrays.items()}


def unreadable(folder: Path, error: Exception) -> ModelUnavailable:
    """Return the error that says which folder could not be read, and why."""
    first = (str(error).strip() or type(error).__name__).splitlines()[0]
    return ModelUnavailable(f"cannot load headrace-mini from {folder}: {first:.200}")
