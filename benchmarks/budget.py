"""Is the budget met? Asked and achieved tokens on five kinds of text, with several counters.

    python benchmarks/budget.py --data DIR [--peer PYTHON] [--compressor NAME]

DIR holds realdocs/ (a meeting, a Markdown page, a log, a Chinese page) and wikitext2/ (prose). Each
text is cut at the line end after 8,000 characters. Asked are rates .9 to .05 and targets 1000 to
10. A cell is what was achieved in tokens over what was asked in tokens; it misses (marked !) when
it is above, or when it is below 95 % and the best word left out has fewer tokens than there was
room. PYTHON is that of an environment with llmlingua 0.2.2 (see compress_speed.py); it counts
with cl100k_base, and its cells are its own counts. Exit code 1 if headrace misses.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from headrace.compressors import (
    Budget,
    Compressed,
    Compressor,
    TokenCounter,
    make_counter,
    make_scorer,
)
from headrace.middleware.models import resolve

RATES = (0.9, 0.75, 0.5, 0.33, 0.2, 0.1, 0.05)
TARGETS = (1000, 500, 200, 100, 50, 20, 10)
COUNTERS = (None, "smollm2", "minilm")
LENGTH = 8000
FILES = {
    "meeting": "meeting_product.txt",
    "markdown": "18f_open_source.md",
    "log": "kafka_server.log",
    "Chinese": "react_zh-hans_react-labs-what-we-have-been-working-on-march-2023.md",
}
PEER = """
import json, os, sys
from pathlib import Path
import llama_index.core
cache = Path(llama_index.core.__file__).parent / "_static" / "tiktoken_cache"
os.environ["TIKTOKEN_CACHE_DIR"] = str(cache)
import torch
torch.set_num_threads(1)
from llmlingua import PromptCompressor
peer = PromptCompressor(sys.argv[1], use_llmlingua2=True, device_map="cpu")
for line in sys.stdin:
    text, rate, target = json.loads(line)
    asked = {"rate": rate} if rate else {"target_token": target}
    try:
        found = peer.compress_prompt([text], **asked)
        cell = [found["origin_tokens"], found["compressed_tokens"]]
    except Exception as error:
        cell = [0, type(error).__name__]
    print("cell", json.dumps(cell), flush=True)
"""


def texts(data: Path) -> dict[str, str]:
    """Return the five texts by kind."""
    with gzip.open(data / "wikitext2" / "valid.txt.gz", "rt", encoding="utf-8") as file:
        found = {"prose": file.read()}
    for kind, name in FILES.items():
        found[kind] = (data / "realdocs" / name).read_text(encoding="utf-8")
    return {kind: text[: text.find("\n", LENGTH) + 1 or None] for kind, text in found.items()}


def asked_for() -> list[Budget]:
    """Return the columns."""
    rates = [Budget(rate=rate) for rate in RATES]
    return rates + [Budget(target_tokens=target) for target in TARGETS]


def is_missed(result: Compressed, limit: int, counter: TokenCounter) -> bool:
    """Whether there is too much, or room was left that the best dropped word would fit into."""
    if result.tokens_out > limit:
        return True
    if result.tokens_out >= 0.95 * limit or result.text == result.original:
        return False
    gaps = [
        (score, start, end)
        for start, end, score in result.scores
        if not any(a <= start and end <= b for a, b in result.spans)
    ]
    if not gaps:
        return False
    _, start, end = max(gaps)
    room = limit - result.tokens_out
    return counter.count(" " + result.original[start:end]) + 1 <= room


def table(kinds: dict[str, str], compressor: Compressor) -> int:
    """Print one counter's table; return the number of misses."""
    misses = 0
    for kind, text in kinds.items():
        cells: list[str] = []
        for budget in asked_for():
            (result,) = compressor.compress([text], budget)
            limit = min(budget.limit(result.tokens_in) or 0, result.tokens_in)
            missed = is_missed(result, limit, compressor.counter)
            misses += missed
            share = 100 * result.tokens_out / limit if limit else 100.0
            cells.append(f"{share:.1f} %{'!' if missed else ''}")
        print(f"| {kind} | {compressor.counter.name} | {' | '.join(cells)} |", flush=True)
    return misses


def checkpoint(folder: Path) -> Path:
    """Save a seeded classifier; the peer knows its family by the folder's name only."""
    import torch
    from transformers import AutoTokenizer, BertForTokenClassification

    path = folder / "bert-base-multilingual-cased-benchmark"
    torch.manual_seed(0)
    source = resolve("minilm")
    model: Any = BertForTokenClassification.from_pretrained(source, num_labels=2)
    model.save_pretrained(path)
    AutoTokenizer.from_pretrained(source).save_pretrained(path)
    return path


def peer_table(kinds: dict[str, str], python: str) -> None:
    """Print the peer's."""
    questions = [
        json.dumps([text, budget.rate, budget.target_tokens])
        for text in kinds.values()
        for budget in asked_for()
    ]
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(
            [python, "-c", PEER, str(checkpoint(Path(folder)))],
            input="\n".join(questions) + "\n",
            capture_output=True,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        )
    answers = [json.loads(line[5:]) for line in run.stdout.splitlines() if line.startswith("cell ")]
    if len(answers) != len(questions):
        raise SystemExit(f"the peer stopped: {run.stderr.strip().splitlines()[-1:]}")
    columns = asked_for()
    for row, kind in enumerate(kinds):
        cells: list[str] = []
        for column, budget in enumerate(columns):
            before, after = answers[row * len(columns) + column]
            if isinstance(after, str):
                cells.append(after)
                continue
            limit = min(budget.limit(before) or 1, before)
            cells.append(f"{100 * after / limit:.1f} %")
        print(f"| {kind} | llmlingua 0.2.2, cl100k | {' | '.join(cells)} |")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--peer", help="Python of an environment with llmlingua==0.2.2")
    parser.add_argument("--compressor", default="lexical")
    options = parser.parse_args()
    kinds = texts(options.data)
    scorer = make_scorer(options.compressor)
    heads = [*(f"{rate:g}" for rate in RATES), *(str(target) for target in TARGETS)]
    print(f"| text | counter | {' | '.join(heads)} |")
    print("|---" * (len(heads) + 2) + "|")
    misses = 0
    for name in COUNTERS:
        misses += table(kinds, Compressor(scorer, make_counter(name)))
    if options.peer:
        peer_table(kinds, options.peer)
    print(f"\n{misses} missed of {len(kinds) * len(COUNTERS) * len(asked_for())}")
    raise SystemExit(bool(misses))


if __name__ == "__main__":
    main()
