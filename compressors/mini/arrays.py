"""The network of headrace-mini in numpy: what a short text is read with.

Importing torch takes seconds, reading a page takes a tenth of one. Rows are not padded: all tokens
go through the linear layers as one matrix, and each row attends to itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

Array = Any


class Encoder:
    """BERT without its pooler (Devlin et al. 2019), from tensors with transformers' names."""

    def __init__(self, tensors: dict[str, Array], config: dict[str, Any], prefix: str = "") -> None:
        self._tensors = tensors
        self._prefix = prefix
        self._layers = int(config["num_hidden_layers"])
        self._heads = int(config["num_attention_heads"])
        self._epsilon = float(config.get("layer_norm_eps", 1e-12))

    def __call__(
        self, rows: Sequence[Sequence[int]], passages: Sequence[int | None] | None = None
    ) -> Array:
        """Return the last layer, (all tokens of all rows, width).

        A row's tokens from its place in ``passages`` on are of the second segment.
        """
        words = self._of("embeddings.word_embeddings.weight")
        places = self._of("embeddings.position_embeddings.weight")
        types = self._of("embeddings.token_type_embeddings.weight")
        parts = [
            words[list(row)]
            + places[: len(row)]
            + types[[int(passage is not None and i >= passage) for i in range(len(row))]]
            for row, passage in zip(rows, passages or [None] * len(rows), strict=True)
        ]
        hidden = self._normed(np.concatenate(parts), "embeddings.LayerNorm")
        for layer in range(self._layers):
            hidden = self._layer(hidden, f"encoder.layer.{layer}", [len(row) for row in rows])
        return hidden

    def _layer(self, hidden: Array, name: str, lengths: Sequence[int]) -> Array:
        query, key, value = (
            self._linear(hidden, f"{name}.attention.self.{part}")
            for part in ("query", "key", "value")
        )
        mixed = np.empty_like(hidden)
        at = 0
        for length in lengths:
            own = slice(at, at + length)
            mixed[own] = self._attend(query[own], key[own], value[own])
            at += length
        attended = self._linear(mixed, f"{name}.attention.output.dense")
        hidden = self._normed(hidden + attended, f"{name}.attention.output.LayerNorm")
        wide = gelu(self._linear(hidden, f"{name}.intermediate.dense"))
        narrow = self._linear(wide, f"{name}.output.dense")
        return self._normed(hidden + narrow, f"{name}.output.LayerNorm")

    def _attend(self, query: Array, key: Array, value: Array) -> Array:
        length, width = query.shape
        query, key, value = (
            part.reshape(length, self._heads, -1).transpose(1, 0, 2) for part in (query, key, value)
        )
        scores = query @ key.transpose(0, 2, 1)
        scores *= (width // self._heads) ** -0.5
        scores -= scores.max(-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(-1, keepdims=True)
        return (scores @ value).transpose(1, 0, 2).reshape(length, width)

    def _linear(self, hidden: Array, name: str) -> Array:
        return hidden @ self._of(f"{name}.weight").T + self._of(f"{name}.bias")

    def _normed(self, hidden: Array, name: str) -> Array:
        hidden = hidden - hidden.mean(-1, keepdims=True)
        hidden /= np.sqrt((hidden * hidden).mean(-1, keepdims=True) + self._epsilon)
        return hidden * self._of(f"{name}.weight") + self._of(f"{name}.bias")

    def _of(self, name: str) -> Array:
        return self._tensors[self._prefix + name]


def heads(
    tensors: dict[str, Array],
    hidden: Array,
    rows: Sequence[Sequence[int]],
    passages: Sequence[int | None],
) -> tuple[list[list[float]], list[float]]:
    """Return each row's keep probabilities and its relevance logit, 0 without a question."""
    both = hidden @ tensors["classifier.weight"].T + tensors["classifier.bias"]
    keep = 1.0 / (1.0 + np.exp(both[:, 0] - both[:, 1]))
    tokens: list[list[float]] = []
    relevance: list[float] = []
    at = 0
    for row, passage in zip(rows, passages, strict=True):
        states = hidden[at : at + len(row)]
        tokens.append(keep[at : at + len(row)].tolist())
        relevance.append(_relevance(tensors, states, passage) if passage is not None else 0.0)
        at += len(row)
    return tokens, relevance


def _relevance(tensors: dict[str, Array], states: Array, passage: int) -> float:
    first = np.tanh(tensors["relevance.dense.weight"] @ states[0] + tensors["relevance.dense.bias"])
    question, answer = states[:passage].mean(0), states[passage:].mean(0)
    sizes = max(float(np.linalg.norm(question) * np.linalg.norm(answer)), 1e-8)
    likeness = float(question @ answer) / sizes
    logit = tensors["relevance.out.weight"] @ first + tensors["relevance.out.bias"]
    return float(logit[0]) + float(tensors["relevance.scale"]) * likeness


def gelu(values: Array) -> Array:
    """Return x * Phi(x), with Abramowitz and Stegun's 7.1.26 for erf (error below 2e-7).

    >>> [round(float(gelu(np.float32(x))), 4) for x in (-1.0, 0.0, 2.0)]
    [-0.1587, 0.0, 1.9545]
    """
    size = np.abs(values) * np.float32(math.sqrt(0.5))
    inner = 1.0 / (1.0 + np.float32(0.3275911) * size)
    series = np.zeros_like(inner)
    for factor in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series = (series + np.float32(factor)) * inner
    series *= np.exp(-size * size)
    return 0.5 * values * (1.0 + np.sign(values) * (1.0 - series))
