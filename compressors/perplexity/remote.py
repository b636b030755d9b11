"""Self-information from an engine that returns the log-probabilities of a prompt."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from ...middleware.errors import InvalidRequest
from ...middleware.models import resolve
from ..tokens import load_tokenizer, replace_surrogates
from ..units import Units
from .encoded import REDUCERS, Encoded, Reduce
from .engine import Ask, Engine, Known, Prompt
from .model import start_ids
from .scale import score_of
from .scorer import by_phrase


@dataclass(frozen=True, kw_only=True)
class RemotePerplexity:
    """``Perplexity`` without a model in this process: the engine says how likely the prompt was.

    ``base_url`` ends before ``/completions`` ("http://127.0.0.1:8000/v1"), ``model`` is the name
    that the engine serves. One request holds ``batch_size`` texts and asks for one token, with
    ``prompt_logprobs`` (vLLM) or ``echo`` and ``logprobs`` (OpenAI's legacy API: vLLM, SGLang,
    llama-cpp-python with ``logits_all``), as ``ask`` says; llama.cpp's server knows neither.

    With ``tokenizer``, a name or folder of the model's own, ids are sent and their places are
    exact; without, text is sent and the engine's tokens are matched to it (``aligned``). Nothing
    is dropped from the context. A text is read ``window`` characters at a time, the last
    ``overlap`` of them again as context. ``method`` is "self-information" (the
    ``reduce`` of a unit's own tokens) or "selective-context" (the mean of its phrase's); the score
    is s / (s + 3), as ``Perplexity`` has it with "nats". LLMLingua's own order, which needs
    the keys and values, is for a model in this process.

    Raises BackendError when the engine cannot be reached within ``timeout`` seconds, refuses, or
    returns no log-probabilities of the prompt, and InvalidRequest for options out of range.
    """

    base_url: str = field(kw_only=False)
    model: str = field(kw_only=False)
    method: Literal["self-information", "selective-context"] = "self-information"
    api_key: str | None = field(default=None, repr=False)
    tokenizer: str | None = None
    ask: Ask = "prompt_logprobs"
    window: int = 4000
    overlap: int = 1000
    batch_size: int = 16
    timeout: float = 60.0
    reduce: Reduce = "sum"

    def __post_init__(self) -> None:
        if "@" in self.base_url:
            raise InvalidRequest("base_url must hold no password; give api_key instead")
        if not self.base_url.startswith(("http://", "https://")):
            raise InvalidRequest(
                f"base_url must begin with http:// or https://, got {self.base_url!r}"
            )
        if self.method not in ("self-information", "selective-context"):
            raise InvalidRequest(
                f"method must be 'self-information' or 'selective-context', got {self.method!r}"
            )
        if self.ask not in ("prompt_logprobs", "echo"):
            raise InvalidRequest(f"ask must be 'prompt_logprobs' or 'echo', got {self.ask!r}")
        if self.reduce not in REDUCERS:
            raise InvalidRequest(
                f"reduce must be one of {', '.join(REDUCERS)}, got {self.reduce!r}"
            )
        if not 0 <= self.overlap <= self.window // 2 or self.batch_size < 1 or self.timeout <= 0:
            raise InvalidRequest(
                "overlap must be at most half the window, batch_size at least 1 and timeout over"
                f" 0, got {self.overlap} of {self.window}, {self.batch_size} and {self.timeout}"
            )

    @property
    def name(self) -> str:
        """Method and model."""
        return f"{self.method}:{self.model} at {self.base_url}"

    def score(self, texts: Sequence[Units], question: str | None = None) -> list[list[float]]:
        """Return a score for each unit; see ``Scorer.score``. The question is not used."""
        return [[score_of(nats) for nats in row] for row in self.information(texts)]

    def information(self, texts: Sequence[Units]) -> list[list[float]]:
        """Return the self-information of each unit in nats; see ``Perplexity.information``."""
        parts = [_Part(i, *span) for i, u in enumerate(texts) for span in self._windows(u)]
        clean = [replace_surrogates(units.text) for units in texts]
        prompts = [self._prompt(clean[part.text][part.context : part.end]) for part in parts]
        found: list[list[Known]] = [[] for _ in texts]
        for part, known in zip(parts, self._engine.ask_all(prompts), strict=True):
            moved = (Known(k.start + part.context, k.end + part.context, k.nats) for k in known)
            found[part.text] += (token for token in moved if token.start >= part.start)
        return [self._per_unit(units, own) for units, own in zip(texts, found, strict=True)]

    def _per_unit(self, units: Units, known: Sequence[Known]) -> list[float]:
        values = [token.nats for token in known]
        offsets = [(token.start, token.end) for token in known]
        text = Encoded.of(units, [0] * len(known), offsets)
        if self.method == "selective-context":
            return by_phrase(text, values)
        return text.per_unit(values, self.reduce)

    def _windows(self, units: Units) -> Iterator[tuple[int, int, int]]:
        """Yield where the context, what is asked for and the end of a request are."""
        borders = [unit.start for unit in units.units] + [units.tail]
        start = 0
        while start < units.tail:
            context = borders[bisect_left(borders, start - self.overlap)] if start else 0
            fits = bisect_left(borders, context + self.window + 1) - 1
            end = borders[fits] if borders[fits] > start else context + self.window
            yield context, start, min(max(end, start + 1), units.tail)
            start = end

    def _prompt(self, text: str) -> Prompt:
        if self._tokenizer is None:
            return Prompt(text)
        tokenizer, start = self._tokenizer
        encoding = tokenizer.encode(text, add_special_tokens=False)
        skipped = [(0, 0)] * len(start)
        return Prompt(text, (*start, *encoding.ids), (*skipped, *encoding.offsets))

    @cached_property
    def _tokenizer(self) -> tuple[Any, tuple[int, ...]] | None:
        if self.tokenizer is None:
            return None
        folder = resolve(self.tokenizer, kind="tokenizer")
        tokenizer = load_tokenizer(folder)
        tokenizer.encode_special_tokens = True
        return tokenizer, start_ids(folder, tokenizer)

    @cached_property
    def _engine(self) -> Engine:
        return Engine(
            self.base_url, self.model, self.api_key, self.ask, self.batch_size, self.timeout
        )


@dataclass(frozen=True, slots=True)
class _Part:
    """A request: characters ``context`` to ``end`` of a text, asked about from ``start`` on."""

    text: int
    context: int
    start: int
    end: int
