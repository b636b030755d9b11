"""Ranking by shared words."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...middleware.types import Document
from .base import full_text

_WORD = re.compile(r"\w+(?:['’]\w+)?")
_WIDE = re.compile(r"([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff]+)")


@dataclass(frozen=True, slots=True)
class BM25:
    """BM25 in Lucene's form (Robertson & Zaragoza 2009; bm25s, Lù 2024).

    Scores are 0 or more; 0 means that no word is shared. Words are case-folded and read without
    accents, no stop words are dropped (their weight is small), scripts without spaces are read
    as character pairs. ``k1`` and ``b`` are the usual parameters.
    """

    k1: float = 1.5
    b: float = 0.75
    name: str = "bm25"

    def score(self, question: str, documents: Sequence[Document]) -> list[float]:
        """Return BM25 of each document; see ``Reranker.score``."""
        tokens = [terms(full_text(document)) for document in documents]
        vocabulary = {term for row in tokens for term in row}
        asked = [term for term in terms(question) if term in vocabulary]
        if not asked:
            return [0.0] * len(documents)
        import bm25s

        index: Any = bm25s.BM25(k1=self.k1, b=self.b, method="lucene", backend="numpy")
        index.index(tokens, show_progress=False)
        scores: list[float] = index.get_scores(asked).tolist()
        return scores

    def share(self, question: str, documents: Sequence[Document]) -> list[float]:
        """Return BM25 of each document as a share, in [0, 1], of the most that one could have.

        That is the sum of the question's terms' weights: of a document that holds each of them
        without end. Unlike the scores, shares can be compared between questions.
        """
        tokens = [set(terms(full_text(document))) for document in documents]
        most = 0.0
        for term in terms(question):
            with_it = sum(term in row for row in tokens)
            most += math.log1p((len(tokens) - with_it + 0.5) / (with_it + 0.5))
        scores = self.score(question, documents)
        return [min(score / most, 1.0) if most else 0.0 for score in scores]


def terms(text: str) -> list[str]:
    """Return the terms of a text in any language.

    >>> terms("Zürich's 東京都")
    ['zurich', '東京', '京都']
    """
    folded = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(c for c in folded if not "\u0300" <= c <= "\u036f")
    found: list[str] = []
    for word in _WORD.findall(unicodedata.normalize("NFC", plain)):
        for part in filter(None, _WIDE.split(re.split("['’]", word)[0])):
            if _WIDE.match(part) and len(part) > 1:
                found += [part[i : i + 2] for i in range(len(part) - 1)]
            else:
                found.append(part)
    return found
