"""Importance from a token classifier in LLMLingua-2's format."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ...middleware.errors import InvalidRequest
from ...middleware.models import resolve
from ..units import Units
from .windows import batches, stretches

if TYPE_CHECKING:
    from .loading import Floats, Ints, Loaded, Precision

_CHARACTERS = 400_000


@dataclass(frozen=True)
class TokenClassifier:
    """Scores words with a Hugging Face token-classification model (LLMLingua-2, section 4.2).

    ``model`` is a name or folder for ``headrace.middleware.models.resolve``; label 1 means keep.
    The kind of tokenizer and its special tokens are read from the tokenizer's files, the way
    positions are counted from the configuration (BERT and XLM-RoBERTa differ in all three), so
    the folder may have any name. A unit's score is the ``reduce`` ("mean" or "first") of its
    tokens' keep probabilities.

    Long texts are read in windows of ``window`` tokens that end where a sentence does; where none
    ends in a window's last quarter, windows overlap by ``overlap`` and each token counts where
    it is farthest from an edge. Windows of all texts go together, sorted by length,
    ``batch_tokens`` padded tokens at a time (None: 1,024 on a CPU, whose caches are small, 32,768
    elsewhere); texts are taken a few hundred thousand characters at a time, so that memory does
    not grow with their number.

    ``device`` is torch's name, None for CUDA, else MPS, else CPU. ``precision`` is "float32",
    "bfloat16" (fast where the processor multiplies such numbers: AMX, GPUs) or "int8" (CPU only:
    dynamic quantisation of the linear layers, where bfloat16 is slow). ``compile`` runs the
    model through torch.compile: tens of seconds at first use. Loads on first use, from
    safetensors, once for all threads. Questions are not used: the model knows none. Units
    without a token of their own, and unknown ones, score at least the text's mean.

    Raises InvalidRequest when the model has no head with two labels, or for an option that is
    none of these, ModelUnavailable when the model is not found.
    """

    model: str
    device: str | None = None
    window: int = 512
    overlap: int = 64
    batch_tokens: int | None = None
    reduce: Literal["mean", "first"] = "mean"
    precision: Precision = "float32"
    compile: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.reduce not in ("mean", "first"):
            raise InvalidRequest(f"reduce must be 'mean' or 'first', got {self.reduce!r}")
        if self.precision not in ("float32", "bfloat16", "int8"):
            raise InvalidRequest(
                f"precision must be float32, bfloat16 or int8, got {self.precision!r}"
            )
        if not 0 <= self.overlap < self.window // 2:
            raise InvalidRequest(
                f"overlap must be below half the window, got {self.overlap} of {self.window}"
            )
        if self.batch_tokens is not None and self.batch_tokens < 1:
            raise InvalidRequest(f"batch_tokens must be at least 1, got {self.batch_tokens}")
        _check_head(self.model, self.config)

    @property
    def name(self) -> str:
        """The model's name as it was given."""
        return self.model

    @cached_property
    def path(self) -> Path:
        """The model's folder."""
        return resolve(self.model)

    @cached_property
    def config(self) -> dict[str, Any]:
        """The model's config.json."""
        loaded: dict[str, Any] = json.loads((self.path / "config.json").read_text("utf-8"))
        return loaded

    def reducing(self, reduce: Literal["mean", "first"]) -> TokenClassifier:
        """Return the same scorer with another ``reduce``; both share the loaded model."""
        if reduce == self.reduce:
            return self
        other = replace(self, reduce=reduce)
        other.__dict__["_loaded"] = self.load()
        return other

    def score(self, texts: Sequence[Units], question: str | None = None) -> list[list[float]]:
        """Return a score for each unit; see ``Scorer.score``. The question is not used."""
        return [row for group in _groups(texts) for row in self._score(group)]

    def _score(self, texts: Sequence[Units]) -> list[list[float]]:
        loaded = self.load()
        with loaded.gather.attend():
            encoded, found = self._read(loaded, texts)
        return [
            _per_unit(units, ids, offsets, keep, loaded.unknown, self.reduce)
            for units, (ids, offsets), keep in zip(texts, encoded, found, strict=True)
        ]

    def _read(
        self, loaded: Loaded, texts: Sequence[Units]
    ) -> tuple[list[tuple[Ints, Ints]], list[Floats]]:
        """Return each text's ids and offsets, and p(keep) of its tokens."""
        import numpy as np

        encoded = loaded.encode([units.text for units in texts])
        room = loaded.room(self.window)
        jobs = [
            job
            for row, (units, (ids, offsets)) in enumerate(zip(texts, encoded, strict=True))
            for job in stretches(len(ids), room, self.overlap, _stops(units, offsets, room), row)
        ]
        found = [np.zeros(len(ids), dtype=np.float32) for ids, _ in encoded]
        for batch in batches(jobs, loaded.batch_tokens):
            rows = [encoded[job.text][0][job.start : job.end] for job in batch]
            for job, keep in zip(batch, loaded.forward(rows), strict=True):
                part = keep[job.first - job.start : job.last - job.start]
                found[job.text][job.first : job.last] = part
        return encoded, found

    def load(self) -> Loaded:
        """Return the model, loaded once for all threads."""
        with self._lock:
            return self._loaded

    @cached_property
    def _loaded(self) -> Loaded:
        from .loading import load_classifier

        return load_classifier(
            self.path,
            self.config,
            device=self.device,
            precision=self.precision,
            compile=self.compile,
            batch_tokens=self.batch_tokens,
        )


