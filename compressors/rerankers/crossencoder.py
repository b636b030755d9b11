"""Ranking by a model that reads question and document together."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ...middleware.errors import InvalidRequest, ModelUnavailable
from ...middleware.models import resolve, silent_transformers
from ...middleware.types import Document
from ..tokens import replace_surrogates
from .base import full_text
from .encoding import Offsets, Passes, is_exact

_SPECIAL = 4


@dataclass(frozen=True)
class CrossEncoder:
    """Relevance from question and document in one sequence (Nogueira & Cho 2019, section 3).

    ``model`` is the name or folder of a sequence classifier with one label, such as
    ``cross-encoder/ms-marco-MiniLM-L6-v2`` or ``BAAI/bge-reranker-base``. Scores are sigmoids, in
    [0, 1]. A document that is longer than the model reads is scored in overlapping windows; the
    best one counts. Loads on first use; pairs of several threads are read together.

    Raises ModelUnavailable when the model is not found, InvalidRequest when it has several labels.
    """

    model: str
    device: str | None = None
    batch_size: int = 32
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)
    _passes: Passes[tuple[str, str]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise InvalidRequest(f"batch_size must be at least 1, got {self.batch_size}")
        if (labels := num_labels(self._path)) != 1:
            raise InvalidRequest(
                f"{self.model!r} has {labels} labels, a cross-encoder has one; give a model that"
                " was trained to rank"
            )
        passes = Passes[tuple[str, str]](self._predict, self.batch_size)
        object.__setattr__(self, "_passes", passes)

    @property
    def name(self) -> str:
        """The model's name as it was given."""
        return self.model

    @cached_property
    def _path(self) -> Path:
        return resolve(self.model, kind="encoder")

    def score(self, question: str, documents: Sequence[Document]) -> list[float]:
        """Return the best window's sigmoid, 0.0 for a document without title and text."""
        written = [i for i, document in enumerate(documents) if full_text(document).strip()]
        scores = [0.0] * len(documents)
        if not written:
            return scores
        asked = replace_surrogates(question)
        self._load()
        with self._passes.gather.attend():
            rows = [self._windows(asked, full_text(documents[i])) for i in written]
            pairs = [(asked, window) for row in rows for window in row]
            values = [float(value) for value in self._passes(pairs)]
        at = 0
        for i, row in zip(written, rows, strict=True):
            scores[i] = max(values[at : at + len(row)])
            at += len(row)
        return scores

    def _windows(self, question: str, text: str) -> list[str]:
        """Return overlapping windows that the model can read after the question."""
        longest = min(self._encoder.max_seq_length or 512, 512)
        room = max(longest - len(self._offsets(question)) - _SPECIAL, longest // 2)
        return self._offsets.windows(replace_surrogates(text), room)

    def _load(self) -> None:
        with self._lock:
            _ = self._offsets
            self._passes.gather.shares = is_exact(self._encoder)

    def _predict(self, pairs: list[tuple[str, str]]) -> Any:
        return self._encoder.predict(
            pairs, batch_size=self.batch_size, show_progress_bar=False, convert_to_numpy=True
        )

    @cached_property
    def _offsets(self) -> Offsets:
        return Offsets(self._encoder.tokenizer)

    @cached_property
    def _encoder(self) -> Any:
        from sentence_transformers import CrossEncoder as Model
        from torch.nn import Sigmoid

        try:
            with silent_transformers():
                return Model(
                    str(self._path),
                    device=self.device,
                    local_files_only=True,
                    trust_remote_code=False,
                    activation_fn=Sigmoid(),
                )
        except (OSError, ValueError) as error:
            first = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise ModelUnavailable(f"cannot load the ranker in {self._path}: {first}") from error


def num_labels(folder: Path) -> int:
    """Return how many labels the classifier in a folder has, 0 when it holds none.

    Read from ``config.json``: the architecture ends in ForSequenceClassification.
    """
    try:
        config: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
    except (OSError, ValueError):
        return 0
    names: Sequence[str] = config.get("architectures") or ()
    if not any(str(name).endswith("ForSequenceClassification") for name in names):
        return 0
    return len(config.get("id2label") or {}) or int(config.get("num_labels") or 2)
