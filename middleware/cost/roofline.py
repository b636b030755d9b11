"""The roofline model: the time of a pass is bound by the operations or by the bytes.

Williams, Waterman and Patterson 2009: an operator reaches min(peak, intensity * bandwidth). Times
are lower bounds: no launch cost, no communication, no overlap of one operator with the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from ..errors import InvalidRequest
from .hardware import Hardware
from .operators import Operator, Pass, Precision, operators
from .shape import ModelShape

USABLE = 0.9  # of the memory; what vLLM takes by default (gpu_memory_utilization)
_SAMPLES = 9  # points at which the length of the context is looked at; between them it is linear


@dataclass(frozen=True, slots=True)
class Row:
    """An operator on a device: ``seconds`` once, ``performance`` in operations/s."""

    operator: Operator
    performance: float
    seconds: float
    bound: Literal["compute", "memory"]

    @property
    def total_seconds(self) -> float:
        """Seconds of all its runs in the pass."""
        return self.seconds * self.operator.count


@dataclass(frozen=True, slots=True)
class Stage:
    """One pass on a device."""

    step: Pass
    rows: tuple[Row, ...]

    @property
    def seconds(self) -> float:
        """Seconds of the whole pass."""
        return sum(row.total_seconds for row in self.rows)

    @property
    def ops(self) -> float:
        """Operations of the whole pass."""
        return sum(row.operator.ops * row.operator.count for row in self.rows)

    @property
    def memory(self) -> float:
        """Bytes moved in the whole pass."""
        return sum(row.operator.memory * row.operator.count for row in self.rows)

    @property
    def layer_seconds(self) -> float:
        """Seconds of one layer, averaged: all but the embedding, the last norm and the head."""
        layers = max(row.operator.count for row in self.rows if row.operator.name == "o_proj")
        once = sum(r.seconds for r in self.rows if r.operator.name in ("embed", "norm", "lm_head"))
        return (self.seconds - once) / layers

    @property
    def activations(self) -> float:
        """Bytes of what one layer stores, which is what has to be held beside weights and KV."""
        once = ("embed", "lm_head")
        layers = max(row.operator.count for row in self.rows if row.operator.name == "o_proj")
        each = (r.operator for r in self.rows if r.operator.name not in once)
        return sum(one.store_act * (one.count // layers or one.count / layers) for one in each)


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes that have to be held."""

    weights: float
    kv: float
    activations: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.weights + self.kv + self.activations


@dataclass(frozen=True)
class Roofline:
    """A model on a device.

    >>> from headrace.middleware.cost import Roofline, hardware, shape_of
    >>> llama = Roofline(shape_of("llama-2-7b"), hardware("A6000"))
    >>> f"{llama.decode(2048).seconds * 1e3:.1f} ms"
    '18.6 ms'
    """

    shape: ModelShape
    device: Hardware
    precision: Precision = field(default_factory=Precision)
    fused: bool = False

    @cached_property
    def peak(self) -> float:
        """Operations/s that the operands' width allows."""
        return self.device.peak(self.precision.operands)

    def stage(self, step: Pass) -> Stage:
        """Return a pass, operator by operator."""
        found = operators(
            self.shape, step, self.precision, fused=self.fused, onchip=self.device.onchip
        )
        return Stage(step, tuple(self._row(one) for one in found))

    def prefill(self, prompt: int, batch: int = 1, *, cached: int = 0) -> Stage:
        """Return the pass that reads ``batch`` prompts, whose first ``cached`` tokens are known."""
        return self.stage(Pass(batch, prompt - cached, prompt))

    def decode(self, context: int, batch: int = 1) -> Stage:
        """Return the step that writes one token a row, each looking at ``context`` tokens."""
        return self.stage(Pass(batch, 1, context))

    def decode_seconds(self, prompt: int, output: int, batch: int = 1) -> float:
        """Return the seconds of all steps but the first token's, which the prefill writes."""
        if type(output) is not int or output < 0:
            raise InvalidRequest(f"output tokens must be 0 or more, got {output!r:.40}")
        steps = output - 1
        if steps < 1:
            return 0.0
        num = min(_SAMPLES, steps)
        at = [prompt + 1 + round(i * (steps - 1) / max(1, num - 1)) for i in range(num)]
        each = [self.decode(context, batch).seconds for context in at]
        if num == steps:
            return sum(each)
        return steps * _mean(at, each)

    def generate_seconds(self, prompt: int, output: int, batch: int = 1) -> float:
        """Return the seconds from ``batch`` prompts to the last of ``output`` tokens each."""
        return self.prefill(prompt, batch).seconds + self.decode_seconds(prompt, output, batch)

    def memory(self, stage: Stage) -> Memory:
        """Return what has to be held during a pass."""
        step = stage.step
        return Memory(
            self.weight_bytes, step.batch * self.kv_bytes(step.context), stage.activations
        )

    @property
    def weight_bytes(self) -> float:
        """Bytes of all weights."""
        return self.shape.num_weights * self.precision.weights / 8

    def kv_bytes(self, context: int) -> float:
        """Bytes of the KV cache of one row of so many tokens."""
        return self.shape.kv_elements(context) * self.precision.kv / 8

    def largest_batch(self, prompt: int, output: int) -> int:
        """Return how many rows of so many tokens fit into the device; 0: not even one.

        Beside the weights there is the KV cache of every row at its longest, the activations of
        a decode step of all of them, and those of the prefill of one.
        """
        context = prompt + output
        free = USABLE * self.device.memory - self.weight_bytes
        free -= self.prefill(prompt).activations
        row = self.kv_bytes(context) + self.decode(context).activations
        return max(0, int(free // row))

    def _row(self, one: Operator) -> Row:
        is_compute = one.intensity >= self.peak / self.device.bandwidth
        if is_compute:
            return Row(one, self.peak, one.ops / self.peak, "compute")
        performance = one.intensity * self.device.bandwidth
        return Row(one, performance, one.memory / self.device.bandwidth, "memory")


def _mean(at: Sequence[int], values: Sequence[float]) -> float:
    """Return the mean of a function that is linear between the points."""
    parts = zip(at, at[1:], values, values[1:], strict=False)
    return sum((b - a) * (x + y) / 2 for a, b, x, y in parts) / (at[-1] - at[0])
