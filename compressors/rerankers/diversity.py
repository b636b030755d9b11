"""Documents that add something, and documents that do not."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Sequence

from ...middleware.errors import InvalidRequest
from .bm25 import terms

_SHINGLE = 3


def diversify(
    relevance: Sequence[float],
    similarity: Sequence[Sequence[float]],
    *,
    balance: float = 0.7,
    top_k: int | None = None,
) -> list[int]:
    """Return indices of documents, each relevant and unlike those before it, best first.

    Maximal marginal relevance (Carbonell & Goldstein, SIGIR 1998): the next document has the
    largest ``balance * relevance - (1 - balance) * similarity`` to the most similar one chosen.
    ``relevance`` is brought to [0, 1] by its least and largest value; ``similarity`` is a square
    matrix in [0, 1] (``likeness(texts)``, or cosines of embeddings). A ``balance`` of 1 ranks by
    relevance alone.

    Raises InvalidRequest for a balance outside [0, 1], a ``top_k`` below 1, a matrix of another
    size.

    >>> diversify([0.9, 0.8, 0.5], [[1, 1, 0], [1, 1, 0], [0, 0, 1]], balance=0.5)
    [0, 2, 1]
    """
    if not 0 <= balance <= 1:
        raise InvalidRequest(f"balance must be in [0, 1], got {balance!r}")
    if top_k is not None and (type(top_k) is not int or top_k < 1):
        raise InvalidRequest(f"top_k must be a whole number from 1 on, got {top_k!r}")
    size = len(relevance)
    if len(similarity) != size or any(len(row) != size for row in similarity):
        raise InvalidRequest(f"similarity must have {size} rows of {size} numbers")
    low, high = min(relevance, default=0.0), max(relevance, default=0.0)
    scale = (high - low) or 1.0
    left = {i: (relevance[i] - low) / scale for i in range(size)}
    nearest = [0.0] * size
    chosen: list[int] = []
    while left and (top_k is None or len(chosen) < top_k):
        best = max(left, key=lambda i: (balance * left[i] - (1 - balance) * nearest[i], -i))
        del left[best]
        chosen.append(best)
        for i in left:
            nearest[i] = max(nearest[i], float(similarity[best][i]))
    return chosen


def likeness(texts: Sequence[str]) -> list[list[float]]:
    """Return the cosine of each pair of texts over their counted terms, in [0, 1]; no model.

    >>> [[round(cosine, 2) for cosine in row] for row in likeness(["a b", "a b", "c"])]
    [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    rows: list[dict[str, float]] = []
    for text in texts:
        counts = Counter(terms(text))
        length = math.sqrt(sum(number**2 for number in counts.values())) or 1.0
        rows.append({term: number / length for term, number in counts.items()})
    return [
        [
            min(sum((weight * other.get(term, 0.0) for term, weight in row.items()), 0.0), 1.0)
            for other in rows
        ]
        for row in rows
    ]


def originals(texts: Sequence[str], *, threshold: float = 0.8) -> list[int]:
    """Return for each text the index of the first text that it is a near copy of, else its own.

    Two texts are near copies when the Jaccard index of their runs of three terms (shingles, Broder
    1997) is at least ``threshold`` and they hold the same numbers: two invoices of one form are
    no copies. Put the text that should survive first.

    Raises InvalidRequest for a threshold outside (0, 1].

    >>> originals(["The mill stands on the river.", "Bread", "the mill  stands on the river!"])
    [0, 1, 0]
    """
    if not 0 < threshold <= 1:
        raise InvalidRequest(f"threshold must be in (0, 1], got {threshold!r}")
    found: list[int] = []
    plain: dict[str, int] = {}
    sizes: dict[int, int] = {}
    numbers: dict[int, set[str]] = {}
    holders: dict[tuple[str, ...], list[int]] = {}
    for i, text in enumerate(texts):
        key = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
        words = terms(text)
        own = {word for word in words if any(map(str.isdigit, word))}
        shingles = _shingles(words)
        shared = Counter(j for shingle in shingles for j in holders.get(shingle, ()))
        near = [
            j
            for j, common in shared.items()
            if common >= threshold * (sizes[j] + len(shingles) - common) and own == numbers[j]
        ]
        original = min([plain.get(key, i), *near])
        found.append(original)
        if original == i:
            plain[key] = i
            sizes[i], numbers[i] = len(shingles), own
            for shingle in shingles:
                holders.setdefault(shingle, []).append(i)
    return found


def _shingles(words: Sequence[str]) -> set[tuple[str, ...]]:
    if len(words) < _SHINGLE:
        return {tuple(words)} if words else set()
    return {tuple(words[i : i + _SHINGLE]) for i in range(len(words) - _SHINGLE + 1)}
