"""Matrices in four bits a number: half the size of int8, for the second encoder.

Rows are cut into groups of 32 numbers, each with a float16 scale; the scale is the one of a few
that loses least, not simply the largest magnitude's.
"""

from __future__ import annotations

from typing import Any

GROUP = 32
NIBBLES, SCALE = ".nibbles", ".group_scale"


def pack(tensors: dict[str, Any]) -> dict[str, Any]:
    """Return the tensors as they are stored: matrices in four bits, the rest in float16."""
    packed: dict[str, Any] = {}
    for name, tensor in tensors.items():
        whole = tensor.detach().float().cpu()
        if whole.ndim == 2 and whole.shape[1] % (2 * GROUP) == 0 and whole.shape[0] > 2:
            packed[name + NIBBLES], packed[name + SCALE] = _quantised(whole)
        else:
            packed[name] = whole.half().contiguous()
    return packed


def unpack(packed: dict[str, Any]) -> dict[str, Any]:
    """Return float32 numpy arrays under their own names, of arrays as ``pack`` stores them."""
    import numpy

    found: dict[str, Any] = {}
    for name, array in packed.items():
        if name.endswith(NIBBLES):
            both = numpy.stack([array & 15, array >> 4], -1).astype(numpy.float32) - 8.0
            scale = packed[name.removesuffix(NIBBLES) + SCALE].astype(numpy.float32)
            groups = both.reshape(array.shape[0], -1, GROUP) * scale[..., None]
            found[name.removesuffix(NIBBLES)] = groups.reshape(array.shape[0], -1)
        elif not name.endswith(SCALE):
            found[name] = array.astype(numpy.float32)
    return found


def _quantised(whole: Any) -> tuple[Any, Any]:
    import torch

    groups = whole.reshape(whole.shape[0], -1, GROUP)
    largest = groups.abs().amax(-1, keepdim=True).clamp(min=1e-6)
    best, least = largest / 7.0, torch.full_like(largest, float("inf"))
    for share in (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7):
        scale = (largest * share / 7.0).half().float().clamp(min=1e-7)
        lost = ((groups / scale).round().clamp(-8, 7) * scale - groups).square()
        lost = lost.sum(-1, keepdim=True)
        best = torch.where(lost < least, scale, best)
        least = torch.minimum(lost, least)
    scale = best.half()
    numbers = ((groups / scale.float()).round().clamp(-8, 7) + 8).to(torch.uint8)
    flat = numbers.reshape(whole.shape[0], -1, 2)
    return (flat[..., 0] | (flat[..., 1] << 4)).contiguous(), scale.squeeze(-1).contiguous()
