"""One forward pass, operator by operator: operations and bytes.

The counting rules are those of the survey "LLM Inference Unveiled" (Yuan et al. 2024, section 2)
and of its LLM-Viewer, but for what docs/roofline.md lists. Attention is counted whole: the half
that causal masking throws away is computed by most kernels, and by all unfused ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import InvalidRequest
from .shape import ModelShape


@dataclass(frozen=True, slots=True)
class Precision:
    """Bits of a weight, of an activation and of an element of the KV cache.

    Raises InvalidRequest for anything but a whole number from 1 to 64.
    """

    weights: int = 16
    activations: int = 16
    kv: int = 16

    def __post_init__(self) -> None:
        for name in ("weights", "activations", "kv"):
            if type(value := getattr(self, name)) is not int or not 1 <= value <= 64:
                raise InvalidRequest(f"bits of {name} must be from 1 to 64, got {value!r:.40}")

    @property
    def operands(self) -> int:
        """Bits of the widest operand, which decides which units compute."""
        return max(self.weights, self.activations, self.kv)


@dataclass(frozen=True, slots=True)
class Pass:
    """``batch`` rows that each read ``tokens`` new tokens and then hold ``context`` altogether.

    Prefill has as many of both; a decode step has one new token. A prefix that was cached is the
    difference.
    """

    batch: int
    tokens: int
    context: int

    def __post_init__(self) -> None:
        for name in ("batch", "tokens", "context"):
            if type(value := getattr(self, name)) is not int or value < 1:
                raise InvalidRequest(f"{name} must be a whole number from 1 on, got {value!r:.40}")
        if self.tokens > self.context:
            raise InvalidRequest(
                f"{self.tokens} new tokens do not fit into a context of {self.context}"
            )


@dataclass(frozen=True, slots=True)
class Operator:
    """Operations and bytes of one operator, once; it runs ``count`` times in a pass."""

    name: str
    count: int
    ops: float
    load_weight: float = 0.0
    load_act: float = 0.0
    store_act: float = 0.0
    load_kv: float = 0.0
    store_kv: float = 0.0

    @property
    def memory(self) -> float:
        """Bytes read and written."""
        return self.load_weight + self.load_act + self.store_act + self.load_kv + self.store_kv

    @property
    def intensity(self) -> float:
        """Operations a byte."""
        return self.ops / self.memory


def operators(
    shape: ModelShape, step: Pass, precision: Precision, *, fused: bool, onchip: float
) -> list[Operator]:
    """Return the operators of a pass, in the order in which they run.

    ``fused`` attention (Dao et al. 2022) writes no scores to memory and reads the KV cache once for
    every block of queries that fits ``onchip`` bytes.
    """
    w, a = precision.weights / 8, precision.activations / 8
    rows, hidden = step.batch * step.tokens, shape.hidden_size
    layers, (num_sliding, window) = shape.num_layers, shape.sliding
    elements = hidden * rows

    def per_token(name: str, count: int, ops: int, inputs: int, width: int = hidden) -> Operator:
        size = width * rows
        return Operator(name, count, ops * size, load_act=inputs * size * a, store_act=size * a)

    found = [Operator("embed", 1, 0, load_weight=elements * w, store_act=elements * a)]
    found.append(per_token("norm", shape.num_norms * layers + 1, 7, 1))
    found += [
        _linear("q_proj", layers, hidden, shape.q_size, rows, precision),
        _linear("k_proj", layers, hidden, shape.kv_size, rows, precision, is_kv=True),
        _linear("v_proj", layers, hidden, shape.kv_size, rows, precision, is_kv=True),
    ]
    if num_sliding < layers:
        found += _attention(
            "", layers - num_sliding, shape, step, step.context, precision, fused, onchip
        )
    if num_sliding:
        seen = min(step.context, window)
        found += _attention(" (window)", num_sliding, shape, step, seen, precision, fused, onchip)
    found += [
        _linear("o_proj", layers, shape.q_size, hidden, rows, precision),
        per_token("add", 2 * layers, 1, 1),
        *_mlp(shape, rows, precision),
        _head(shape, step.batch, precision),
    ]
    return found


def _linear(
    name: str,
    count: int,
    width_in: int,
    width_out: int,
    rows: float,
    precision: Precision,
    *,
    is_kv: bool = False,
    copies: float = 1.0,
) -> Operator:
    """``rows`` vectors through ``copies`` matrices, each through one of them."""
    a, out = precision.activations / 8, width_out * rows
    return Operator(
        name,
        count,
        2 * width_in * width_out * rows,
        load_weight=width_in * width_out * precision.weights / 8 * copies,
        load_act=width_in * rows * a,
        store_act=0.0 if is_kv else out * a,
        store_kv=out * precision.kv / 8 if is_kv else 0.0,
    )


def _attention(
    suffix: str,
    count: int,
    shape: ModelShape,
    step: Pass,
    seen: int,
    precision: Precision,
    fused: bool,
    onchip: float,
) -> Iterator[Operator]:
    a, kv = precision.activations / 8, precision.kv / 8
    queries = step.batch * step.tokens * shape.q_size
    scores = step.batch * step.tokens * seen * shape.num_heads
    matmul_ops, softmax_ops = 2 * queries * seen, 5 * scores
    load_kv = step.batch * seen * shape.kv_size * kv
    if fused:
        block = min(math.ceil(onchip / (kv * shape.head_dim)), shape.head_dim)
        yield Operator(
            "fused_attention" + suffix,
            count,
            2 * matmul_ops + softmax_ops,
            load_act=queries * a,
            store_act=queries * a,
            load_kv=2 * load_kv * math.ceil(step.tokens / block),
        )
        return
    yield Operator(
        "qk_matmul" + suffix,
        count,
        matmul_ops,
        load_act=queries * a,
        store_act=scores * a,
        load_kv=load_kv,
    )
    yield Operator(
        "softmax" + suffix, count, softmax_ops, load_act=scores * a, store_act=scores * a
    )
    yield Operator(
        "sv_matmul" + suffix,
        count,
        matmul_ops,
        load_act=scores * a,
        store_act=queries * a,
        load_kv=load_kv,
    )


def _mlp(shape: ModelShape, rows: int, precision: Precision) -> Iterator[Operator]:
    """Dense, or a mixture: then ``rows`` tokens choose experts, which we take to be at random."""
    layers, hidden, inner = shape.num_layers, shape.hidden_size, shape.intermediate_size
    copies, visits = 1.0, float(rows)
    if shape.num_experts:
        chosen = shape.experts_per_token / shape.num_experts
        copies = shape.num_experts * (1 - (1 - chosen) ** rows)
        visits = float(rows * shape.experts_per_token)
        yield _linear("router", layers, hidden, shape.num_experts, rows, precision)
    a, size = precision.activations / 8, inner * visits
    if shape.is_gated:
        yield _linear("gate_proj", layers, hidden, inner, visits, precision, copies=copies)
    yield _linear("up_proj", layers, hidden, inner, visits, precision, copies=copies)
    inputs = 2 if shape.is_gated else 1
    yield Operator("mlp_act", layers, 2 * size, load_act=inputs * size * a, store_act=size * a)
    yield _linear("down_proj", layers, inner, hidden, visits, precision, copies=copies)


def _head(shape: ModelShape, batch: int, precision: Precision) -> Operator:
    """One position a row: engines compute logits only where they sample."""
    return _linear("lm_head", 1, shape.hidden_size, shape.vocab_size, batch, precision)
