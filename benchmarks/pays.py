"""Whether Compress(when="pays") chooses right, and what it costs where it does not compress.

    OMP_NUM_THREADS=1 python benchmarks/pays.py --data DATA [--lengths 200 800 ...] [--minutes 10]

SmolLM2 in this process answers prompts of SQuAD paragraphs with 8 tokens, in random order, three
ways: as they are, always compressed, and compressed when that pays, with a predictor that starts
from a generic CPU and learns from every answer. The prefix cache is off. Seconds are CPU seconds of
the whole request, compressor and decision included; the predictions are wall seconds. Each
compressor is loaded and timed at a request before, which is not counted.
A choice is right when the way that it took is the cheaper one of the first two, or within 2 %.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from headrace import Compress, Document, Pipeline, Plan, Request, Sampling
from headrace.backends import TransformersBackend
from headrace.compressors import make_counter
from headrace.compressors.training.sources import squad
from headrace.middleware.cost import Predictor, predictor_of
from headrace.middleware.types import Middleware, Response

TIE = 0.02
ALLOWED = 0.05
QUESTION = "What is the text about?"


@dataclass
class Cell:
    """One prompt length with one compressor and rate: CPU seconds a way, and what was chosen."""

    length: int
    compressor: str
    rate: float
    seconds: dict[str, list[float]]
    chosen: list[bool]
    predicted: list[tuple[float, float]]
    errors: list[float]


def timed(bare: Pipeline, stages: list[Middleware], request: Request) -> tuple[float, Response]:
    """Return the CPU seconds of a request, and its answer."""
    pipeline = Pipeline([*stages, Plan("off")], bare.dispatcher, loop=bare.loop)
    started = time.process_time()
    response = pipeline.run_sync(request)
    return time.process_time() - started, response


def measure(bare: Pipeline, cost: Predictor, cell: Cell, request: Request, tokenizer: str) -> None:
    """Answer one request in all three ways."""
    options = {"compressor": cell.compressor, "tokenizer": tokenizer}
    always = Compress(cell.rate, **options)  # type: ignore[arg-type]
    asked = Compress(cell.rate, when="pays", cost=cost, **options)  # type: ignore[arg-type]
    ways: dict[str, list[Middleware]] = {"plain": [], "always": [always], "pays": [asked]}
    names = [*ways]
    random.shuffle(names)
    for name in names:
        spent, response = timed(bare, ways[name], request)
        cell.seconds[name].append(spent)
        if name == "pays":
            row = response.report.stage("compress")
            assert row is not None
            took = row.details["engine_seconds"]
            cell.chosen.append(bool(row.details["pays"]))
            cell.predicted.append((row.details["predicted_saved"], row.details["predicted_spent"]))
            actual = took["prefill"] + took["decode"]
            forecast = took["predicted"]["prefill"] + took["predicted"]["decode"]
            cell.errors.append(forecast / actual - 1)


def main() -> None:
    """Print the table and how many choices were right."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument(
        "--lengths", type=int, nargs="+", default=[200, 400, 800, 1600, 3200, 6400, 8000]
    )
    parser.add_argument("--compressors", nargs="+", default=["lexical", "mini", "perplexity"])
    parser.add_argument("--rates", type=float, nargs="+", default=[0.3, 0.6, 0.9])
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--minutes", type=float, help="report what is measured by then")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    random.seed(options.seed)
    texts = [p for article in squad(options.data, "test") for p in article.paragraphs]
    cells = [
        Cell(length, name, rate, {"plain": [], "always": [], "pays": []}, [], [], [])
        for length in options.lengths
        for name in options.compressors
        for rate in options.rates
    ]
    with Pipeline((), TransformersBackend("smollm2", prefix_cache_mb=0)) as bare:
        capabilities = bare.blocking(bare.dispatcher.backend.capabilities())
        cost, tokenizer = predictor_of(capabilities), capabilities.tokenizer
        assert cost is not None
        assert tokenizer is not None
        count = make_counter(tokenizer).count

        def prompt(length: int) -> Request:
            documents: list[Document] = []
            room = min(length, (capabilities.context_length or length) - 100)
            while room > 20:
                text = random.choice(texts)
                while count(text) > room:
                    text = text.rpartition(" ")[0]
                documents.append(Document(text))
                room -= count(text) + 4
            return Request.of(QUESTION, documents=documents, sampling=Sampling(max_tokens=8))

        until = time.monotonic() + 60 * (options.minutes or 1e9)
        for name in options.compressors:  # load everything, and time each compressor once
            first = Compress(0.5, compressor=name, when="pays", cost=cost, tokenizer=tokenizer)
            timed(bare, [first], prompt(300))
        for _ in range(options.runs):
            for cell in random.sample(cells, len(cells)):
                if time.monotonic() > until:
                    break
                measure(bare, cost, cell, prompt(cell.length), tokenizer)
    report([cell for cell in cells if cell.chosen])


def report(cells: list[Cell]) -> None:
    """Print a row a cell, then the sums."""
    print("| tokens | compressor | rate | plain | always | pays | chose | right | off |")
    print("|---|---|---|---|---|---|---|---|---|")
    right, costs, errors = 0, list[float](), list[float]()
    for cell in cells:
        plain, always, pays = (statistics.median(cell.seconds[n]) for n in cell.seconds)
        chose = statistics.median(cell.chosen) >= 0.5
        is_right = (always if chose else plain) <= (1 + TIE) * min(plain, always)
        right += is_right
        costs.append(pays / plain - 1)
        errors += cell.errors
        print(
            f"| {cell.length} | {cell.compressor} | {cell.rate} | {plain:.2f} | {always:.2f} "
            f"| {pays:.2f} | {'compress' if chose else 'leave'} | {'yes' if is_right else 'NO'} "
            f"| {statistics.median(cell.errors):+.0%} |"
        )
    num_dear = sum(cost > ALLOWED for cost in costs)
    spent = {n: sum(statistics.median(c.seconds[n]) for c in cells) for n in cells[0].seconds}
    print(f"\n{right} of {len(cells)} choices right ({right / len(cells):.0%})")
    print(f"pays against plain: worst {max(costs):+.1%}, {num_dear} cells dearer by over 5 %")
    print(f"all cells: plain {spent['plain']:.1f} s, always {spent['always']:.1f}, ", end="")
    print(f"pays {spent['pays']:.1f}")
    print(f"engine's time: median error {statistics.median(map(abs, errors)):.0%}")


if __name__ == "__main__":
    main()
