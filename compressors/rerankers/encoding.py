"""What the rerankers of sentence-transformers share: windows of texts, and common passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, Generic, TypeVar

from ..gathering import Gatherer

Text = TypeVar("Text", str, tuple[str, str])
_OVERLAP = 32


class Passes(Generic[Text]):
    """Runs an encoder for all threads, ``batch_size`` texts at a time, those of like length."""

    def __init__(self, run: Callable[[list[Text]], Any], batch_size: int) -> None:
        self._batch_size = batch_size
        self.gather: Gatherer[Text, Any] = Gatherer(run, width=_length, most_rows=batch_size)

    def __call__(self, texts: Sequence[Text]) -> list[Any]:
        """Return a result for each text. The longest go first, as the library does it."""
        order = sorted(range(len(texts)), key=lambda i: -_length(texts[i]))
        found: dict[int, Any] = {}
        for at in range(0, len(order), self._batch_size):
            some = order[at : at + self._batch_size]
            found.update(zip(some, self.gather([texts[i] for i in some]), strict=True))
        return [found[i] for i in range(len(texts))]


class Offsets:
    """Says where the tokens of a text are: a copy of a fast tokenizer, safe for threads."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = deepcopy(tokenizer.backend_tokenizer)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def __call__(self, text: str) -> list[tuple[int, int]]:
        """Return the characters of each token, special ones left out."""
        offsets: list[tuple[int, int]] = self._tokenizer.encode(
            text, add_special_tokens=False
        ).offsets
        return offsets

    def windows(self, text: str, room: int) -> list[str]:
        """Return windows of at most ``room`` tokens that cover a text and overlap."""
        offsets = self(text)
        if len(offsets) <= room:
            return [text]
        starts = range(0, len(offsets) - _OVERLAP, max(room - _OVERLAP, 1))
        ends = [min(start + room, len(offsets)) - 1 for start in starts]
        return [
            text[offsets[start][0] : offsets[end][1]]
            for start, end in zip(starts, ends, strict=True)
        ]


def is_exact(encoder: Any) -> bool:
    """Whether a text's result is, but for rounding in float32, the same in any company."""
    import torch

    return all(parameter.dtype == torch.float32 for parameter in encoder.parameters())


def _length(text: str | tuple[str, str]) -> int:
    return len(text) if isinstance(text, str) else len(text[0]) + len(text[1])
