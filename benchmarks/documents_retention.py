"""Answers still there when many documents share one budget: words alone, or documents first.

    python benchmarks/documents_retention.py --data DATA [--set nq] [--questions 60] [--rate 0.25]

NQ questions that were not trained on, 20 documents each (``--set hotpot``: HotpotQA's dev
questions, 10 documents each, which the defaults were chosen on). "joint" scores words of all
documents under one budget; ``compress_documents`` chooses documents, then sentences, then words.
Tokens are counted in WordPiece over the documents' texts, and every method gets the same number
of them; those of ``compress_documents`` pay for the titles, too. An answer counts when it is in
the result as one string; brackets hold 95 % bootstrap intervals over the questions. CPU-seconds
are the median a question. Methods run one after the other in one process: the embedded model
remembers what it has read with a question, so that the second method that uses it is cheaper.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from headrace.compressors import (
    BiEncoder,
    Budget,
    Compressor,
    Lexical,
    Scorer,
    TokenCounter,
    make_counter,
)
from headrace.compressors.documents import compress_documents
from headrace.compressors.mini import Mini
from headrace.compressors.mini.weights import DATA
from headrace.compressors.scorers.sentences import Sentences
from headrace.compressors.training.files import read_lines
from headrace.compressors.training.measuring import Asked, interval, nq_held_out
from headrace.middleware.types import Document

Method = Callable[[Asked, int], str]


def hotpot(folder: Path, size: int, seed: int) -> list[Asked]:
    """Return HotpotQA dev questions whose answer is in the documents."""
    records = [*read_lines(folder / "hotpotqa" / "dev.jsonl.gz")]
    random.Random(seed).shuffle(records)
    found = [
        Asked(
            record["question"],
            tuple(record["answers"]),
            tuple(Document(c["text"], title=c["title"]) for c in record["contexts"]),
        )
        for record in records
        if record["answers"][0].lower() not in ("yes", "no")
    ]
    return [a for a in found if any(a.answers[0] in d.text for d in a.documents)][:size]


def joint(scorer: Scorer, counter: TokenCounter) -> Method:
    """Return the method that scores the words of all documents."""

    def method(asked: Asked, tokens: int) -> str:
        results = Compressor(scorer, counter).compress(
            [document.text for document in asked.documents],
            Budget(target_tokens=tokens),
            question=asked.question,
            joint=True,
        )
        return "\n".join(result.text for result in results)

    return method


def documents_first(scorer: Scorer | None, counter: TokenCounter) -> Method:
    """Return the method that chooses documents and sentences first, by all-MiniLM-L6-v2."""
    encoder = BiEncoder()

    def method(asked: Asked, tokens: int) -> str:
        context = compress_documents(
            asked.question,
            asked.documents,
            Budget(target_tokens=tokens),
            reranker=encoder,
            scorer=scorer,
            counter=counter,
            sentences=Sentences(encoder),
        )
        return "\n".join(document.text for document in context.documents)

    return method


def row(
    name: str, method: Method, data: Sequence[Asked], rate: float, counter: TokenCounter
) -> str:
    """Return a line of the table."""
    hits: list[float] = []
    seconds: list[float] = []
    for asked in data:
        total = sum(counter.count_many([document.text for document in asked.documents]))
        started = time.process_time()
        text = " ".join(method(asked, int(rate * total)).split())
        seconds.append(time.process_time() - started)
        hits.append(float(any(" ".join(answer.split()) in text for answer in asked.answers)))
    low, high = interval(hits)
    mean = sum(hits) / len(hits)
    return f"| {name} | {mean:.3f} [{low:.3f}, {high:.3f}] | {median(seconds):.2f} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", choices=["nq", "hotpot"], default="nq")
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--rate", type=float, default=0.25)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--methods", nargs="*", help="only these rows")
    options = parser.parse_args()
    load = nq_held_out if options.set == "nq" else hotpot
    data = load(options.data, options.questions, options.seed)
    counter = make_counter(str(DATA))
    mini = Mini()
    methods: dict[str, Method] = {
        "lexical joint": joint(Lexical(), counter),
        "documents, sentences, lexical": documents_first(Lexical(), counter),
        "documents, whole sentences": documents_first(None, counter),
        "documents, sentences, mini": documents_first(mini, counter),
        "mini joint": joint(mini, counter),
    }
    print(f"{options.set}, {len(data)} questions, {options.rate:.0%} of the tokens\n")
    print("| method | answers kept | CPU-s a question |\n|---|---|---|", flush=True)
    for name, method in methods.items():
        if not options.methods or name in options.methods:
            print(row(name, method, data, options.rate, counter), flush=True)


if __name__ == "__main__":
    main()
