"""How fast headrace-mini loads and reads, and its share of a request's time.

    python benchmarks/mini_speed.py --data DATA [--runs 3]

Loading is measured after torch was imported; reading in tokens a second over held-out SQuAD
paragraphs, all in one call, no question, beside the same weights in transformers. Medians of
interleaved runs: compare the rows of one. Then what each stage takes of requests with 20 documents
(NQ) that SmolLM2 answers in this process with 64 tokens, warm, from the reports' own seconds.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import torch

from headrace import Compress, Pipeline, Plan, Request, Rerank, Sampling
from headrace.backends import TransformersBackend
from headrace.compressors import TokenClassifier, make_counter, split
from headrace.compressors.mini import export
from headrace.compressors.mini.engine import Engine, Passage
from headrace.compressors.mini.runners import ArrayRunner
from headrace.compressors.mini.weights import DATA
from headrace.compressors.training.measuring import nq_held_out
from headrace.compressors.training.sources import squad


def shares(folder: Path, requests: int) -> None:
    """Print each stage's share of the time of requests."""
    seconds: dict[str, float] = {}
    with Pipeline([Rerank(), Compress(rate=0.25), Plan("off")], TransformersBackend()) as race:
        for number, asked in enumerate(nq_held_out(folder, requests + 1, 0)):
            request = Request.of(
                asked.question, documents=asked.documents, sampling=Sampling(max_tokens=64)
            )
            for row in race.run_sync(request).report.stages if number else ():
                seconds[row.stage] = seconds.get(row.stage, 0.0) + row.seconds
            if not number:
                race.run_sync(request)  # loads everything
    total = sum(seconds.values())
    print(f"\n20 documents, {requests} requests; share of their time:")
    for stage, spent in seconds.items():
        print(f"| {stage} | {spent / total:.0%} |")


def main() -> None:
    """Print seconds and tokens a second."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--paragraphs", type=int, default=60)
    parser.add_argument("--requests", type=int, default=4)
    options = parser.parse_args()
    paragraphs = [p for article in squad(options.data, "test") for p in article.paragraphs]
    texts = paragraphs[: options.paragraphs]
    loading: list[float] = []
    for _ in range(options.runs):
        started = time.perf_counter()
        Engine().runner(0)
        loading.append(time.perf_counter() - started)
    print(f"{torch.get_num_threads()} threads; loads in {statistics.median(loading):.2f} s")
    tokens = sum(make_counter(str(DATA)).count_many(texts))
    units = [split(text) for text in texts]
    speeds: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        classifier = TokenClassifier(str(export(Path(folder) / "mini")))
        classifier.score(units[:2])
        for _ in range(options.runs):
            started = time.perf_counter()
            classifier.score(units)
            seconds = {"transformers (TokenClassifier)": time.perf_counter() - started}
            plain = ArrayRunner(DATA)
            tokenizer = Engine().tokenizer
            rows = [[101, *tokenizer.encode(t, add_special_tokens=False).ids, 102] for t in texts]
            started = time.perf_counter()
            for row in rows:
                plain.score([row], [None])
            seconds["mini in numpy"] = time.perf_counter() - started
            for precision in ("float32", "bfloat16"):
                engine = Engine(precision="bfloat16" if precision == "bfloat16" else "float32")
                engine.read("", [Passage("warm")])
                started = time.perf_counter()
                engine.read("", [Passage(text) for text in texts])
                seconds[f"mini, {precision}"] = time.perf_counter() - started
            for name, spent in seconds.items():
                speeds.setdefault(name, []).append(tokens / spent)
    for name, found in speeds.items():
        print(f"| {name} | {statistics.median(found):,.0f} tokens/s |")
    shares(options.data, options.requests)


if __name__ == "__main__":
    main()
