"""Compression speed: headrace's scorers, beside llmlingua 0.2.2 with the same weights.

    python benchmarks/compress_speed.py [--texts FILE ...] [--runs 5] [--peer PYTHON] [--memory]

The token classifier is all-MiniLM-L6-v2's encoder with a seeded head: what a word scores does not
matter for speed, and both sides load the same folder. One thread each; the two processes take
turns, and the table has the median CPU-seconds of a text. "reference" is headrace's word-by-word
reproduction of the peer's selection. Under the table: how many of float32's kept words the other
precisions keep. PYTHON is that of an environment with
the peer, which is never a dependency of headrace:

    python -m venv peer && peer/bin/pip install torch llmlingua==0.2.2 llama-index-core

(llama-index-core carries the tiktoken file that the peer would download.) --memory prints the peak
memory of compressing 1 and 4 MB with the classifier instead, each in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headrace.compressors import Budget, Compressor, Lexical, TokenClassifier, make_counter, split
from headrace.compressors.llmlingua.reference import Options, Reference
from headrace.middleware.models import resolve

WORDS = (5, 20, 100, 300, 4000)
RATE = 0.5
ROOT = Path(__file__).resolve().parents[1]
DEFAULT = [
    ROOT / "LICENSE",
    ROOT / "README.md",
    *sorted(ROOT.glob("docs/*.md")),
    *sorted(ROOT.glob("examples/documents/*.md")),
]
PEER = """
import json, os, sys, time
from pathlib import Path
import llama_index.core
cache = Path(llama_index.core.__file__).parent / "_static" / "tiktoken_cache"
os.environ["TIKTOKEN_CACHE_DIR"] = str(cache)
import torch
torch.set_num_threads(1)
from llmlingua import PromptCompressor
peer = PromptCompressor(sys.argv[1], use_llmlingua2=True, device_map="cpu")
print("ready", flush=True)
for line in sys.stdin:
    started = time.process_time()
    peer.compress_prompt(json.loads(line), rate=float(sys.argv[2]))
    print(time.process_time() - started, flush=True)
"""


def checkpoint(folder: Path) -> Path:
    """Save the classifier; the peer knows its family by the folder's name only."""
    import torch
    from transformers import AutoTokenizer, BertForTokenClassification

    path = folder / "bert-base-multilingual-cased-benchmark"
    torch.manual_seed(0)
    source = resolve("minilm")
    model: Any = BertForTokenClassification.from_pretrained(source, num_labels=2)
    model.save_pretrained(path)
    AutoTokenizer.from_pretrained(source).save_pretrained(path)
    return path


def timed(compressor: Compressor) -> Callable[[str], float]:
    """Return a function from a text to the CPU-seconds of compressing it."""

    def run(text: str) -> float:
        started = time.process_time()
        compressor.compress([text], Budget(rate=RATE))
        return time.process_time() - started

    return run


def peer(python: str, path: Path) -> Callable[[str], float]:
    """Start the peer and return the same function for it."""
    process = subprocess.Popen(
        [python, "-c", PEER, str(path), str(RATE)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    source, sink = process.stdout, process.stdin
    while (line := source.readline()) != "ready\n":  # it greets with other lines
        if not line:
            raise SystemExit(f"the peer did not start; try: {python} -c 'import llmlingua'")

    def run(text: str) -> float:
        sink.write(json.dumps(text) + "\n")
        sink.flush()
        while True:
            try:
                return float(source.readline())
            except ValueError:
                continue

    return run


def reference(path: Path) -> Callable[[str], float]:
    """Return the same function for the reference's selection on headrace's scorer.

    A word counts as one token where tiktoken's file is missing: for speed it does not matter.
    """
    exact = Reference(TokenClassifier(str(path)), make_counter(None).count)

    def run(text: str) -> float:
        started = time.process_time()
        exact.select([text], Options(rate=RATE))
        return time.process_time() - started

    return run


def agreement(scorers: dict[str, TokenClassifier], text: str) -> None:
    """Print how many of the first scorer's best half each of the others has in its own."""
    units = split(text)
    kept: dict[str, set[int]] = {}
    for name, scorer in scorers.items():
        [scores] = scorer.score([units])
        best = sorted(units.words, key=lambda i: -scores[i])
        kept[name] = set(best[: len(best) // 2])
    first, *others = kept
    for name in others:
        share = len(kept[first] & kept[name]) / max(len(kept[first]), 1)
        print(f"\n{name} keeps {share:.1%} of the words that {first} keeps.")


def memory(path: Path, words: list[str]) -> None:
    """Print the peak memory of a process that compresses so many bytes in so many texts."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import compress_speed as b;"
        " b.peak(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.stdin.read())"
    )
    print("| bytes | texts | peak MB |\n|---|---|---|")
    for size, texts in ((1, 1), (1_000_000, 1), (1_000_000, 100), (4_000_000, 400)):
        arguments = [str(Path(__file__).parent), str(path), str(size), str(texts)]
        subprocess.run(
            [sys.executable, "-c", code, *arguments], input=" ".join(words), text=True, check=True
        )


def peak(path: str, size: int, number: int, text: str) -> None:
    """Compress and print this process's peak memory."""
    text = (text * (size // len(text) + 1))[:size]
    step = size // number
    texts = [text[i * step : (i + 1) * step] for i in range(number)]
    compressor = Compressor(TokenClassifier(path, precision="bfloat16"), make_counter(None))
    compressor.compress(texts, Budget(rate=RATE))
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"| {size:,} | {number} | {megabytes:,.0f} |", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", nargs="+", type=Path, default=DEFAULT)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--peer", help="Python of an environment with llmlingua==0.2.2")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    words = " ".join(path.read_text(encoding="utf-8") for path in options.texts).split()
    with tempfile.TemporaryDirectory() as folder:
        path = checkpoint(Path(folder))
        if options.memory:
            memory(path, words)
            return
        counter = make_counter(None)
        scorers = {
            "classifier": TokenClassifier(str(path)),
            "bfloat16": TokenClassifier(str(path), precision="bfloat16"),
            "int8": TokenClassifier(str(path), precision="int8", device="cpu"),
        }
        sides = {"lexical": timed(Compressor(Lexical(), counter))}
        sides |= {name: timed(Compressor(scorer, counter)) for name, scorer in scorers.items()}
        sides["reference"] = reference(path)
        if options.peer:
            sides["llmlingua 0.2.2"] = peer(options.peer, path)
        for run in sides.values():
            run(" ".join(words[:50]))  # load and warm up
        print(f"CPU milliseconds a text, rate {RATE}, median of {options.runs}\n")
        print(f"| words | {' | '.join(sides)} | llmlingua / classifier, bfloat16, int8, ref. |")
        print("|---" * (len(sides) + 2) + "|")
        for size in (n for n in WORDS if n <= len(words)):
            seen: dict[str, list[float]] = {name: [] for name in sides}
            for i in range(options.runs):
                start = i * size % max(len(words) - size, 1)
                text = " ".join(words[start : start + size])
                for name, run in sides.items():
                    seen[name].append(run(text))
            medians = {name: statistics.median(values) * 1000 for name, values in seen.items()}
            theirs = medians.get("llmlingua 0.2.2")
            ours = ("classifier", "bfloat16", "int8", "reference")
            ratio = ", ".join(f"{theirs / medians[n]:.1f}x" for n in ours) if theirs else "not run"
            cells = " | ".join(f"{value:.1f}" for value in medians.values())
            print(f"| {size} | {cells} | {ratio} |", flush=True)
        agreement(scorers, " ".join(words[:2000]))


if __name__ == "__main__":
    main()
