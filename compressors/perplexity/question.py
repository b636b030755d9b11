"""LongLLMLingua: what a question makes more likely."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...middleware.errors import InvalidRequest
from ..units import Units
from .encoded import Encoded
from .model import CausalModel
from .options import Reader
from .relevance import relevances
from .surprise import surprises


@dataclass(frozen=True, kw_only=True)
class QuestionPerplexity(Reader):
    """Scores words by how much a question explains them (LongLLMLingua, Jiang et al. 2024).

    - Contrast (section 4.2, equation 5): a token is worth
      -ln p(token | context) + ln p(token | question, context), read as ``Perplexity`` reads with
      "llmlingua", both contexts in step and with the same survivors. The question's keys and
      values are computed once for all texts. A unit has the ``reduce`` of its tokens'.
    - Dynamic rate (section 4.3): texts are ranked by ``QuestionPerplexityReranker``'s measure,
      and the k-th best of K keeps a share of rate + d (1 - 2 k / (K - 1)) of its tokens, k from
      0, with d = ``dynamic``. A selection has one threshold for all texts, so the scores carry
      it: a unit's score is (r + d_k + d) / (1 + 2 d), where r is the share of its segment that
      is worth less and d_k the text's d (1 - 2 k / (K - 1)). Under a joint budget every text then
      keeps what the equation gives it, whatever the rate.

    Scores are ranks: a threshold budget of t keeps a share, not what is over a probability.
    Without a question the values are ``Perplexity``'s. The other options are ``Perplexity``'s.
    """

    dynamic: float = 0.3

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dynamic < 0:
            raise InvalidRequest(f"dynamic must be 0 or more, got {self.dynamic!r}")

    @property
    def name(self) -> str:
        """Method and model."""
        return f"longllmlingua:{self.model}"

    def score(self, texts: Sequence[Units], question: str | None = None) -> list[list[float]]:
        """Return a score for each unit; see ``Scorer.score``."""
        if not texts:
            return []
        model = self._loaded()
        encoded = model.encode(list(texts))
        pace = self._pace(model, self.rate)
        asked = (question or "").strip()
        if not asked:
            found = surprises(model, encoded, pace)
            shares = [0.0] * len(texts)
        else:
            condition = model.ids(f"{asked}\n\n")[-(pace.window // 4) :]
            found = surprises(model, encoded, pace, [[], condition])
            shares = self._shares(model, asked, [units.text for units in texts])
        return [
            self._scores(text, text.per_unit(values, self.reduce), share, pace.segment)
            for text, values, share in zip(encoded, found, shares, strict=True)
        ]

    def _shares(self, model: CausalModel, question: str, texts: Sequence[str]) -> list[float]:
        """Return how much more than the rate each text keeps, from the best to the worst."""
        if len(texts) < 2 or not self.dynamic:
            return [0.0] * len(texts)
        found = relevances(model, question, texts, self._room(model), self.batch_tokens)
        order = sorted(range(len(texts)), key=lambda i: -found[i])
        shares = [0.0] * len(texts)
        for place, i in enumerate(order):
            shares[i] = self.dynamic * (1 - 2 * place / (len(texts) - 1))
        return shares

    def _scores(
        self, text: Encoded, values: Sequence[float], share: float, segment: int
    ) -> list[float]:
        most = 1 + 2 * self.dynamic
        return [(own + share + self.dynamic) / most for own in text.shares(values, segment)]
