"""In-process decoding at batch 1, 4 and 8: tokens a second, beside transformers' own generate().

    python benchmarks/batching.py [--model smollm2] [--tokens 64] [--runs 3]

Both sides get the same prompts and the same model in the same process and decode greedily; the
rows of a batch have different lengths. Runs are interleaved and the table has medians: compare the
columns of one run, not the absolute numbers of two machines.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import Callable
from typing import Any

from headrace import Message, Request, Sampling
from headrace.backends import Job, TransformersBackend
from headrace.middleware.models import resolve
from headrace.middleware.types import Finished

BATCHES = (1, 4, 8)
QUESTIONS = [
    "Why do rivers meander?",
    "Tell me about the history of water mills in Europe, and how they changed.",
    "What is bread made of?",
    "Explain how a steam engine turns heat into motion. Be thorough.",
    "Name some trees.",
    "How does a bicycle stay upright when it moves, and why does it fall when it stands?",
    "What is a prime number?",
    "Describe the life of a salmon from egg to spawning.",
]


def ours(model: str, tokens: int) -> Callable[[int], int]:
    """Return a function that answers n requests in one batch and returns the tokens written."""
    backend = TransformersBackend(model)
    sampling = Sampling(max_tokens=tokens, temperature=0.0)

    async def run(size: int) -> int:
        jobs = [Job(Request((Message.user(q),), sampling=sampling)) for q in QUESTIONS[:size]]
        written = 0
        async for _, event in backend.generate(jobs):
            if isinstance(event, Finished):
                written += event.response.usage.completion_tokens
        return written

    return lambda size: asyncio.run(run(size))


def theirs(model: str, tokens: int) -> Callable[[int], int]:
    """Do the same with ``model.generate`` on a left-padded batch."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = resolve(model)
    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
    lm: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)

    def run(size: int) -> int:
        prompts = [
            tokenizer.apply_chat_template(
                [{"role": "user", "content": q}], tokenize=False, add_generation_prompt=True
            )
            for q in QUESTIONS[:size]
        ]
        inputs = tokenizer(prompts, return_tensors="pt", padding=True, add_special_tokens=False)
        with torch.inference_mode():
            out = lm.generate(**inputs, max_new_tokens=tokens, do_sample=False)
        new = out[:, inputs["input_ids"].shape[1] :]
        ends = new == tokenizer.eos_token_id
        return int(((ends.cumsum(1) - ends.long()) == 0).sum())  # up to and with the first end

    return run


def measure(run: Callable[[int], int], size: int) -> tuple[float, float]:
    """Return tokens a second and tokens a CPU-second of one run."""
    wall, cpu = time.perf_counter(), time.process_time()
    written = run(size)
    return written / (time.perf_counter() - wall), written / (time.process_time() - cpu)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    sides = {
        "headrace": ours(options.model, options.tokens),
        "generate()": theirs(options.model, options.tokens),
    }
    for run in sides.values():
        run(1)  # load and warm up
    seen: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for _ in range(options.runs):
        for size in BATCHES:
            for name, run in sides.items():
                seen.setdefault((name, size), []).append(measure(run, size))
    print("| batch | headrace tokens/s (per CPU-s) | generate() tokens/s (per CPU-s) | ratio |")
    print("|---|---|---|---|")
    for size in BATCHES:
        cells: list[str] = []
        walls: list[float] = []
        for name in sides:
            wall, cpu = (
                statistics.median(column) for column in zip(*seen[name, size], strict=True)
            )
            walls.append(wall)
            cells.append(f"{wall:.1f} ({cpu:.1f})")
        print(f"| {size} | {cells[0]} | {cells[1]} | {walls[0] / walls[1]:.2f} |")


if __name__ == "__main__":
    main()
