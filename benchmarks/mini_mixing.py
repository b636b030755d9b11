"""How much of the sentence and of the passage a word's score should hold, on HotpotQA's dev set.

    python benchmarks/mini_mixing.py --data DATA [--questions 80]

Answers still in the text, ten paragraphs under one budget, for each mix of ``Mini``'s two weights.
The questions were not trained on; they are not those of the other benchmarks.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from headrace import Document
from headrace.compressors import Budget, Compressor, make_counter
from headrace.compressors.mini import Mini
from headrace.compressors.mini.weights import DATA
from headrace.compressors.training.files import read_lines
from headrace.compressors.training.measuring import Asked

RATES = (0.33, 0.2, 0.1)


def hotpot(folder: Path, size: int) -> list[Asked]:
    """Return dev questions whose answer is in a gold paragraph."""
    found: list[Asked] = []
    for record in read_lines(folder / "hotpotqa" / "dev.jsonl.gz"):
        gold = " ".join(c["text"] for c in record["contexts"] if c["is_gold"])
        if (answers := tuple(a for a in record["answers"] if a in gold)) and len(answers[0]) > 3:
            documents = tuple(Document(c["text"]) for c in record["contexts"])
            found.append(Asked(record["question"], answers, documents))
    return found[:size]


def main() -> None:
    """Print a row a mix."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=80)
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--weights", type=Path, default=DATA)
    options = parser.parse_args()
    data = hotpot(options.data, options.questions)
    counter = make_counter(str(options.weights))
    print(f"HotpotQA dev, {len(data)} questions, answers kept at {RATES}", flush=True)
    for relevance in (0.0, 0.25, 0.5, 1.0):
        for sentence in (0.0, 0.2, 0.4):
            scorer = Mini(
                options.weights,
                precision=options.precision,
                sentence=sentence,
                relevance=relevance,
            )
            cells: list[str] = []
            for rate in RATES:
                hits = 0
                for one in data:
                    results = Compressor(scorer, counter).compress(
                        [document.text for document in one.documents],
                        Budget(rate=rate),
                        question=one.question,
                        joint=True,
                    )
                    text = " ".join(result.text for result in results)
                    hits += any(answer in text for answer in one.answers)
                cells.append(f"{hits / len(data):.3f}")
            print(f"relevance {relevance}, sentence {sentence}: {' '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
