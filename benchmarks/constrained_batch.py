"""Eight rows with eight schemas, beside eight rows without any, in one run.

    python benchmarks/constrained_batch.py [--model smollm2] [--tokens 64] [--runs 3]

Every side writes the same number of tokens a row with the same prompts: free text, plain masking,
and masking with fast-forward. Tokens a second and a CPU-second, medians of interleaved runs.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

from fast_forward import SCHEMAS, SUBJECTS

from headrace import Request, Sampling, constraint
from headrace.backends.decoding.loop import Loop
from headrace.backends.local import LocalModel

SIDES = ("free", "masked", "masked, fast-forward")


def run(local: LocalModel, side: str, size: int, tokens: int) -> tuple[float, float]:
    """Return tokens a second and a CPU-second."""
    import torch

    rows: list[Any] = []
    for at, (name, schema) in enumerate(list(SCHEMAS.items())[:size]):
        schema = {**schema, "properties": {"text": {"type": "string"}, **schema["properties"]}}
        request = Request.of(
            f"Write a JSON object ({name}) with made-up values about: {SUBJECTS[at]}.",
            constraint=None if side == "free" else constraint(schema),
            sampling=Sampling(max_tokens=tokens, temperature=0),
        )
        row = local.row(at, request, tokens, fast_forward=side == SIDES[2])
        row.eos = frozenset() if side == "free" else row.eos  # it goes on to the limit
        rows.append(row)
    wall, cpu = time.perf_counter(), time.process_time()
    loop = Loop(local.model)
    with torch.inference_mode():
        for _ in loop.admit(rows):
            pass
        while loop.rows:
            for _ in loop.step():
                pass
    written = sum(len(row.tokens) for row in rows)
    return written / (time.perf_counter() - wall), written / (time.process_time() - cpu)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    local = LocalModel.load(options.model, None, None)
    for side in SIDES:
        run(local, side, 8, 4)
    seen: dict[str, list[tuple[float, float]]] = {side: [] for side in SIDES}
    for _ in range(options.runs):
        for side in SIDES:
            seen[side].append(run(local, side, 8, options.tokens))
    wall = {side: statistics.median(one[0] for one in seen[side]) for side in SIDES}
    cpu = {side: statistics.median(one[1] for one in seen[side]) for side in SIDES}
    print("| rows | tokens/s | of free | tokens/CPU-s | of free |")
    print("|---|---|---|---|---|")
    for side in SIDES:
        print(
            f"| {side} | {wall[side]:.1f} | {wall[side] / wall['free']:.2f}x "
            f"| {cpu[side]:.1f} | {cpu[side] / cpu['free']:.2f}x |"
        )


if __name__ == "__main__":
    main()