def _groups(texts: Sequence[Units]) -> Iterator[Sequence[Units]]:
    """Yield runs of texts of some hundred thousand characters, or one longer text."""
    start = size = 0
    for i, units in enumerate(texts):
        if i > start and size + len(units.text) > _CHARACTERS:
            yield texts[start:i]
            start, size = i, 0
        size += len(units.text)
    if start < len(texts):
        yield texts[start:]


def _stops(units: Units, offsets: Ints, room: int) -> list[int]:
    """Return the tokens at which a sentence begins; none are needed for a text of one window."""
    if len(offsets) <= room:
        return []
    starts = [
        unit.body
        for before, unit in zip(units.units, units.units[1:], strict=False)
        if unit.sentence != before.sentence
    ]
    found: list[int] = offsets[:, 1].searchsorted(starts, side="right").tolist()
    return found


def _check_head(name: str, config: dict[str, Any]) -> None:
    heads = [str(head) for head in config.get("architectures") or ()]
    labels = len(config.get("id2label") or {}) or int(config.get("num_labels") or 2)
    if not any(head.endswith("ForTokenClassification") for head in heads):
        raise InvalidRequest(
            f"model {name!r} is {' '.join(heads) or 'of unknown kind'}, no token classifier;"
            " choose one in LLMLingua-2's format, or 'lexical'"
        )
    if labels != 2:
        raise InvalidRequest(
            f"model {name!r} has {labels} labels; a compressor needs 2, where 1 means keep"
        )


def _per_unit(
    units: Units, ids: Ints, offsets: Ints, keep: Floats, unknown: int | None, reduce: str
) -> list[float]:
    """Reduce the tokens that overlap a unit's content; both are in the order of the text."""
    import numpy as np

    if not len(keep):
        return [1.0] * len(units.units)
    mean = float(keep.mean(dtype=np.float64))
    bodies = np.fromiter((unit.body for unit in units.units), np.int64, len(units.units))
    ends = np.fromiter((unit.end for unit in units.units), np.int64, len(units.units))
    first = offsets[:, 1].searchsorted(bodies, side="right")
    last = offsets[:, 0].searchsorted(ends, side="left")
    count = last - first
    has = count > 0
    safe = np.minimum(first, len(keep) - 1)
    if reduce == "first":
        values = keep[safe].astype(np.float64)
    else:
        sums = np.concatenate(([0.0], keep.cumsum(dtype=np.float64)))
        values = (sums[last] - sums[first]) / np.maximum(count, 1)
    known = np.concatenate(([0], (ids != unknown).cumsum()))
    values = np.where(known[last] > known[first], values, np.maximum(values, mean))
    scores: list[float] = np.clip(np.where(has, values, mean), 0.0, 1.0).tolist()
    return scores
