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
from .encoding import Offsets, Passes, is_exact


@dataclass(frozen=True)
class BiEncoder:
    """Cosine of question and document embeddings (Sentence-BERT, Reimers & Gurevych 2019).

    ``model`` is a sentence-transformers model's name or folder. Scores are in [-1, 1]. A
    document that is longer than the model reads is scored in overlapping windows, each headed
    by the title; the best window counts. Loads on first use; texts of several threads are encoded
    together.

    Raises ModelUnavailable when the model is not found.
    """

    model: str = "minilm"
    device: str | None = None
    batch_size: int = 32
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)
    _passes: Passes[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise InvalidRequest(f"batch_size must be at least 1, got {self.batch_size}")
        _ = self._path  # a missing model is said here, not at the first question
        object.__setattr__(self, "_passes", Passes[str](self._encode, self.batch_size))

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
        self._load()
        with self._passes.gather.attend():
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
        self._load()
        with self._passes.gather.attend():
            return self._vectors([replace_surrogates(text) for text in texts])

    def _load(self) -> None:
        with self._lock:
            _ = self._offsets
            self._passes.gather.shares = is_exact(self._encoder)

    def _vectors(self, texts: list[str]) -> Any:
        import numpy

        return numpy.stack(self._passes(texts)) if texts else self._encode(texts)

    def _encode(self, texts: list[str]) -> Any:
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
        room = (self._encoder.max_seq_length or 512) - 2
        room = max(room - len(self._offsets(head)), room // 2)
        return [
            head + part for part in self._offsets.windows(replace_surrogates(document.text), room)
        ]

    @cached_property
    def _offsets(self) -> Offsets:
        return Offsets(self._encoder.tokenizer)
