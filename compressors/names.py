"""What a user may have meant by a name."""

from __future__ import annotations

from pathlib import Path

READERS = ("llmlingua", "perplexity", "selective-context", "longllmlingua")
"""Scorers that ask a causal language model, which may follow behind a colon."""
SCORERS = ("auto", "lexical", "mini", "sentences", *READERS)
RERANKERS = ("auto", "bm25", "bi-encoder", "mini", "perplexity")


def is_bare_word(name: str) -> bool:
    """Whether a name may be a mistyped choice: it has no slash and is no folder.

    >>> is_bare_word("lexcial"), is_bare_word("org/model")
    (True, False)
    """
    return not any(mark in name for mark in "/\\~") and not Path(name).is_dir()
