"""One ranking out of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...middleware.errors import InvalidRequest
from ...middleware.types import Document
from .base import Reranker

_K = 60


def fuse(rankings: Sequence[Sequence[float]], *, k: int = _K) -> list[float]:
    """Return one score a document: the sum of ``1 / (k + rank)`` over the rankings.

    Reciprocal rank fusion (Cormack, Clarke & Büttcher, SIGIR 2009, section 2): only ranks count,
    so that scores of any scale can be fused. Each ranking holds one score a document, higher is
    better; documents of equal score share the best of their ranks.

    Raises InvalidRequest for a ``k`` below 0, no ranking, or rankings of different lengths.

    >>> scores = fuse([[0.9, 0.8, 0.1], [3.0, 40.0, 7.0]])
    >>> max(range(3), key=scores.__getitem__)
    1
    """
    if type(k) is not int or k < 0:
        raise InvalidRequest(f"k must be a whole number from 0 on, got {k!r}")
    lengths = {len(ranking) for ranking in rankings}
    if len(lengths) != 1:
        raise InvalidRequest(
            f"rankings need one score a document each, got {len(rankings)} rankings of lengths"
            f" {sorted(lengths)}"
        )
    total = [0.0] * lengths.pop()
    for ranking in rankings:
        first: dict[float, int] = {}
        for place, score in enumerate(sorted(ranking, reverse=True), 1):
            first.setdefault(score, place)
        total = [old + 1 / (k + first[score]) for old, score in zip(total, ranking, strict=True)]
    return total


@dataclass(frozen=True)
class Fusion:
    """Several rerankers fused into one by their ranks; see ``fuse``."""

    rerankers: tuple[Reranker, ...]
    k: int = _K

    def __post_init__(self) -> None:
        if not self.rerankers:
            raise InvalidRequest("fusion needs at least one reranker, got none")
        fuse([[]], k=self.k)

    @property
    def name(self) -> str:
        """The names, joined with a plus sign."""
        return " + ".join(reranker.name for reranker in self.rerankers)

    def score(self, question: str, documents: Sequence[Document]) -> list[float]:
        """Return the fused score of each document; see ``Reranker.score``."""
        return fuse([r.score(question, documents) for r in self.rerankers], k=self.k)
