"""Prompts that begin alike are read once: keys and values of what was read, by its tokens.

The idea is RadixAttention's (Zheng et al. 2024, SGLang, section 3), without the tree: the few
entries that fit are compared one by one, which takes microseconds beside a forward pass.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

SHORTEST = 32  # tokens; less is read again sooner than it is copied

Layers = Sequence[tuple["torch.Tensor", "torch.Tensor"]]
"""Keys and values a layer, each [heads, tokens, size]."""


@dataclass(frozen=True, eq=False)
class Prefix:
    """The first ``length`` tokens of something read before."""

    layers: Layers
    length: int


class PrefixStore:
    """What was read most recently, up to ``max_bytes`` of keys and values.

    Belongs to one model and to the thread that runs it.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._entries: OrderedDict[tuple[int, ...], Layers] = OrderedDict()
        self._num_bytes = 0

    def find(self, prompt: Sequence[int]) -> Prefix | None:
        """Return the longest known beginning of a prompt, one token of which is left to read."""
        best, length = None, SHORTEST - 1
        for tokens in self._entries:
            shared = min(num_shared(tokens, prompt), len(prompt) - 1)
            if shared > length:
                best, length = tokens, shared
        if best is None:
            return None
        self._entries.move_to_end(best)
        return Prefix(self._entries[best], length)

    def add(self, prompt: Sequence[int], layers: Layers) -> None:
        """Remember what was read; what it begins with, and what is oldest, is forgotten."""
        size = _num_bytes(layers)
        if len(prompt) < SHORTEST or size > self._max_bytes:
            return
        tokens = tuple(prompt)
        for known in [known for known in self._entries if tokens[: len(known)] == known]:
            self._forget(known)
        while self._entries and self._num_bytes + size > self._max_bytes:
            self._forget(next(iter(self._entries)))
        self._entries[tokens] = layers
        self._num_bytes += size

    def knows(self, prompt: Sequence[int]) -> bool:
        """Whether there would be next to nothing new in this prompt."""
        found = self.find(prompt)
        return found is not None and found.length >= len(prompt) - SHORTEST

    def _forget(self, tokens: tuple[int, ...]) -> None:
        self._num_bytes -= _num_bytes(self._entries.pop(tokens))


def num_shared(a: Sequence[int], b: Sequence[int]) -> int:
    """Return how many tokens two texts have in common at their beginning.

    >>> num_shared([1, 2, 3], [1, 2, 4, 5])
    2
    """
    shortest = min(len(a), len(b))
    if tuple(a[:shortest]) == tuple(b[:shortest]):
        return shortest
    return next(at for at in range(shortest) if a[at] != b[at])


def _num_bytes(layers: Layers) -> int:
    return sum(part.numel() * part.element_size() for layer in layers for part in layer)
