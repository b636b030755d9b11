"""headrace-mini: the embedded model. One small encoder scores tokens and ranks passages.

``Mini`` is a scorer, ``MiniReranker`` a reranker; both read their weights from ``data/`` in this
folder, and what one has read of a question and a text the other needs not read again. Training is
in ``headrace.compressors.training``; docs/headrace-mini.md says how good it is, and at what not.
"""

from __future__ import annotations

from .export import export
from .reranker import MiniReranker
from .scorer import Mini

__all__ = ["Mini", "MiniReranker", "export"]
