"""Selective-Context and LLMLingua."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from ...middleware.errors import InvalidRequest
from ..units import Units
from .encoded import Encoded
from .options import Reader
from .phrases import phrases
from .scale import score_of
from .surprise import surprises

Method = Literal["llmlingua", "selective-context"]
Scale = Literal["share", "nats"]


@dataclass(frozen=True, kw_only=True)
class Perplexity(Reader):
    """Scores words by how little a causal language model expected them.

    A token's self-information is -ln p(token | context), in nats.

    - "llmlingua" (Jiang et al. 2023, section 4.2): the text is read in segments of ``segment``
      tokens, and the context of a segment is what survived of those before it. A scorer is asked
      before the budget is known, so ``rate`` says which share of the tokens survives as context:
      the best units of each segment. Their keys and values are kept as they were computed, so
      every token goes through the model once. A unit has the ``reduce`` of its tokens' ("sum",
      "mean" or "max"). As the paper thresholds each segment by itself, a unit's score is the
      share of its segment that is worth less: every part of a text is cut alike.
    - "selective-context" (Li et al. 2023, section 3): everything stays as context, and a unit has
      the mean over the tokens of its phrase (``phrases``). The score is s / (s + 3), one
      threshold for all texts.

    ``scale`` is the other map, "share" or "nats"; both grow with self-information. The question
    is not used (``QuestionPerplexity`` uses it). A text of any length is read: at most ``window``
    tokens are remembered, the oldest go first. Which texts are read together changes a score by
    rounding only (about 1e-5 nats in float32). Safe to use from several threads. The other
    options are those of ``Source``.

    "sum" kept the most answers on SQuAD articles set apart for choosing (300 questions, half of
    the tokens, SmolLM2-135M: sum 0.370, max 0.323, mean 0.293, phrases 0.373). That is less than
    ``Lexical`` keeps (0.463): a word that a model foresees may be half of an answer.

    Raises InvalidRequest for options out of range, ModelUnavailable when there is no model.
    """

    method: Method = field(default="llmlingua", kw_only=False)
    scale: Scale | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method not in ("llmlingua", "selective-context"):
            raise InvalidRequest(
                f"method must be 'llmlingua' or 'selective-context', got {self.method!r}"
            )
        if self.scale not in (None, "share", "nats"):
            raise InvalidRequest(f"scale must be 'share' or 'nats', got {self.scale!r}")

    @property
    def name(self) -> str:
        """Method and model."""
        return f"{self.method}:{self.model}"

    def score(self, texts: Sequence[Units], question: str | None = None) -> list[list[float]]:
        """Return a score for each unit; see ``Scorer.score``. The question is not used."""
        if not texts:
            return []
        model = self._loaded()
        encoded = model.encode(list(texts))
        pace = self._pace(model, self.rate if self.method == "llmlingua" else 1.0)
        found = surprises(model, encoded, pace)
        rows = [self._nats(text, values) for text, values in zip(encoded, found, strict=True)]
        scale = self.scale or ("share" if self.method == "llmlingua" else "nats")
        if scale == "nats":
            return [[score_of(nats) for nats in row] for row in rows]
        return [text.shares(row, pace.segment) for text, row in zip(encoded, rows, strict=True)]

    def _nats(self, text: Encoded, values: Sequence[float]) -> list[float]:
        if self.method == "selective-context":
            return by_phrase(text, values)
        return text.per_unit(values, self.reduce)


def by_phrase(text: Encoded, values: Sequence[float]) -> list[float]:
    """Return for each unit the mean over the tokens of its phrase; its own where it is in none."""
    found = text.per_unit(values, "mean")
    for words in phrases(text.units):
        own = [value for word in words for value in values[slice(*text.spans[word])]]
        if own:
            mean = sum(own) / len(own)
            for word in words:
                found[word] = mean
    return found
