"""Fewer input tokens: score, select, render; and rerankers for documents.

>>> compressor = Compressor(make_scorer(), make_counter())
>>> text = "The meeting was very long. The total is 1,234.56 EUR, due on 12 May 2021."
>>> [result] = compressor.compress([text], Budget(rate=0.8))
>>> "1,234.56 EUR" in result.text
True
"""

from __future__ import annotations

from .budget import Budget
from .compressor import Compressed, Compressor
from .highlight import to_html
from .recover import recover, recovered
from .rerankers import BM25, BiEncoder, Reranker, make_reranker, rerank
from .scorers import Lexical, Scorer, TokenClassifier, make_scorer
from .structure import split
from .tokens import ApproximateCounter, TokenCounter, TokenizerCounter, make_counter
from .units import Unit, Units

__all__ = [
    "BM25",
    "ApproximateCounter",
    "BiEncoder",
    "Budget",
    "Compressed",
    "Compressor",
    "Lexical",
    "Reranker",
    "Scorer",
    "TokenClassifier",
    "TokenCounter",
    "TokenizerCounter",
    "Unit",
    "Units",
    "make_counter",
    "make_reranker",
    "make_scorer",
    "recover",
    "recovered",
    "rerank",
    "split",
    "to_html",
]
