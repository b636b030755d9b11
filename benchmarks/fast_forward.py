"""Forward passes and time that forced tokens and checked guesses save, beside plain masking.

    python benchmarks/fast_forward.py [--model smollm2] [--prompts 20] [--batch 1] [--tokens 160]

Ten schemas as people write them (API objects, tool calls, forms); both sides decode greedily with
the same automaton, whitespace bounded, in one process, runs interleaved. "Equal" counts texts that
are the same on both sides; those that are not are printed with the place where they part, and how
close the two best tokens were there.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headrace import Constraint, Request, Sampling, constraint
from headrace.backends.decoding.loop import Loop
from headrace.backends.local import LocalModel


def _object(required: Sequence[str] | None = None, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else list(required),
        "additionalProperties": False,
    }


TEXT = {"type": "string", "maxLength": 40}
WHOLE = {"type": "integer", "minimum": 0, "maximum": 10000}
NUMBER = {"type": "number"}
FLAG = {"type": "boolean"}

SCHEMAS: dict[str, dict[str, Any]] = {
    "person": _object(name=TEXT, age=WHOLE, email=TEXT, is_active=FLAG),
    "order": _object(
        order_id=WHOLE,
        customer_name=TEXT,
        shipping_address=_object(street=TEXT, city=TEXT, postal_code=TEXT),
        total_price=NUMBER,
        currency={"enum": ["EUR", "USD", "GBP"]},
    ),
    "weather call": _object(
        name={"const": "get_current_weather"},
        arguments=_object(location=TEXT, unit={"enum": ["celsius", "fahrenheit"]}),
    ),
    "search call": _object(
        tool={"const": "search_documents"},
        arguments=_object(query=TEXT, max_results=WHOLE, sort_by={"enum": ["date", "relevance"]}),
    ),
    "calendar event": _object(
        title=TEXT,
        start_time=TEXT,
        end_time=TEXT,
        attendees={"type": "array", "items": TEXT, "minItems": 1, "maxItems": 3},
        is_recurring=FLAG,
    ),
    "sentiment": _object(
        sentiment={"enum": ["positive", "negative", "neutral"]},
        confidence={"enum": ["low", "medium", "high"]},
        explanation=TEXT,
    ),
    "product": _object(
        product_name=TEXT,
        category={"enum": ["books", "clothing", "electronics", "food"]},
        price=NUMBER,
        in_stock=FLAG,
        dimensions=_object(width_cm=NUMBER, height_cm=NUMBER, depth_cm=NUMBER),
    ),
    "contact form": _object(
        first_name=TEXT,
        last_name=TEXT,
        phone_number=TEXT,
        preferred_contact_method={"enum": ["email", "phone", "post"]},
        accepts_newsletter=FLAG,
    ),
    "review": _object(
        reviewer=TEXT,
        rating={"type": "integer", "minimum": 1, "maximum": 5},
        recommends=FLAG,
        summary=TEXT,
        pros={"type": "array", "items": TEXT, "maxItems": 2},
        cons={"type": "array", "items": TEXT, "maxItems": 2},
    ),
    "entities": _object(
        entities={
            "type": "array",
            "minItems": 1,
            "maxItems": 3,
            "items": _object(entity_name=TEXT, entity_type={"enum": ["person", "place", "thing"]}),
        }
    ),
}
SUBJECTS = (
    "a baker in Lyon", "a second-hand bicycle", "rain in Oslo on Monday", "a broken kettle",
    "Ada Lovelace", "three friends at a lake", "a trip to Kyoto", "the village library",
    "a late parcel", "an old stone bridge", "a piano lesson", "green tea", "a night train",
    "a lost umbrella", "the school garden", "a rude waiter", "two kittens", "a red lamp",
    "a chess club", "the harbour of Bergen",
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """What one run of some prompts cost, and what it wrote."""

    texts: tuple[str, ...]
    tokens: int
    passes: int
    cpu: float
    wall: float


def run(local: LocalModel, requests: Sequence[Request], batch: int, ahead: bool) -> Run:
    """Answer the requests, ``batch`` at a time, with fast-forward or without."""
    import torch

    texts: list[str] = []
    tokens = passes = 0
    cpu, wall = time.process_time(), time.perf_counter()
    for start in range(0, len(requests), batch):
        some = requests[start : start + batch]
        rows = [local.row(at, one, 256, fast_forward=ahead) for at, one in enumerate(some)]
        loop = Loop(local.model)
        with torch.inference_mode():
            _raise(loop.admit(rows))
            passes += 1
            while loop.rows:
                _raise(loop.step())
                passes += 1
        texts += [row.text for row in rows]
        tokens += sum(len(row.tokens) for row in rows)
    return Run(tuple(texts), tokens, passes, time.process_time() - cpu, time.perf_counter() - wall)


def _raise(news: Any) -> None:
    for _, what in news:
        if isinstance(what, Exception):
            raise what


def requests_for(name: str, held: Constraint, number: int, tokens: int) -> list[Request]:
    """Return prompts about different subjects, all held to one schema."""
    sampling = Sampling(max_tokens=tokens, temperature=0)
    return [
        Request.of(
            f"Write a JSON object ({name}) with made-up values about: {subject}.",
            constraint=held,
            sampling=sampling,
        )
        for subject in SUBJECTS[:number]
    ]


def parted(local: LocalModel, request: Request, plain: str, ahead: str) -> str:
    """Say where two texts part, and how far apart the two best tokens were there."""
    import torch

    same = next(
        (at for at, (a, b) in enumerate(zip(plain, ahead, strict=False)) if a != b),
        min(len(plain), len(ahead)),
    )
    row = local.row(0, request, 256, fast_forward=False)
    prompt = [*row.prompt, *local.compiler.tokens_of(plain[:same].encode())]
    with torch.inference_mode():
        logits = local.model(input_ids=torch.tensor([prompt])).logits[0, -1]
    best = logits.topk(2).values
    return (
        f"after {plain[max(same - 30, 0) : same]!r}: {plain[same : same + 12]!r} and "
        f"{ahead[same : same + 12]!r}; two best logits apart by {float(best[0] - best[1]):.4f}"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--prompts", type=int, default=20)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=160)
    parser.add_argument("--schemas", nargs="+", choices=list(SCHEMAS), default=list(SCHEMAS))
    options = parser.parse_args()
    local = LocalModel.load(options.model, None, None)
    warm = requests_for("warm-up", constraint(SCHEMAS["person"]), 1, 8)
    for is_ahead in (False, True):
        run(local, warm, 1, is_ahead)
    print("| schema | tokens | passes, plain | passes | fewer | CPU time | wall | equal texts |")
    print("|---|---|---|---|---|---|---|---|")
    ratios: list[tuple[float, float, float]] = []
    notes: list[str] = []
    equal = total = 0
    for name in options.schemas:
        held = constraint(SCHEMAS[name])
        asked = requests_for(name, held, options.prompts, options.tokens)
        plain = run(local, asked, options.batch, False)
        ahead = run(local, asked, options.batch, True)
        same = [a == b for a, b in zip(plain.texts, ahead.texts, strict=True)]
        for text in ahead.texts:
            json.loads(text)
        notes += [
            f"- {name}: {parted(local, request, a, b)}"
            for request, a, b, is_same in zip(asked, plain.texts, ahead.texts, same, strict=True)
            if not is_same
        ]
        # The two may differ in length where they part: compare the cost of a token.
        scale = ahead.tokens / plain.tokens
        ratio = (
            plain.passes * scale / ahead.passes,
            plain.cpu * scale / ahead.cpu,
            plain.wall * scale / ahead.wall,
        )
        ratios.append(ratio)
        equal += sum(same)
        total += len(same)
        print(
            f"| {name} | {ahead.tokens} | {plain.passes} | {ahead.passes} | {ratio[0]:.2f}x "
            f"| {ratio[1]:.2f}x | {ratio[2]:.2f}x | {sum(same)}/{len(same)} |",
            flush=True,
        )
    means = [math.exp(statistics.fmean(math.log(r[i]) for r in ratios)) for i in range(3)]
    cells = " | ".join(f"{mean:.2f}x" for mean in means)
    print(f"| geometric mean | | | | {cells} | {equal}/{total} |")
    if notes:
        print("\nTexts that part:\n" + "\n".join(notes))


if __name__ == "__main__":
    main()
