"""Sentence embeddings from the encoder that headrace-mini grew from.

Its layers are shipped in four bits beside the trained ones; the word embeddings, which training
left alone, are shared. A passage's vectors do not depend on the question: they are remembered by
text, so that a second question about the same documents costs one short forward pass.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from ...middleware.errors import ModelUnavailable
from ..scorers.windows import Window, batches, windows
from . import nibbles, tensorfile
from .engine import OVERLAP, TITLE_TOKENS, WINDOW, Engine, Passage, encode

FILE = "embedder.safetensors"
TIED = ("embeddings.word_embeddings.weight", "embeddings.position_embeddings.weight")
_REMEMBERED = 20_000


class Embedder:
    """all-MiniLM-L6-v2 (Sentence-BERT, Reimers & Gurevych 2019): the mean of the states.

    Shares tokenizer, device and word embeddings with an ``Engine``. Safe to use from several
    threads.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._memory: OrderedDict[tuple[str, str], Any] = OrderedDict()
        self._lock = threading.Lock()
        self._loading = threading.Lock()

    def cosines(self, question: str, passages: Sequence[Passage]) -> list[float]:
        """Return how near each passage is to the question; of a long one the nearest window."""
        vectors = self._vectors([Passage(question), *passages])
        asked = vectors[0][0]
        return [float((rows @ asked).max()) for rows in vectors[1:]]

    def _vectors(self, passages: Sequence[Passage]) -> list[Any]:
        """Return for each passage a matrix, a unit row a window."""
        keys = [(passage.title, passage.text) for passage in passages]
        with self._lock:
            found = {key: self._memory[key] for key in keys if key in self._memory}
        new = [key for key in dict.fromkeys(keys) if key not in found]
        if new:
            fresh = self._embed([Passage(text, title) for title, text in new])
            found.update(zip(new, fresh, strict=True))
            with self._lock:
                self._memory.update((key, found[key]) for key in new)
                while len(self._memory) > _REMEMBERED:
                    self._memory.popitem(last=False)
        return [found[key] for key in keys]

    def _embed(self, passages: Sequence[Passage]) -> list[Any]:
        import torch

        encoder = self._load()
        _, tokenizer = self._engine.load()
        texts = encode(tokenizer, [passage.text for passage in passages])
        titles = [e.ids[:TITLE_TOKENS] for e in encode(tokenizer, [p.title for p in passages])]
        jobs = [
            Window(row, start, end)
            for row, encoding in enumerate(texts)
            for start, end in windows(len(encoding.ids), WINDOW - len(titles[row]) - 2, OVERLAP)
            or [(0, 0)]
        ]
        first, last = (int(tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]"))
        rows: dict[Window, Any] = {}
        for batch in batches(jobs, self._engine.batch_tokens):
            ids = [
                [first, *titles[job.text], *texts[job.text].ids[job.start : job.end], last]
                for job in batch
            ]
            rows.update(zip(batch, self._forward(encoder, ids), strict=True))
        grouped: list[list[Any]] = [[] for _ in passages]
        for job in jobs:
            grouped[job.text].append(rows[job])
        return [torch.stack(vectors) for vectors in grouped]

    def _forward(self, encoder: Any, rows: Sequence[Sequence[int]]) -> Any:
        import torch
        from torch.nn import functional

        from .network import mean

        ids, mask = self._engine.padded(rows)
        with torch.inference_mode(), self._engine.precision():
            hidden = encoder(ids, torch.zeros_like(ids), mask).float()
            return functional.normalize(mean(hidden, mask), dim=-1).cpu()

    def _load(self) -> Any:
        with self._loading:
            return self._loaded

    @cached_property
    def _loaded(self) -> Any:
        network, _ = self._engine.load()
        return load(self._engine.folder, network)


@lru_cache(maxsize=4)
def embedder(engine: Engine) -> Embedder:
    """Return the one embedder beside an engine, so that its memory is shared too."""
    return Embedder(engine)


def load(folder: Path, network: Any) -> Any:
    """Return the encoder in eval mode, its word embeddings those of the network.

    Raises ModelUnavailable when the folder does not hold it.
    """
    import torch

    from .network import Encoder, Shape

    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
        tensors = nibbles.unpack(tensorfile.load(folder / FILE)[0])
        shared = network.bert.state_dict()
        device = shared[TIED[0]].device
        tensors = {name: tensor.to(device) for name, tensor in tensors.items()}
        with torch.device("meta"):
            encoder = Encoder(Shape.of(config))
        encoder.load_state_dict(tensors | {name: shared[name] for name in TIED}, assign=True)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ModelUnavailable(f"cannot load the embedder from {folder}: {first:.200}") from error
    return encoder.eval()
