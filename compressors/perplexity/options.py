"""What every reader of this package can be told."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import cached_property

from ...middleware.errors import InvalidRequest
from ...middleware.models import resolve
from .encoded import REDUCERS, Reduce
from .model import DTYPES, CausalModel, load
from .surprise import Pace


@dataclass(frozen=True, kw_only=True)
class Source:
    """A causal language model, loaded on first use, one copy a process.

    ``model`` is a name or folder for ``headrace.middleware.models.resolve``; ``device`` torch's
    name, None for CUDA, else MPS, else CPU; ``dtype`` "float32", "bfloat16" or "float16", None for
    bfloat16 on CUDA, else float32. At most ``window`` tokens are remembered. Texts of like length
    go together, ``batch_tokens`` padded tokens at a time.
    """

    model: str = field(default="smollm2", kw_only=False)
    device: str | None = None
    dtype: str | None = None
    window: int = 1024
    batch_tokens: int = 1024
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.dtype is not None and self.dtype not in DTYPES:
            raise InvalidRequest(f"dtype must be one of {', '.join(DTYPES)}, got {self.dtype!r}")
        _at_least("window", self.window, 8)
        _at_least("batch_tokens", self.batch_tokens, 1)
        resolve(self.model, kind="decoder")  # a missing model is said here, not at the first text

    def _loaded(self) -> CausalModel:
        with self._lock:
            return self._model

    @cached_property
    def _model(self) -> CausalModel:
        return load(self.model, self.device, self.dtype)

    def _room(self, model: CausalModel) -> int:
        """Return how many tokens are remembered: half of what the model sees, at most."""
        return min(self.window, model.num_positions // 2)


@dataclass(frozen=True, kw_only=True)
class Reader(Source):
    """A model that scores units, segment by segment; ``Perplexity`` says what the options do."""

    rate: float = 0.5
    segment: int = 200
    reduce: Reduce = "sum"

    def __post_init__(self) -> None:
        super().__post_init__()
        _at_least("segment", self.segment, 2)
        if not 0 < self.rate <= 1:
            raise InvalidRequest(
                f"rate must be in (0, 1], got {self.rate!r}; it says how much stays as context"
            )
        if self.reduce not in REDUCERS:
            raise InvalidRequest(
                f"reduce must be one of {', '.join(REDUCERS)}, got {self.reduce!r}"
            )

    def _pace(self, model: CausalModel, rate: float) -> Pace:
        room = self._room(model)
        return Pace(rate, min(self.segment, room // 2), room, self.batch_tokens, self.reduce)


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise InvalidRequest(f"{name} must be at least {least}, got {value!r}")
