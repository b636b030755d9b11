"""Masks of allowed tokens: a bit each, lowest bit first."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray


def forced_token(mask: bytes) -> int | None:
    """Return the only token that a mask allows, None when it allows several.

    >>> forced_token(bytes([0, 4])), forced_token(bytes([3]))
    (10, None)
    """
    bits = int.from_bytes(mask, "little")
    return bits.bit_length() - 1 if bits.bit_count() == 1 else None


def unpack(mask: bytes, width: int) -> NDArray[np.bool_]:
    """Return the first ``width`` bits of a mask; what the mask does not cover is not allowed."""
    import numpy as np

    allowed = np.zeros(width, dtype=np.bool_)
    bits = np.unpackbits(np.frombuffer(mask, dtype=np.uint8), bitorder="little")[:width]
    allowed[: bits.size] = bits
    return allowed


def apply_mask(mask: bytes, logits: torch.Tensor) -> torch.Tensor:
    """Return the logits of one row with every forbidden token at minus infinity.

    ``logits``: [vocabulary], any float type, any device; never changed. What the mask does not
    cover is forbidden. Where few tokens are allowed only those are copied.
    """
    import numpy as np
    import torch

    width = logits.shape[-1]
    packed = np.frombuffer(mask, dtype=np.uint8)[: (width + 7) // 8]
    out = torch.full_like(logits, float("-inf"))
    filled = np.flatnonzero(packed)
    if filled.size * 8 < width // 8:
        bits = np.unpackbits(packed[filled], bitorder="little").reshape(-1, 8)
        row, bit = np.nonzero(bits)
        ids = filled[row] * 8 + bit
        index = torch.from_numpy(ids[ids < width]).to(logits.device)
        return out.index_copy_(0, index, logits[index])
    allowed = torch.from_numpy(_bools(packed, width)).to(logits.device)
    return torch.where(allowed, logits, out)


def _bools(packed: NDArray[np.uint8], width: int) -> NDArray[np.bool_]:
    import numpy as np

    bits = np.unpackbits(packed, bitorder="little")
    if bits.size < width:
        bits = np.concatenate([bits, np.zeros(width - bits.size, dtype=np.uint8)])
    return bits[:width].view(np.bool_)


