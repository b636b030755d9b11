"""Fewer input tokens: score, select, render; and rerankers for documents.

>>> compressor = Compressor(make_scorer(), make_counter())
>>> text = "The meeting was very long. The total is 1,234.56 EUR, due on 12 May 2021."
>>> [result] = compressor.compress([text], Budget(rate=0.8))
>>> "1,234.56 EUR" in result.text
True
"""

from __future__ import annotations

from .budget import Budget
from .chat_tokens import count_messages
from .compressor import Compressed, Compressor
from .context import Context
from .documents import compress_documents
from .highlight import to_html
from .notes import Note, woven
from .openai_tokens import TiktokenCounter
from .perplexity import Perplexity, QuestionPerplexity, RemotePerplexity
from .recover import recover, recovered
from .rerankers import BM25, BiEncoder, CrossEncoder, Reranker, make_reranker, rerank
from .rerankers.fusion import Fusion
from .rerankers.perplexity import QuestionPerplexityReranker
from .scorers import Lexical, Scorer, TokenClassifier, make_scorer
from .scorers.sentences import Sentences
from .structure import split
from .structured.policy import JsonPolicy
from .structured.schemas import compress_tools
from .tokens import ApproximateCounter, TokenCounter, TokenizerCounter, make_counter
from .units import Unit, Units

__all__ = [
    "BM25",
    "ApproximateCounter",
    "BiEncoder",
    "Budget",
    "Compressed",
    "Compressor",
    "Context",
    "CrossEncoder",
    "Fusion",
    "JsonPolicy",
    "Lexical",
    "Note",
    "Perplexity",
    "QuestionPerplexity",
    "QuestionPerplexityReranker",
    "RemotePerplexity",
    "Reranker",
    "Scorer",
    "Sentences",
    "TiktokenCounter",
    "TokenClassifier",
    "TokenCounter",
    "TokenizerCounter",
    "Unit",
    "Units",
    "compress_documents",
    "compress_tools",
    "count_messages",
    "make_counter",
    "make_reranker",
    "make_scorer",
    "recover",
    "recovered",
    "rerank",
    "split",
    "to_html",
    "woven",
]
