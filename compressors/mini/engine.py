"""Reading passages with the network: windows, batches, and a memory of what was read."""

from __future__ import annotations

import sys
import threading
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from ..gathering import Gatherer
from ..scorers.windows import Window, batches, even_windows, owners
from ..tokens import load_tokenizer, replace_surrogates
from . import weights
from .runners import ArrayRunner, Precision, Runner, TorchRunner, best_device

QUESTION_TOKENS = 48
TITLE_TOKENS = 24
WINDOW = 256
OVERLAP = 32
NUMPY_TOKENS = 4000
"""So many tokens are read in numpy before torch, which takes seconds to import, pays."""


Line = tuple[list[int], int | None]
"""Ids with special tokens, and where the passage starts, None without a question."""
Score = tuple[list[float], float]
"""Keep probabilities, token by token, and the relevance logit."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A text, and the title it is read with."""

    text: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """What the network says about a text, token by token.

    ``starts`` and ``ends`` are the tokens' characters, ``keep`` their keep probabilities, ``known``
    is 0 for tokens outside the vocabulary. ``relevance`` is the best window's logit, 0 without a
    question.
    """

    starts: array[int]
    ends: array[int]
    keep: array[float]
    known: array[int]
    relevance: float


class Engine:
    """The network and its memory, safe to use from several threads.

    A text that was read with a question is remembered under both and its title, so that ranking
    documents and cutting them takes one forward pass. The memory holds the latest
    ``remembered`` tokens. Short texts are read in numpy while torch is not imported.
    ``precision`` "bfloat16" is several times as fast where the processor
    multiplies such numbers (AMX, GPUs), and slower elsewhere; scores then differ in the third
    digit with what else is in a batch.
    """

    def __init__(
        self,
        folder: Path = weights.DATA,
        device: str | None = None,
        precision: Precision = "float32",
        *,
        batch_tokens: int = 8192,
        remembered: int = 1_000_000,
    ) -> None:
        self.folder = folder
        self._device = device
        self.precision: Precision = precision
        self.batch_tokens = batch_tokens
        self._remembered = remembered
        self._memory: OrderedDict[tuple[str, Passage], Reading] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()
        self._loading = threading.Lock()
        self._numpy: Runner | None = None
        self._torch: Runner | None = None
        self._read_in_numpy = 0
        self.passes = 0
        """Windows that went through the network so far."""

        self._gather = Gatherer[Line, Score](
            self._forward,
            width=lambda line: len(line[0]),
            most_tokens=batch_tokens,
            shares=precision == "float32",
        )

    @property
    def num_passes(self) -> int:
        """Forward passes so far."""
        return self._gather.num_passes

    def read(self, question: str, passages: Sequence[Passage]) -> list[Reading]:
        """Return a reading of each passage; an empty question asks for what matters in general."""
        question = replace_surrogates(question.strip())
        found: dict[Passage, Reading] = {}
        new: dict[Passage, None] = {}
        with self._lock:
            for passage in passages:
                known = self._memory.get((question, passage))
                if known is not None:
                    self._memory.move_to_end((question, passage))
                    found[passage] = known
                else:
                    new[passage] = None
        if new:
            with self._gather.attend():
                fresh = self._read(question, list(new))
            found.update(zip(new, fresh, strict=True))
            self._remember(question, {passage: found[passage] for passage in new})
        return [found[passage] for passage in passages]

    def _remember(self, question: str, readings: dict[Passage, Reading]) -> None:
        with self._lock:
            for passage, reading in readings.items():
                if (question, passage) not in self._memory:
                    self._size += len(reading.keep)
                self._memory[question, passage] = reading
            while self._size > self._remembered and self._memory:
                _, old = self._memory.popitem(last=False)
                self._size -= len(old.keep)

    def _read(self, question: str, passages: Sequence[Passage]) -> list[Reading]:
        tokenizer = self.tokenizer
        encoded = encode(tokenizer, [passage.text for passage in passages])
        asked = _shortened(encode(tokenizer, [question])[0].ids)
        titles = [e.ids[:TITLE_TOKENS] for e in encode(tokenizer, [p.title for p in passages])]
        separator = int(tokenizer.token_to_id("[SEP]"))
        head = [int(tokenizer.token_to_id("[CLS]")), *asked, *([separator] if asked else [])]
        jobs = [
            Window(row, start, end)
            for row, encoding in enumerate(encoded)
            for start, end in even_windows(
                len(encoding.ids), WINDOW - len(head) - len(titles[row]) - 1, OVERLAP
            )
        ]
        keep = [array("f", [0.0]) * len(encoding.ids) for encoding in encoded]
        best = [float("-inf") if asked else 0.0] * len(encoded)
        self.runner(sum(job.end - job.start for job in jobs))
        for batch in batches(jobs, self.batch_tokens):
            texts = [encoded[job.text].ids[job.start : job.end] for job in batch]
            rows = [
                ([*head, *titles[job.text], *ids, separator], len(head) if asked else None)
                for job, ids in zip(batch, texts, strict=True)
            ]
            for job, (line, logit) in zip(batch, self._gather(rows), strict=True):
                skip = len(head) + len(titles[job.text]) - job.start
                first, last = owners(job, len(encoded[job.text].ids), OVERLAP)
                keep[job.text][first:last] = array("f", line[first + skip : last + skip])
                if asked:
                    best[job.text] = max(best[job.text], logit)
        unknown = tokenizer.token_to_id("[UNK]")
        return [
            Reading(
                array("I", [start for start, _ in encoding.offsets]),
                array("I", [end for _, end in encoding.offsets]),
                values,
                array("B", [token != unknown for token in encoding.ids]),
                relevance if relevance > float("-inf") else -20.0,
            )
            for encoding, values, relevance in zip(encoded, keep, best, strict=True)
        ]

    def _forward(self, lines: Sequence[Line]) -> list[Score]:
        rows, passages = [ids for ids, _ in lines], [start for _, start in lines]
        tokens, relevance = self.runner(0).score(rows, passages)
        with self._lock:
            self.passes += len(lines)
        return [*zip(tokens, relevance, strict=True)]

    def runner(self, tokens: int) -> Runner:
        """Return what to run the network with on so many tokens, loaded once for all threads.

        numpy serves short texts for as long as nobody has imported torch, and torch all others.
        """
        with self._loading:
            if self._torch is None:
                self._read_in_numpy += tokens
                if self._is_plain and self._read_in_numpy <= NUMPY_TOKENS:
                    self._numpy = self._numpy or ArrayRunner(self.folder)
                    return self._numpy
                device = self._device or best_device()
                self._torch = TorchRunner(self.folder, device, self.precision)
                self._numpy = None
            return self._torch

    @property
    def _is_plain(self) -> bool:
        is_default = self._device in (None, "cpu") and self.precision == "float32"
        return is_default and "torch" not in sys.modules

    @cached_property
    def tokenizer(self) -> Any:
        """The tokenizer, which reads "[SEP]" in a text as text."""
        with self._loading:
            tokenizer = load_tokenizer(self.folder)
        tokenizer.encode_special_tokens = True
        return tokenizer


def shared(
    folder: Path = weights.DATA, device: str | None = None, precision: Precision = "float32"
) -> Engine:
    """Return the one engine of this process, so that stages share weights and memory."""
    return _shared(folder, device, precision)


@lru_cache(maxsize=4)
def _shared(folder: Path, device: str | None, precision: Precision) -> Engine:
    return Engine(folder, device, precision)


def _shortened(ids: list[int]) -> list[int]:
    """Return the start and the end of a question that is too long: most ask at one of them."""
    if len(ids) <= QUESTION_TOKENS:
        return ids
    return [*ids[: QUESTION_TOKENS // 3], *ids[-(QUESTION_TOKENS - QUESTION_TOKENS // 3) :]]


def encode(tokenizer: Any, texts: Sequence[str]) -> list[Any]:
    """Return the texts' encodings without special tokens."""
    clean = [replace_surrogates(text) for text in texts]
    encoded: list[Any] = tokenizer.encode_batch(clean, add_special_tokens=False)
    return encoded
