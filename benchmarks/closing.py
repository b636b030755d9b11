"""Whole JSON, or at least called cut, at random limits of tokens.

    python benchmarks/closing.py [--model smollm2] [--limits 500] [--batch 8] [--seed 0]

Each answer is held to one of ten schemas and gets a limit drawn between 4 and 120 tokens. "Closed"
is valid against the schema inside the limit, whether the model came to its end by itself or was
brought to it; the rest must be called cut. "Cut without closing" is what the same answers are when
nothing brings them to an end.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from typing import Any

from fast_forward import SCHEMAS, SUBJECTS

from headrace import Request, Sampling, constraint
from headrace.backends.decoding.loop import Loop
from headrace.backends.decoding.row import Row
from headrace.backends.local import LocalModel
from headrace.middleware.check import violation


def answer(local: LocalModel, requests: Sequence[Request], has_closing: bool) -> list[Row]:
    """Answer the requests together."""
    import torch

    rows = [local.row(at, request, 256) for at, request in enumerate(requests)]
    if not has_closing:
        for row in rows:
            row.closing = None
    loop = Loop(local.model)
    with torch.inference_mode():
        _raise(loop.admit(rows))
        while loop.rows:
            _raise(loop.step())
    return rows


def _raise(news: Any) -> None:
    for _, what in news:
        if isinstance(what, Exception):
            raise what


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--limits", type=int, default=500)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    local = LocalModel.load(options.model, None, None)
    lot = random.Random(options.seed)
    helds = {name: constraint(schema) for name, schema in SCHEMAS.items()}
    shortest = {
        name: len(local.closing_order.way(local.compiler.matcher(held), 500) or [])
        for name, held in helds.items()
    }
    asked: list[tuple[str, Request]] = []
    for _ in range(options.limits):
        name, subject = lot.choice(list(helds)), lot.choice(SUBJECTS)
        sampling = Sampling(max_tokens=lot.randint(4, 120), temperature=0)
        text = f"Write a JSON object ({name}) with made-up values about: {subject}."
        asked.append((name, Request.of(text, constraint=helds[name], sampling=sampling)))
    asked.sort(key=lambda one: one[1].sampling.max_tokens or 0)  # rows of a batch end together
    counts = {"whole": 0, "brought to its end": 0, "called cut": 0, "wrong": 0}
    possible = possible_whole = plain_whole = 0
    for start in range(0, len(asked), options.batch):
        some = asked[start : start + options.batch]
        requests = [request for _, request in some]
        plain = answer(local, requests, has_closing=False)
        for (name, request), row, bare in zip(
            some, answer(local, requests, has_closing=True), plain, strict=True
        ):
            is_valid = violation(row.text, helds[name]) is None
            has_room = (request.sampling.max_tokens or 0) > shortest[name]
            possible += has_room
            possible_whole += has_room and is_valid
            plain_whole += has_room and violation(bare.text, helds[name]) is None
            if is_valid:
                counts["brought to its end" if row.was_closed else "whole"] += 1
            elif row.finish_reason == "length":
                counts["called cut"] += 1
            else:
                counts["wrong"] += 1
    print("| limits | ended by itself | brought to its end | called cut | wrong |")
    print("|---|---|---|---|---|")
    print(f"| {len(asked)} | " + " | ".join(str(count) for count in counts.values()) + " |")
    print(
        f"\nLimits above the shortest way that is known: {possible}; whole objects there "
        f"{possible_whole} ({possible_whole / max(possible, 1):.1%}), without closing "
        f"{plain_whole} ({plain_whole / max(possible, 1):.1%})."
    )


if __name__ == "__main__":
    main()
