"""Ranking by meaning."""

from __future__ import annotations

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

_OVERLAP = 32


@dataclass(frozen=True)
class BiEncoder:
    """Cosine of question and document embeddings (Sentence-BERT, Reimers & Gurevych 2019).

    ``model`` is a sentence-transformers model's name or folder. Scores are in [-1, 1]. A
    document that is longer than the model reads is scored in overlapping windows, each headed
    by the title; the best window counts. Loads on first use; one thread at a time uses it.

    Raises ModelUnavailable when the model is not found.
    """

    model: str = "minilm"
    device: str | None = None
    batch_size: int = 32
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise InvalidRequest(f"batch_size must be at least 1, got {self.batch_size}")
        _ = self._path  # a missing model is said here, not at the first question

    @property
    def name(self) -> str:
        """The model's name as it was given."""
        return self.model

    @cached_property
    def _path(self) -> Path:
        return resolve(self.model, kind="encoder")

    def score(self, question: str, documents: Sequence[Document]) -> list[float]:
        """Return the best cosine of each document, -1.0 for one without title and text."""
        written = [i for i, document in enumerate(documents) if full_text(document).strip()]
        scores = [-1.0] * len(documents)
        if not written:
            return scores
        with self._lock:
            passages = [self._passages(documents[i]) for i in written]
            texts = [replace_surrogates(question), *(text for row in passages for text in row)]
            vectors = self._vectors(texts)
        cosines: list[float] = (vectors[1:] @ vectors[0]).tolist()
        at = 0
        for i, row in zip(written, passages, strict=True):
            scores[i] = max(cosines[at : at + len(row)])
            at += len(row)
        return scores

    def embed(self, texts: Sequence[str]) -> Any:
        """Return a matrix of floats with a row of length 1 a text, cut to what the model reads."""
        with self._lock:
            return self._vectors([replace_surrogates(text) for text in texts])

    def _vectors(self, texts: list[str]) -> Any:
        return self._encoder.encode(
            texts,
            batch_size=self.batch_size,
            normalize_embeddings=True,
            show_progress_bar=False,
            convert_to_numpy=True,
        )

    @cached_property
    def _encoder(self) -> Any:
        from sentence_transformers import SentenceTransformer

        try:
            with silent_transformers():
                return SentenceTransformer(
                    str(self._path),
                    device=self.device,
                    local_files_only=True,
                    trust_remote_code=False,
                )
        except (OSError, ValueError) as error:
            first = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise ModelUnavailable(f"cannot load the encoder in {self._path}: {first}") from error

    def _passages(self, document: Document) -> list[str]:
        """Return the document's windows, each with the title before it."""
        head = replace_surrogates(document.title)
        head = f"{head}\n" if head else ""
        text = replace_surrogates(document.text)
        room = (self._encoder.max_seq_length or 512) - 2
        room = max(room - len(self._offsets(head)), room // 2)
        offsets = self._offsets(text)
        if len(offsets) <= room:
            return [head + text]
        step = max(room - _OVERLAP, 1)
        starts = range(0, len(offsets) - _OVERLAP, step)
        ends = [min(start + room, len(offsets)) - 1 for start in starts]
        return [
            head + text[offsets[start][0] : offsets[end][1]]
            for start, end in zip(starts, ends, strict=True)
        ]

    def _offsets(self, text: str) -> list[tuple[int, int]]:
        encoded: Any = self._encoder.tokenizer(
            text,
            add_special_tokens=False,
            truncation=False,
            return_offsets_mapping=True,
            verbose=False,
        )
        offsets: list[tuple[int, int]] = encoded["offset_mapping"]
        return offsets
