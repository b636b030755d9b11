"""Reading passages with the network: windows, batches, and a memory of what was read."""

from __future__ import annotations

import threading
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

from ..scorers.windows import Window, batches, owners, windows
from ..tokens import load_tokenizer, replace_surrogates
from . import weights

Precision = Literal["float32", "bfloat16"]

QUESTION_TOKENS = 48
TITLE_TOKENS = 24
WINDOW = 256
OVERLAP = 32


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

    A text that was read with a question is remembered under both, whatever its title, so that
    ranking documents and cutting them takes one forward pass. The memory holds the latest
    ``remembered`` tokens. ``precision`` "bfloat16" is several times as fast where the processor
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
        self._precision = precision
        self.batch_tokens = batch_tokens
        self._remembered = remembered
        self._memory: OrderedDict[tuple[str, str], Reading] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()
        self._loading = threading.Lock()
        self.passes = 0
        """Windows that went through the network so far."""

    def read(self, question: str, passages: Sequence[Passage]) -> list[Reading]:
        """Return a reading of each passage; an empty question asks for what matters in general."""
        question = replace_surrogates(question.strip())
        found: dict[str, Reading] = {}
        new: dict[str, Passage] = {}
        with self._lock:
            for passage in passages:
                known = self._memory.get((question, passage.text))
                if known is None:
                    new.setdefault(passage.text, passage)
                else:
                    self._memory.move_to_end((question, passage.text))
                    found[passage.text] = known
        if new:
            fresh = self._read(question, list(new.values()))
            found.update(zip(new, fresh, strict=True))
            self._remember(question, {text: found[text] for text in new})
        return [found[passage.text] for passage in passages]

    def _remember(self, question: str, readings: dict[str, Reading]) -> None:
        with self._lock:
            for text, reading in readings.items():
                if (question, text) not in self._memory:
                    self._size += len(reading.keep)
                self._memory[question, text] = reading
            while self._size > self._remembered and self._memory:
                _, old = self._memory.popitem(last=False)
                self._size -= len(old.keep)

    def _read(self, question: str, passages: Sequence[Passage]) -> list[Reading]:
        network, tokenizer = self.load()
        encoded = encode(tokenizer, [passage.text for passage in passages])
        asked = _shortened(encode(tokenizer, [question])[0].ids)
        titles = [e.ids[:TITLE_TOKENS] for e in encode(tokenizer, [p.title for p in passages])]
        separator = int(tokenizer.token_to_id("[SEP]"))
        head = [int(tokenizer.token_to_id("[CLS]")), *asked, *([separator] if asked else [])]
        jobs = [
            Window(row, start, end)
            for row, encoding in enumerate(encoded)
            for start, end in windows(
                len(encoding.ids), WINDOW - len(head) - len(titles[row]) - 1, OVERLAP
            )
        ]
        keep = [array("f", [0.0]) * len(encoding.ids) for encoding in encoded]
        best = [float("-inf") if asked else 0.0] * len(encoded)
        for batch in batches(jobs, self.batch_tokens):
            rows = [
                [*head, *titles[job.text], *encoded[job.text].ids[job.start : job.end], separator]
                for job in batch
            ]
            tokens, relevance = self._forward(network, rows, len(head) if asked else None)
            for job, line, logit in zip(batch, tokens, relevance, strict=True):
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

    def _forward(
        self, network: Any, rows: Sequence[Sequence[int]], passage: int | None
    ) -> tuple[list[list[float]], list[float]]:
        """Return keep probabilities and relevance; ``passage`` is where it starts, if asked."""
        import torch

        ids, mask = self.padded(rows)
        types = torch.zeros_like(ids)
        if passage is not None:
            types[:, passage:] = 1
        with torch.inference_mode(), self.precision():
            keep, relevance = network(ids, types * mask, mask)
            tokens: list[list[float]] = keep.sigmoid().cpu().tolist()
            logits: list[float] = relevance.cpu().tolist()
        with self._lock:
            self.passes += len(rows)
        return tokens, logits

    def padded(self, rows: Sequence[Sequence[int]]) -> tuple[Any, Any]:
        """Return ids and mask of rows, on the network's device."""
        import torch

        width = max(map(len, rows))
        ids = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows])
        lengths = torch.tensor([len(row) for row in rows])
        mask = torch.arange(width)[None, :] < lengths[:, None]
        device = next(self.load()[0].parameters()).device
        return ids.to(device), mask.to(device)

    def precision(self) -> Any:
        """Return the context in which forward passes have this engine's precision."""
        import torch

        device = next(self.load()[0].parameters()).device
        is_short = self._precision == "bfloat16"
        return torch.autocast(device.type, dtype=torch.bfloat16, enabled=is_short)

    def load(self) -> tuple[Any, Any]:
        """Return network and tokenizer, loaded once for all threads."""
        with self._loading:
            return self._loaded

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        tokenizer = load_tokenizer(self.folder)
        tokenizer.encode_special_tokens = True  # "[SEP]" in a text is text
        return weights.load(self.folder, self._device or best_device()), tokenizer


def shared(
    folder: Path = weights.DATA, device: str | None = None, precision: Precision = "float32"
) -> Engine:
    """Return the one engine of this process, so that stages share weights and memory."""
    return _shared(folder, device, precision)


@lru_cache(maxsize=4)
def _shared(folder: Path, device: str | None, precision: Precision) -> Engine:
    return Engine(folder, device, precision)


def best_device() -> str:
    """Return torch's name for the fastest device here."""
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


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
