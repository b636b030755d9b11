"""In-process decoding at batch 1, 4, 8 and 16: tokens a second, beside transformers' generate().

    python benchmarks/batching.py [--tokens 64] [--runs 3] [--threads 2] [--gguf FILE]

All sides get the same prompts and decode the same model greedily; the rows of a batch have
different lengths. "mid-flight": the second half of the rows joins while the first is being written.
With ``--gguf`` there is also llama-server with that file and a slot a row (for the same weights:
``llama-quantize --allow-requantize IN OUT F32``). Runs are interleaved and the table has medians:
compare the columns of one run, not the absolute numbers of two machines.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from headrace import Message, Request, Sampling
from headrace.backends import Backend, Job, OpenAIBackend, TransformersBackend
from headrace.backends.engines import running
from headrace.middleware.models import resolve
from headrace.middleware.types import Finished

BATCHES = (1, 4, 8, 16)
QUESTIONS = [
    "Why do rivers meander?",
    "Tell me about the history of water mills in Europe, and how they changed.",
    "What is bread made of?",
    "Explain how a steam engine turns heat into motion. Be thorough.",
    "Name some trees.",
    "How does a bicycle stay upright when it moves, and why does it fall when it stands?",
    "What is a prime number?",
    "Describe the life of a salmon from egg to spawning.",
    "What do bees do in winter?",
    "Explain in some detail how paper was made before there were machines for it.",
    "Why is the sea salt?",
    "How do you sharpen a knife?",
    "What is the difference between weather and climate, and why do people mix them up?",
    "Name the parts of a castle.",
    "How does a lock on a canal lift a boat?",
    "Tell me what happens in a volcano before, during and after an eruption.",
]


def answered(make: Callable[[], Backend], tokens: int, parts: int = 1) -> Callable[[int], int]:
    """Return a function that answers n requests at once and returns the tokens written.

    In two parts, the second joins when the first has written a quarter of its tokens.
    """
    sampling = Sampling(max_tokens=tokens, temperature=0.0)

    async def write(backend: Backend, questions: list[str], begun: asyncio.Event) -> int:
        jobs = [Job(Request((Message.user(q),), sampling=sampling)) for q in questions]
        written = seen = 0
        async for _, event in backend.generate(jobs):
            seen += 1
            if seen >= len(questions) * tokens // 4:
                begun.set()
            if isinstance(event, Finished):
                written += event.response.usage.completion_tokens
        begun.set()
        return written

    async def run(backend: Backend, size: int) -> int:
        begun = asyncio.Event()
        half = -(-size // parts)
        first = asyncio.create_task(write(backend, QUESTIONS[:half], begun))
        await begun.wait() if half < size else None
        rest = await write(backend, QUESTIONS[half:size], begun) if half < size else 0
        return await first + rest

    kept = make()
    return lambda size: asyncio.run(run(kept, size))


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
    parser.add_argument("--gguf", type=Path, help="also run llama-server with this file")
    parser.add_argument("--threads", type=int, default=2, help="of each side")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(options.threads)
    with ExitStack() as stack:
        engine = TransformersBackend(options.model, max_batch=max(BATCHES))
        sides = {
            "headrace": answered(lambda: engine, options.tokens),
            "mid-flight": answered(lambda: engine, options.tokens, parts=2),
            "generate()": theirs(options.model, options.tokens),
        }
        if options.gguf:
            server = running(model=options.gguf, slots=max(BATCHES), threads=options.threads)
            url = stack.enter_context(server)
            sides["llama-server"] = answered(
                lambda: OpenAIBackend(url, max_concurrency=max(BATCHES)), options.tokens
            )
        compare(sides, options.runs)


def compare(sides: dict[str, Callable[[int], int]], runs: int) -> None:
    """Print the table."""
    for run in sides.values():
        run(1)  # load and warm up
    seen: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for _ in range(runs):
        for size in BATCHES:
            for name, run in sides.items():
                seen.setdefault((name, size), []).append(measure(run, size))
    names = " | ".join(f"{name} tokens/s (per CPU-s)" for name in sides)
    print(f"| batch | {names} | headrace : generate() | mid-flight : generate() |")
    print("|---" * (len(sides) + 3) + "|")
    for size in BATCHES:
        medians = {
            name: [statistics.median(column) for column in zip(*seen[name, size], strict=True)]
            for name in sides
        }
        cells = [
            f"{wall:.1f} (-)" if name == "llama-server" else f"{wall:.1f} ({cpu:.1f})"
            for name, (wall, cpu) in medians.items()
        ]
        base = medians["generate()"]
        cells += [
            f"{medians[name][0] / base[0]:.2f} ({medians[name][1] / base[1]:.2f})"
            for name in ("headrace", "mid-flight")
        ]
        print(f"| {size} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
