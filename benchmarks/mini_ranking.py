"""Ranking with headrace-mini, beside BM25 and MiniLM's cosine, in one run.

    python benchmarks/mini_ranking.py --data DATA [--queries 50] [--precision bfloat16]

nDCG@10 over BM25's best 100 documents on scifact, cranfield and cacm (grades are gains; the ideal
ranks all relevant documents, found by BM25 or not), and the share of NQ questions, not trained on,
whose gold document is among the first 1, 3 and 5 of 20. Nothing of these was trained on, but for
other NQ questions. MiniLM reads the first 256 tokens, as its authors have it. Brackets hold 95 %
bootstrap intervals over the queries.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections.abc import Sequence
from pathlib import Path

from headrace import Document
from headrace.compressors import BM25, Reranker
from headrace.compressors.mini import MiniReranker
from headrace.compressors.mini.runners import best_device
from headrace.compressors.mini.weights import DATA
from headrace.compressors.rerankers.base import full_text
from headrace.compressors.training.measuring import Ranking, interval, nq_held_out, rankings
from headrace.compressors.training.start import Teacher

SETS = ("scifact", "cranfield", "cacm")
Named = Sequence[tuple[str, Reranker | None]]


class Cosine:
    """all-MiniLM-L6-v2 as it was published; embeddings are remembered by text."""

    name = "minilm"

    def __init__(self) -> None:
        self._embed = Teacher(best_device())

    def score(self, question: str, documents: Sequence[Document]) -> list[float]:
        """Return the cosine of each document."""
        texts = [full_text(document) for document in documents]
        vectors = self._embed([question, *texts])
        cosines: list[float] = (vectors[1:] @ vectors[0]).tolist()
        return cosines


def order(reranker: Reranker | None, query: str, documents: Sequence[Document]) -> list[Document]:
    """Return the documents best first; None leaves them as they are."""
    if reranker is None:
        return list(documents)
    scores = reranker.score(query, documents)
    return [documents[i] for i in sorted(range(len(documents)), key=lambda i: -scores[i])]


def ndcg(ranked: Sequence[Document], relevant: dict[str, int], depth: int = 10) -> float:
    """Return nDCG at a depth (Järvelin & Kekäläinen 2002), linear gains."""
    gains = [relevant.get(document.id or "", 0) for document in ranked[:depth]]
    ideal = sorted(relevant.values(), reverse=True)[:depth]
    return discounted(gains) / discounted(ideal)


def discounted(gains: Sequence[int]) -> float:
    """Return the sum of gains, each divided by the logarithm of its place."""
    return sum(gain / math.log2(place + 2) for place, gain in enumerate(gains))


def cell(values: Sequence[float]) -> str:
    """Return mean and interval."""
    low, high = interval(values)
    return f"{sum(values) / len(values):.3f} [{low:.3f}, {high:.3f}]"


def rank(folder: Path, sets: Sequence[str], queries: int, rerankers: Named) -> None:
    """Print nDCG@10, a row a reranker."""
    data: dict[str, list[Ranking]] = {}
    for name in sets:
        found = rankings(folder, name)
        data[name] = random.Random(0).sample(found, min(queries or len(found), len(found)))
    print("nDCG@10\n\n| reranker | " + " | ".join(f"{n}, {len(data[n])}" for n in sets) + " |")
    print("|---" * (len(sets) + 1) + "|", flush=True)
    for label, reranker in rerankers:
        cells = [
            cell([ndcg(order(reranker, r.query, r.documents), r.relevant) for r in data[name]])
            for name in sets
        ]
        print(f"| {label} | " + " | ".join(cells) + " |", flush=True)


def find(folder: Path, rerankers: Named) -> None:
    """Print how often the gold document is among the first, a row a reranker."""
    asked = nq_held_out(folder, 1000, 0)
    print(f"\nNQ, gold of 20 among the first, {len(asked)} questions\n")
    print("| reranker | 1 | 3 | 5 |\n|---|---|---|---|", flush=True)
    for label, reranker in rerankers:
        places = [
            [d.id for d in order(reranker, one.question, one.documents)].index(str(one.gold))
            for one in asked
        ]
        cells = [cell([float(place < depth) for place in places]) for depth in (1, 3, 5)]
        print(f"| {label} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--queries", type=int, default=50, help="a set, 0 for all")
    parser.add_argument("--weights", type=Path, default=DATA)
    parser.add_argument("--sets", nargs="+", choices=[*SETS, "nq"], default=[*SETS, "nq"])
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="float32")
    options = parser.parse_args()
    mini = (options.weights, None, options.precision)
    started = time.perf_counter()
    rerankers: list[tuple[str, Reranker | None]] = [
        ("BM25, as retrieved", None),
        ("BM25, over the 100", BM25()),
        ("MiniLM cosine", Cosine()),
        ("mini, the trained model alone", MiniReranker(*mini, embeddings=0.0, lexical=0.0)),
        ("mini, its embeddings alone (4 bits)", MiniReranker(*mini, model=0.0, lexical=0.0)),
        ("mini, without the trained model", MiniReranker(*mini, model=0.0)),
        ("mini", MiniReranker(*mini)),
    ]
    if sets := [name for name in SETS if name in options.sets]:
        rank(options.data, sets, options.queries, rerankers)
    if "nq" in options.sets:
        find(options.data, rerankers[1:])
    print(f"\n{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
