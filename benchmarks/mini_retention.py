"""Answers still in the text after compression: headrace-mini beside scorers that need no training.

    python benchmarks/mini_retention.py --data DATA [--questions 600] [--seed 0] [--language]

Questions of SQuAD articles that were not trained on, cut word by word with the same selector and
counted in the same tokens (WordPiece), then in words; an answer counts when it is in the result as
one string. ``--language`` adds the scorers that ask SmolLM2.
Then NQ questions that were not trained on, 20 documents each under one budget. Every scorer sees
the same texts in the same run; brackets hold 95 % bootstrap intervals over the questions.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from baselines import Random, WordCounter, baseline

from headrace.compressors import (
    Budget,
    Compressor,
    Lexical,
    Scorer,
    TokenCounter,
    Units,
    make_counter,
    split,
)
from headrace.compressors.mini import Mini
from headrace.compressors.mini.weights import DATA
from headrace.compressors.training.measuring import Asked, interval, nq_held_out, squad_held_out
from headrace.compressors.training.sources import squad

LANGUAGE = ("selective-context", "llmlingua")


@dataclass(frozen=True)
class Idf:
    """Rare words are worth much, by the share of training paragraphs that hold them."""

    paragraphs: Sequence[str]
    name: str = "idf"
    _counts: Counter[str] = field(default_factory=Counter, repr=False)

    def __post_init__(self) -> None:
        for paragraph in self.paragraphs:
            units = split(paragraph)
            self._counts.update({units.content(i).lower() for i in range(len(units.units))})

    def score(self, texts: Sequence[Units], question: str | None = None) -> list[list[float]]:
        """Return idf, divided by its largest value; the question is not used."""
        most = math.log(len(self.paragraphs) + 1)
        return [
            [
                math.log((len(self.paragraphs) + 1) / (self._counts[u.content(i).lower()] + 1))
                / most
                for i in range(len(u.units))
            ]
            for u in texts
        ]


def kept(
    asked: Asked, scorer: Scorer, rate: float, counter: TokenCounter, question: str | None
) -> tuple[bool, float]:
    """Return whether an answer is still there, and the share of tokens that is."""
    texts = [document.text for document in asked.documents]
    results = Compressor(scorer, counter).compress(
        texts, Budget(rate=rate), question=question, joint=True
    )
    text = " ".join(" ".join(result.text.split()) for result in results)
    tokens = sum(result.tokens_out for result in results)
    share = tokens / sum(result.tokens_in for result in results)
    return any(" ".join(answer.split()) in text for answer in asked.answers), share


def table(
    title: str,
    data: Sequence[Asked],
    scorers: Sequence[tuple[str, Scorer, bool]],
    rates: list[float],
    counter: TokenCounter,
) -> None:
    """Print one table: a row a scorer, a column a rate."""
    what = "words" if counter.name == "words" else "tokens"
    print(f"\n{title}: {len(data)} questions\n")
    print("| scorer | " + " | ".join(f"{rate:.0%} of the {what}" for rate in rates) + " |")
    print("|---" * (len(rates) + 1) + "|", flush=True)
    for name, scorer, is_asked in scorers:
        cells: list[str] = []
        for rate in rates:
            found = [
                kept(one, scorer, rate, counter, one.question if is_asked else None) for one in data
            ]
            hits = [float(hit) for hit, _ in found]
            low, high = interval(hits)
            cells.append(f"{sum(hits) / len(hits):.3f} [{low:.3f}, {high:.3f}]")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--weights", type=Path, default=DATA)
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--language", action="store_true", help="language models' scores too")
    options = parser.parse_args()
    started = time.perf_counter()
    idf = Idf([p for article in squad(options.data) for p in article.paragraphs])
    mini = Mini(options.weights, precision=options.precision)
    lexical, chance = Lexical(), Random(options.seed)
    data = squad_held_out(options.data, options.questions, options.seed)
    own = {"random": chance, "idf": idf, "lexical": lexical, "mini": mini}
    names = ["random", "idf", "lexical", *(LANGUAGE if options.language else ()), "mini"]
    blind = [(name, own.get(name) or baseline(name), False) for name in names]
    names = ["lexical", "sentences", *(["longllmlingua"] if options.language else []), "mini"]
    aware = [(name, own.get(name) or baseline(name), True) for name in names]
    tokens, words = make_counter(str(DATA)), WordCounter()
    title = "SQuAD, held-out articles"
    for counter in (tokens, words):
        table(f"{title}, no question", data, blind, [0.5, 0.33, 0.2], counter)
        table(f"{title}, with the question", data, aware, [0.33, 0.2, 0.1], counter)
    many = nq_held_out(options.data, options.questions, options.seed)
    aware = [row for row in aware if row[0] != "longllmlingua"]
    table("NQ, 20 documents, with the question", many, aware, [0.5, 0.25, 0.1], tokens)
    print(f"\nseed {options.seed}, {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
