"""How long the engine at hand will take: its roofline, corrected by what was observed."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..errors import InvalidRequest
from ..types import Response
from .fit import Fit
from .hardware import Hardware, generic_cpu, hardware, named_in
from .lookup import shape_of
from .operators import Precision
from .roofline import Roofline

if TYPE_CHECKING:
    from ...backends.base import Capabilities


@dataclass(frozen=True, slots=True)
class Prediction:
    """Seconds from a request's start to its first token, and from there to its last.

    ``num_observed`` is how many answers have corrected the roofline so far.
    """

    prefill: float
    decode: float
    num_observed: int = 0

    @property
    def seconds(self) -> float:
        """From the start to the last token."""
        return self.prefill + self.decode


@dataclass(frozen=True, slots=True)
class Observed:
    """What an engine took for one request, next to what was predicted before."""

    prompt_tokens: int
    output_tokens: int
    batch: int
    prefill: float
    decode: float
    predicted: Prediction


@dataclass(slots=True)
class StageTimes:
    """What is known of a stage in front of the engine.

    ``time`` is its seconds by the tokens it reads, ``cut`` the tokens that go by those that were
    expected to; ``num_refused`` is how often in a row it was found not to pay.
    """

    time: Fit = field(default_factory=Fit)
    cut: Fit = field(default_factory=Fit)
    num_refused: int = 0


class Predictor:
    """One engine's times.

    The roofline says how times grow with the prompt, the output and the batch; one robust line
    (``Fit``) each for prefill and decode says how far the engine is from it. Thread-safe; keep one
    an engine, for as long as the engine lives.
    """

    def __init__(self, roofline: Roofline) -> None:
        self.roofline = roofline
        self._prefill, self._decode = Fit(), Fit()
        self._stages: dict[str, StageTimes] = {}
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """The model and the device."""
        return f"{self.roofline.shape.name} on {self.roofline.device.name}"

    def predict(
        self, prompt_tokens: int, output_tokens: int, batch: int = 1, *, cached_tokens: int = 0
    ) -> Prediction:
        """Return the seconds that ``batch`` such requests will take together.

        Of each prompt, the engine knows the first ``cached_tokens`` already. Without output tokens
        it is the prefill's time alone. Raises InvalidRequest for numbers that make no sense.
        """
        if type(output_tokens) is not int or output_tokens < 0:
            raise InvalidRequest(f"output_tokens must be 0 or more, got {output_tokens!r:.40}")
        prefill, decode = self._bounds(prompt_tokens, output_tokens, batch, cached_tokens)
        return Prediction(self._prefill.at(prefill), self._decode.at(decode), len(self._prefill))

    def observe(
        self,
        prompt_tokens: int,
        output_tokens: int,
        prefill: float,
        decode: float,
        batch: int = 1,
        *,
        cached_tokens: int = 0,
    ) -> Observed:
        """Correct the lines by what an engine took, in seconds; return it with its prediction."""
        before = self.predict(prompt_tokens, output_tokens, batch, cached_tokens=cached_tokens)
        bounds = self._bounds(prompt_tokens, output_tokens, batch, cached_tokens)
        self._prefill.add(bounds[0], prefill)
        self._decode.add(bounds[1], decode)
        return Observed(prompt_tokens, output_tokens, batch, prefill, decode, before)

    def learn(self, response: Response) -> Observed | None:
        """Observe what a response's report says of its one engine call; None if it says nothing.

        Answers of several calls, and those that were tried again, are left out.
        """
        row, usage = response.report.stage("dispatch"), response.usage
        if row is None or usage.num_calls != 1 or row.details.get("retries"):
            return None
        new = usage.prompt_tokens - usage.cached_tokens
        first, waited = row.details.get("first_event_seconds"), row.details.get("queue_seconds")
        batch = row.details.get("batch_size")
        if not isinstance(first, float) or not isinstance(waited, float) or new < 1:
            return None
        return self.observe(
            usage.prompt_tokens,
            max(0, usage.completion_tokens - usage.forced_tokens),
            first - waited,
            row.seconds - first,
            batch if type(batch) is int and batch > 0 else 1,
            cached_tokens=usage.cached_tokens,
        )

    def stage(self, name: str) -> StageTimes:
        """Return what is known of a stage, the same one each time."""
        with self._lock:
            return self._stages.setdefault(name, StageTimes())

    def _bounds(self, prompt: int, output: int, batch: int, cached: int) -> tuple[float, float]:
        return (
            self.roofline.prefill(prompt, batch, cached=cached).seconds,
            self.roofline.decode_seconds(prompt, output, batch),
        )


def predictor_of(
    capabilities: Capabilities,
    *,
    device: str | Hardware | None = None,
    model: str | None = None,
    precision: Precision | None = None,
) -> Predictor | None:
    """Return the predictor of an engine, None where its hardware is not known.

    Of the engine in this process, model and device are known: the GPU that torch sees, by its
    name, else the CPU's cores. Of a server, say what it runs: ``device`` (a name in the table, or a
    Hardware) and, unless the capabilities name a tokenizer's folder, ``model``.

    Raises InvalidRequest for an unknown device and an architecture that cannot be counted, and
    ModelUnavailable when the model's config is nowhere.
    """
    is_local = capabilities.name == "transformers"
    if device is None:
        found = _this_device() if is_local else None
    else:
        found = hardware(device) if isinstance(device, str) else device
    model = model or capabilities.tokenizer
    if found is None or model is None:
        return None
    shape, is_cpu = shape_of(model), found.fp16 == found.fp32
    if precision is None:
        precision = Precision(32, 32, 32) if is_cpu else Precision(min(16, shape.bits))
    return Predictor(Roofline(shape, found, precision, fused=True))


def _this_device() -> Hardware | None:
    import torch

    if not torch.cuda.is_available():
        return generic_cpu(torch.get_num_threads())
    return named_in(torch.cuda.get_device_name())
