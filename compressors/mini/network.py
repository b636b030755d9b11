"""The network of headrace-mini: a BERT encoder with a keep head and a relevance head.

Parameters bear the names that transformers gives a ``BertForTokenClassification``, so the same
tensors load there. The encoder is written out here because it loads in a fraction of the time
that transformers takes to import, and needs nothing but torch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a BERT encoder; the defaults are all-MiniLM-L6-v2's."""

    vocab: int = 30522
    width: int = 384
    layers: int = 6
    heads: int = 12
    inner: int = 1536
    positions: int = 512
    epsilon: float = 1e-12

    @classmethod
    def of(cls, config: dict[str, Any]) -> Shape:
        """Return the sizes that a transformers ``config.json`` names."""
        return cls(
            vocab=int(config["vocab_size"]),
            width=int(config["hidden_size"]),
            layers=int(config["num_hidden_layers"]),
            heads=int(config["num_attention_heads"]),
            inner=int(config["intermediate_size"]),
            positions=int(config["max_position_embeddings"]),
            epsilon=float(config.get("layer_norm_eps", 1e-12)),
        )


class _Embeddings(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(shape.vocab, shape.width, padding_idx=0)
        self.position_embeddings = nn.Embedding(shape.positions, shape.width)
        self.token_type_embeddings = nn.Embedding(2, shape.width)
        self.LayerNorm = nn.LayerNorm(shape.width, eps=shape.epsilon)

    def forward(self, ids: Tensor, types: Tensor) -> Tensor:
        summed = self.word_embeddings(ids) + self.token_type_embeddings(types)
        summed = summed + self.position_embeddings.weight[: ids.shape[1]]
        normed: Tensor = self.LayerNorm(summed)
        return normed


class _Projections(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)


class _Output(nn.Module):
    """A linear map, added to what came in, and normalised."""

    def __init__(self, inner: int, shape: Shape, dropout: float) -> None:
        super().__init__()
        self.dense = nn.Linear(inner, shape.width)
        self.LayerNorm = nn.LayerNorm(shape.width, eps=shape.epsilon)
        self._dropout = dropout

    def forward(self, hidden: Tensor, residual: Tensor) -> Tensor:
        mapped = functional.dropout(self.dense(hidden), self._dropout, self.training)
        normed: Tensor = self.LayerNorm(mapped + residual)
        return normed


def _attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, training: bool) -> Tensor:
    if not training:
        return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    # The fused kernel's backward pass takes several times as long on a CPU.
    scores = (query * query.shape[-1] ** -0.5) @ key.transpose(-1, -2)
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    mixed: Tensor = scores.softmax(-1, dtype=scores.dtype) @ value
    return mixed


class _Attention(nn.Module):
    def __init__(self, shape: Shape, dropout: float) -> None:
        super().__init__()
        self.self = _Projections(shape.width)
        self.output = _Output(shape.width, shape, dropout)
        self._heads = shape.heads

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        rows, length, width = hidden.shape
        query, key, value = (
            part(hidden).view(rows, length, self._heads, -1).transpose(1, 2)
            for part in (self.self.query, self.self.key, self.self.value)
        )
        mixed = _attend(query, key, value, mask, self.training)
        merged: Tensor = self.output(mixed.transpose(1, 2).reshape(rows, length, width), hidden)
        return merged


class _Intermediate(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.dense = nn.Linear(shape.width, shape.inner)


class _Layer(nn.Module):
    def __init__(self, shape: Shape, dropout: float) -> None:
        super().__init__()
        self.attention = _Attention(shape, dropout)
        self.intermediate = _Intermediate(shape)
        self.output = _Output(shape.inner, shape, dropout)

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        hidden = self.attention(hidden, mask)
        wide = functional.gelu(self.intermediate.dense(hidden))
        out: Tensor = self.output(wide, hidden)
        return out


class _Stack(nn.Module):
    def __init__(self, shape: Shape, dropout: float) -> None:
        super().__init__()
        self.layer = nn.ModuleList(_Layer(shape, dropout) for _ in range(shape.layers))


class Encoder(nn.Module):
    """BERT without its pooler (Devlin et al. 2019)."""

    def __init__(self, shape: Shape, dropout: float = 0.0) -> None:
        super().__init__()
        self.embeddings = _Embeddings(shape)
        self.encoder = _Stack(shape, dropout)

    def forward(self, ids: Tensor, types: Tensor, mask: Tensor) -> Tensor:
        """Return the last layer, (rows, length, width), for bool ``mask`` (rows, length)."""
        hidden: Tensor = self.embeddings(ids, types)
        wide = mask[:, None, None, :]
        for layer in self.encoder.layer:
            hidden = layer(hidden, wide)
        return hidden


class _Relevance(nn.Module):
    """Relevance from the first token's state and from how alike the two segments' means are."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)
        self.scale = nn.Parameter(torch.tensor(5.0))

    def forward(self, hidden: Tensor, types: Tensor, mask: Tensor) -> Tensor:
        first = torch.tanh(self.dense(hidden[:, 0]))
        passage = mean(hidden, mask & (types == 1))
        question = mean(hidden, mask & (types == 0))
        likeness = functional.cosine_similarity(question, passage, dim=-1)
        logits: Tensor = self.out(first).squeeze(-1) + self.scale * likeness
        return logits


class Network(nn.Module):
    """Encoder, keep head (label 1 means keep) and relevance head."""

    def __init__(self, shape: Shape, dropout: float = 0.0) -> None:
        super().__init__()
        self.bert = Encoder(shape, dropout)
        self.classifier = nn.Linear(shape.width, 2)
        self.relevance = _Relevance(shape.width)

    def forward(self, ids: Tensor, types: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return keep logits (rows, length) and relevance logits (rows).

        A keep logit is the difference of the two labels' logits: its sigmoid is their softmax.
        The relevance of a row without a question means nothing.
        """
        hidden = self.bert(ids, types, mask).float()
        with torch.autocast(hidden.device.type, enabled=False):
            both = self.classifier(hidden)
            relevance: Tensor = self.relevance(hidden, types, mask)
        return both[..., 1] - both[..., 0], relevance


def mean(hidden: Tensor, mask: Tensor) -> Tensor:
    """Return the mean of the states that the mask selects, (rows, width)."""
    weight = mask.unsqueeze(-1).to(hidden.dtype)
    return (hidden * weight).sum(1) / weight.sum(1).clamp(min=1.0)


def fresh(shape: Shape, dropout: float, seed: int) -> Network:
    """Return a network whose heads are new and whose encoder waits for its weights."""
    generator = torch.Generator().manual_seed(seed)
    network = Network(shape, dropout)
    for head in (network.classifier, network.relevance.dense, network.relevance.out):
        bound = 1.0 / math.sqrt(shape.width)
        with torch.no_grad():
            head.weight.uniform_(-bound, bound, generator=generator)
            head.bias.zero_()
    return network
