"""Speed of the perplexity scorer, beside llmlingua 0.2.2's perplexity path with the same weights.

    python benchmarks/perplexity_speed.py [--texts FILE ...] [--runs 3] [--peer PYTHON]

SmolLM2-135M-Instruct in float32, one thread each, whole calls (tokenise, score, cut to half). The
two processes take turns on the same texts; the table has the median tokens a CPU-second. The
peer dies on today's transformers beyond 200 tokens, so its ``get_ppl`` is wrapped: the cache goes
in as a DynamicCache and comes out as a list. PYTHON is that of an environment with the peer,
which is never a dependency of headrace:

    python -m venv peer && peer/bin/pip install torch llmlingua==0.2.2 llama-index-core

(llama-index-core carries the tiktoken file that the peer would download.)
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from headrace.compressors import Budget, Compressor, TokenCounter, make_counter
from headrace.compressors.perplexity import Perplexity
from headrace.middleware.models import resolve

WORDS = (100, 300, 600, 1200)
RATE = 0.5
ROOT = Path(__file__).resolve().parents[1]
DEFAULT = [ROOT / "README.md", *sorted(ROOT.glob("examples/documents/*.md")), ROOT / "LICENSE"]
PEER = """
import json, os, sys, time
from pathlib import Path
import llama_index.core
cache = Path(llama_index.core.__file__).parent / "_static" / "tiktoken_cache"
os.environ["TIKTOKEN_CACHE_DIR"] = str(cache)
import torch
torch.set_num_threads(1)
from transformers import DynamicCache
from llmlingua import PromptCompressor

class Peer(PromptCompressor):
    def get_ppl(self, *args, past_key_values=None, return_kv=False, **options):
        if past_key_values is not None:
            wrapped = Wrapped()
            for at, (keys, values) in enumerate(past_key_values):
                wrapped.update(keys, values, at)
            past_key_values = wrapped
        found = super().get_ppl(
            *args, past_key_values=past_key_values, return_kv=return_kv, **options
        )
        if not return_kv:
            return found
        loss, cache = found
        return loss, [[layer.keys, layer.values] for layer in cache.layers]

class Wrapped(DynamicCache):
    def __getitem__(self, at):
        return self.layers[at].keys, self.layers[at].values

peer = Peer(sys.argv[1], device_map="cpu", model_config={"dtype": torch.float32})
positions = [0]
peer.model.model.embed_tokens.register_forward_pre_hook(
    lambda _, args: positions.append(args[0].numel())
)
print("ready", flush=True)
for line in sys.stdin:
    positions.clear()
    started = time.process_time()
    result = peer.compress_prompt([json.loads(line)], rate=float(sys.argv[2]))
    seconds = time.process_time() - started
    print(json.dumps([seconds, sum(positions), result["compressed_prompt"]]), flush=True)
"""

Side = Callable[[str], tuple[float, int, str]]
"""From a text to CPU-seconds, positions that went through the model, and the result."""


def timed(dtype: str, counter: TokenCounter) -> Side:
    """Return the function for our scorer."""
    scorer = Perplexity(dtype=dtype)
    compressor = Compressor(scorer, counter)
    positions: list[int] = []
    model = scorer._loaded().model  # pyright: ignore[reportPrivateUsage]
    model.get_input_embeddings().register_forward_pre_hook(
        lambda _, args: positions.append(args[0].numel())
    )

    def run(text: str) -> tuple[float, int, str]:
        positions.clear()
        started = time.process_time()
        [result] = compressor.compress([text], Budget(rate=RATE))
        return time.process_time() - started, sum(positions), result.text

    return run


def peer(python: str) -> Side:
    """Start the peer and return the same function for it."""
    process = subprocess.Popen(
        [python, "-c", PEER, str(resolve("smollm2")), str(RATE)],
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

    def run(text: str) -> tuple[float, int, str]:
        sink.write(json.dumps(text) + "\n")
        sink.flush()
        while (line := source.readline()) and not line.startswith("["):
            continue
        if not line:
            raise SystemExit("the peer died; run it by hand to see why")
        seconds, positions, text = json.loads(line)
        return seconds, positions, text

    return run


def row(words: int, text: str, sides: Mapping[str, Side], runs: int, counter: TokenCounter) -> str:
    """Measure one text and return its line of the table."""
    tokens = counter.count(text)
    rates: dict[str, float] = {}
    cells = [str(words), str(tokens)]
    seen: dict[str, list[float]] = {name: [] for name in sides}
    read: dict[str, int] = {}
    kept: dict[str, int] = {}
    for _ in range(runs):
        for name, run in sides.items():
            seconds, read[name], result = run(text)
            seen[name].append(seconds)
            kept[name] = counter.count(result)
    for name in sides:
        rates[name] = tokens / statistics.median(seen[name])
        cells.append(f"{rates[name]:.0f} ({read[name]}, {kept[name] / tokens:.0%})")
    theirs = rates.get("llmlingua 0.2.2")
    cells.append(f"{rates['float32'] / theirs:.1f}x" if theirs else "not run")
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", nargs="+", type=Path, default=DEFAULT)
    parser.add_argument("--words", nargs="+", type=int, default=list(WORDS))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--bfloat16", action="store_true", help="a column with bfloat16 weights")
    parser.add_argument("--peer", help="Python of an environment with llmlingua==0.2.2")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    words = " ".join(path.read_text(encoding="utf-8") for path in options.texts).split()
    counter = make_counter("smollm2")
    sides = {"float32": timed("float32", counter)}
    if options.bfloat16:
        sides["bfloat16"] = timed("bfloat16", counter)
    if options.peer:
        sides["llmlingua 0.2.2"] = peer(options.peer)
    for run in sides.values():
        run(" ".join(words[:40]))  # warm up
    print(
        f"Tokens a CPU-second, rate {RATE}, median of {options.runs};"
        " in brackets positions computed and share kept\n"
    )
    print(f"| words | tokens | {' | '.join(sides)} | float32 / llmlingua |")
    print("|---" * (len(sides) + 3) + "|", flush=True)
    for size in (n for n in options.words if n <= len(words)):
        text = " ".join(words[:size])
        print(row(size, text, sides, options.runs, counter), flush=True)


if __name__ == "__main__":
    main()
