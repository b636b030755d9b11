"""A decoder's shape, and its exact number of weights."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModelShape:
    """What decides a decoder's cost.

    Sizes are in elements. ``num_experts`` is 0 for a dense model, else ``intermediate_size`` is one
    expert's and a token visits ``experts_per_token``. The first figure of ``sliding`` is how many
    layers see no further back than the second one, in tokens. ``num_norms`` are the hidden-size
    norms of a layer, ``num_qk_norm`` the elements of its query and key norms together,
    ``num_positions`` the learned positions. ``bits`` is how wide the config says a weight is.
    """

    name: str
    hidden_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    intermediate_size: int
    vocab_size: int
    is_tied: bool = False
    is_gated: bool = True
    has_qkv_bias: bool = False
    has_o_bias: bool = False
    has_mlp_bias: bool = False
    num_norms: int = 2
    has_norm_bias: bool = False
    num_qk_norm: int = 0
    num_positions: int = 0
    num_experts: int = 0
    experts_per_token: int = 0
    sliding: tuple[int, int] = (0, 0)
    bits: int = 16

    @property
    def q_size(self) -> int:
        """Width of all query heads together."""
        return self.num_heads * self.head_dim

    @property
    def kv_size(self) -> int:
        """Width of all key heads together, which is that of all value heads."""
        return self.num_kv_heads * self.head_dim

    @property
    def num_mlp_weights(self) -> int:
        """Weights of one MLP (of one expert), biases included."""
        up = 2 if self.is_gated else 1
        weights = (up + 1) * self.hidden_size * self.intermediate_size
        return weights + self.has_mlp_bias * (up * self.intermediate_size + self.hidden_size)

    @property
    def num_layer_weights(self) -> int:
        """Weights of one layer."""
        attention = self.hidden_size * (2 * self.q_size + 2 * self.kv_size)
        biases = self.has_qkv_bias * (self.q_size + 2 * self.kv_size)
        biases += self.has_o_bias * self.hidden_size
        norms = self.num_norms * self.hidden_size * (1 + self.has_norm_bias) + self.num_qk_norm
        experts = max(1, self.num_experts)
        router = self.num_experts * self.hidden_size
        return attention + biases + norms + experts * self.num_mlp_weights + router

    @property
    def num_weights(self) -> int:
        """All weights: layers, embeddings, positions, the last norm and the head."""
        embeddings = (1 if self.is_tied else 2) * self.vocab_size * self.hidden_size
        last = self.hidden_size * (1 + self.has_norm_bias)
        positions = self.num_positions * self.hidden_size
        return self.num_layers * self.num_layer_weights + embeddings + positions + last

    def kv_elements(self, context: int) -> int:
        """Elements of the KV cache of one row of so many tokens, all layers."""
        num_sliding, window = self.sliding
        seen = (self.num_layers - num_sliding) * context + num_sliding * min(context, window)
        return 2 * self.kv_size * seen
