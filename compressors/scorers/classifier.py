"""Importance from a token classifier in LLMLingua-2's format."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from ...middleware.errors import InvalidRequest
from ...middleware.models import resolve
from ..units import Units
from .windows import Window, batches, owners, windows


@dataclass(frozen=True)
class TokenClassifier:
    """Scores words with a Hugging Face token-classification model (LLMLingua-2, section 4.2).

    ``model`` is a name or folder for ``headrace.middleware.models.resolve``; label 1 means keep.
    The kind of tokenizer and its special tokens are read from the tokenizer's files, so the
    folder may have any name. A unit's score is the ``reduce`` ("mean" or "first") of its tokens'
    keep probabilities. Long texts are read in windows of ``window`` tokens that overlap by
    ``overlap``; each token counts where it is farthest from an edge. Windows of all texts go
    together, sorted by length, ``batch_tokens`` padded tokens at a time.

    ``device`` is torch's name, None for CUDA, else MPS, else CPU; weights are float32. Loads on
    first use, from safetensors, once for all threads. Questions are not used: the model knows
    none. Units without a token of their own, and unknown ones, score at least the text's mean.

    Raises InvalidRequest when the model has no head with two labels, ModelUnavailable when it
    is not found.
    """

    model: str
    device: str | None = None
    window: int = 512
    overlap: int = 64
    batch_tokens: int = 8192
    reduce: Literal["mean", "first"] = "mean"
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.reduce not in ("mean", "first"):
            raise InvalidRequest(f"reduce must be 'mean' or 'first', got {self.reduce!r}")
        if not 0 <= self.overlap < self.window // 2:
            raise InvalidRequest(
                f"overlap must be below half the window, got {self.overlap} of {self.window}"
            )
        if self.batch_tokens < 1:
            raise InvalidRequest(f"batch_tokens must be at least 1, got {self.batch_tokens}")
        _check_head(self.model, self._config)

    @property
    def name(self) -> str:
        """The model's name as it was given."""
        return self.model

    @cached_property
    def _path(self) -> Path:
        return resolve(self.model)

    @cached_property
    def _config(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads((self._path / "config.json").read_text("utf-8"))
        return loaded

    def score(self, texts: Sequence[Units], question: str | None = None) -> list[list[float]]:
        """Return a score for each unit; see ``Scorer.score``. The question is not used."""
        loaded = self._load()
        encoded = loaded.encode([units.text for units in texts])
        jobs = [
            Window(row, start, end)
            for row, encoding in enumerate(encoded)
            for start, end in windows(len(encoding.ids), loaded.room(self.window), self.overlap)
        ]
        found = [[0.0] * len(encoding.ids) for encoding in encoded]
        for batch in batches(jobs, self.batch_tokens):
            rows = [encoded[job.text].ids[job.start : job.end] for job in batch]
            for job, keep in zip(batch, loaded.forward(rows), strict=True):
                first, last = owners(job, len(encoded[job.text].ids), self.overlap)
                found[job.text][first:last] = keep[first - job.start : last - job.start]
        return [
            _per_unit(units, encoding, keep, loaded.unknown, self.reduce)
            for units, encoding, keep in zip(texts, encoded, found, strict=True)
        ]

    def _load(self) -> _Loaded:
        with self._lock:
            return self._loaded

    @cached_property
    def _loaded(self) -> _Loaded:
        from .loading import load_classifier

        model, tokenizer, device = load_classifier(self._path, self.device)
        return _Loaded(model, tokenizer, device, self._config)


class _Loaded:
    """The model and its tokenizer, ready to use from several threads."""

    def __init__(self, model: Any, tokenizer: Any, device: str, config: dict[str, Any]) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._device = device
        self._positions = int(config.get("max_position_embeddings") or 512)
        self._pad = int(config.get("pad_token_id") or 0)
        probe = tokenizer.encode("a", add_special_tokens=True)
        content = [i for i, special in enumerate(probe.special_tokens_mask) if not special]
        self.prefix: list[int] = probe.ids[: content[0]]
        self.suffix: list[int] = probe.ids[content[-1] + 1 :]
        unknown = getattr(tokenizer.model, "unk_token", None) or config.get("unk_token") or "<unk>"
        self.unknown: int | None = tokenizer.token_to_id(unknown)

    def room(self, window: int) -> int:
        """Return how many tokens of text fit into a window beside the special tokens.

        Models of RoBERTa's family count positions from the padding index on and have two
        fewer than their table's rows.
        """
        spare = 2 if self._positions % 64 == 2 else 0
        size = min(window, self._positions - spare) - len(self.prefix) - len(self.suffix)
        return max(size, 1)

    def encode(self, texts: Sequence[str]) -> list[Any]:
        """Return the encodings without special tokens, with character offsets."""
        from ..tokens import replace_surrogates

        clean = [replace_surrogates(text) for text in texts]
        encoded: list[Any] = self._tokenizer.encode_batch(clean, add_special_tokens=False)
        return encoded

    def forward(self, rows: Sequence[Sequence[int]]) -> list[list[float]]:
        """Return p(keep) for each token of each row, special tokens and padding left out."""
        import torch

        full = [[*self.prefix, *row, *self.suffix] for row in rows]
        width = max(map(len, full))
        ids = torch.tensor([row + [self._pad] * (width - len(row)) for row in full])
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in full])
        with torch.inference_mode():
            output: Any = self._model(
                input_ids=ids.to(self._device), attention_mask=mask.to(self._device)
            )
            keep: list[list[float]] = output.logits.float().softmax(-1)[..., 1].cpu().tolist()
        skip = len(self.prefix)
        return [line[skip : skip + len(row)] for line, row in zip(keep, rows, strict=True)]


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
    units: Units, encoding: Any, keep: Sequence[float], unknown: int | None, reduce: str
) -> list[float]:
    offsets: list[tuple[int, int]] = encoding.offsets
    ids: list[int] = encoding.ids
    mean = sum(keep) / len(keep) if keep else 1.0
    scores: list[float] = []
    at = 0
    for unit in units.units:
        while at < len(offsets) and offsets[at][1] <= unit.body:
            at += 1
        own: list[int] = []
        i = at
        while i < len(offsets) and offsets[i][0] < unit.end:
            if offsets[i][1] > unit.body:
                own.append(i)
            i += 1
        if not own:
            scores.append(mean)
            continue
        value = keep[own[0]] if reduce == "first" else sum(keep[i] for i in own) / len(own)
        if all(ids[i] == unknown for i in own):
            value = max(value, mean)
        scores.append(min(max(value, 0.0), 1.0))
    return scores
