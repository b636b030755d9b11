"""What is measured on: held-out SQuAD articles, NQ with 20 documents, rankings."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ...middleware.types import Document
from .files import read_lines, read_text
from .held_out import is_held_out
from .sources import squad


@dataclass(frozen=True)
class Asked:
    """A question whose answer is in the documents, word for word."""

    question: str
    answers: tuple[str, ...]
    documents: tuple[Document, ...]
    gold: int = 0


def squad_held_out(
    folder: Path, size: int, seed: int, part: Literal["dev", "test"] = "test"
) -> list[Asked]:
    """Return questions of the held-out articles; the answer is the first annotator's."""
    found = [
        Asked(a.question, a.answers[:1], (Document(article.paragraphs[a.paragraph]),))
        for article in squad(folder, part)
        for a in article.asked
        if a.answers and a.answers[0] in article.paragraphs[a.paragraph]
    ]
    return random.Random(seed).sample(found, min(size, len(found)))


def nq_held_out(folder: Path, size: int, seed: int) -> list[Asked]:
    """Return NQ questions that were not trained on, the gold document moved to each place."""
    rng = random.Random(seed)
    found: list[Asked] = []
    for record in read_lines(folder / "nq_litm" / "nq_20docs.jsonl.gz"):
        if not is_held_out(record):
            continue
        contexts: list[dict[str, Any]] = list(record["contexts"])
        gold = next(c for c in contexts if c["is_gold"])
        answers = tuple(a for a in record["answers"] if a in gold["text"])
        if not answers:
            continue
        contexts.remove(gold)
        place = rng.randrange(len(contexts) + 1)
        contexts.insert(place, gold)
        documents = tuple(
            Document(c["text"], title=c["title"], id=str(i)) for i, c in enumerate(contexts)
        )
        found.append(Asked(record["question"], answers, documents, place))
    return found[:size]


@dataclass(frozen=True)
class Ranking:
    """A query, BM25's best documents in its order, and which of all are relevant how much."""

    query: str
    documents: tuple[Document, ...]
    relevant: dict[str, int]


def rankings(folder: Path, name: str) -> list[Ranking]:
    """Return the queries of scifact, cranfield or cacm that have a relevant document."""
    place = folder / "rerank" / name
    corpus = {
        str(r["id"]): Document(r["text"], title=r["title"], id=str(r["id"]))
        for r in read_lines(place / "corpus.jsonl.gz")
    }
    relevant: dict[str, dict[str, int]] = {}
    for query, _, document, grade in _rows(place / "qrels.txt.gz"):
        if int(grade) > 0:
            relevant.setdefault(query, {})[document] = int(grade)
    ranked: dict[str, list[Document]] = {}
    for query, _, document, *_ in _rows(place / "bm25_top100.run.gz"):
        ranked.setdefault(query, []).append(corpus[document])
    return [
        Ranking(r["text"], tuple(ranked[str(r["id"])]), relevant[str(r["id"])])
        for r in read_lines(place / "queries.jsonl.gz")
        if str(r["id"]) in relevant and str(r["id"]) in ranked
    ]


def _rows(path: Path) -> list[list[str]]:
    return [line.split() for line in read_text(path).split("\n") if line.strip()]


def interval(values: Sequence[float], seed: int = 0, draws: int = 2000) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the mean."""
    import numpy

    data = numpy.asarray(values, dtype=float)
    rng = numpy.random.default_rng(seed)
    means = data[rng.integers(0, len(data), (draws, len(data)))].mean(1)
    low, high = numpy.quantile(means, [0.025, 0.975])
    return float(low), float(high)
