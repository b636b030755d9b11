"""Sentence embeddings from the encoder that headrace-mini grew from.

Its layers are shipped in four bits beside the trained ones; the word embeddings, which training
left alone, are shared. A passage's vectors do not depend on the question: they are remembered by
text, so that a second question about the same documents costs one short forward pass.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ..gathering import Gatherer
from ..scorers.windows import Window, batches, windows
from .engine import OVERLAP, TITLE_TOKENS, WINDOW, Engine, Passage, encode

_REMEMBERED = 20_000


class Embedder:
    """all-MiniLM-L6-v2 (Sentence-BERT, Reimers & Gurevych 2019): the mean of the states.

    Shares tokenizer and network with an ``Engine``. Safe to use from several
    threads.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._memory: OrderedDict[tuple[str, str], Any] = OrderedDict()
        self._lock = threading.Lock()
        self._gather = Gatherer[list[int], Any](
            lambda rows: engine.runner(0).embed(rows),
            width=len,
            most_tokens=engine.batch_tokens,
            shares=engine.precision == "float32",
        )

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
            with self._gather.attend():
                fresh = self._embed([Passage(text, title) for title, text in new])
            found.update(zip(new, fresh, strict=True))
            with self._lock:
                self._memory.update((key, found[key]) for key in new)
                while len(self._memory) > _REMEMBERED:
                    self._memory.popitem(last=False)
        return [found[key] for key in keys]

    def _embed(self, passages: Sequence[Passage]) -> list[Any]:
        import numpy

        tokenizer = self._engine.tokenizer
        texts = encode(tokenizer, [passage.text for passage in passages])
        titles = [e.ids[:TITLE_TOKENS] for e in encode(tokenizer, [p.title for p in passages])]
        jobs = [
            Window(row, start, end)
            for row, encoding in enumerate(texts)
            for start, end in windows(len(encoding.ids), WINDOW - len(titles[row]) - 2, OVERLAP)
            or [(0, 0)]
        ]
        first, last = (int(tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]"))
        self._engine.runner(sum(job.end - job.start for job in jobs))
        rows: dict[Window, Any] = {}
        for batch in batches(jobs, self._engine.batch_tokens):
            ids = [
                [first, *titles[job.text], *texts[job.text].ids[job.start : job.end], last]
                for job in batch
            ]
            rows.update(zip(batch, self._gather(ids), strict=True))
        grouped: list[list[Any]] = [[] for _ in passages]
        for job in jobs:
            grouped[job.text].append(rows[job])
        return [numpy.stack(vectors) for vectors in grouped]


@lru_cache(maxsize=4)
def embedder(engine: Engine) -> Embedder:
    """Return the one embedder beside an engine, so that its memory is shared too."""
    return Embedder(engine)
