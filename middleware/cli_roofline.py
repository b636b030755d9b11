"""The command ``headrace roofline``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .terminal import print_json, print_table, print_text

if TYPE_CHECKING:
    from .cost import Roofline, Stage
    from .cost.work import Work


def roofline(
    model: Annotated[
        str, typer.Option(help="A folder, a config.json, a name on the hub, or llama-2-7b.")
    ],
    hardware: Annotated[str, typer.Option(help="A6000, A100, H100, ..., cpu:CORES.")],
    prompt: Annotated[int, typer.Option(help="Tokens of a prompt.", min=1)] = 2048,
    generate: Annotated[int, typer.Option(help="Tokens of an answer.", min=1)] = 256,
    batch: Annotated[int, typer.Option(help="Requests at a time.", min=1)] = 1,
    w_bits: Annotated[
        int | None,
        typer.Option(help="Bits of a weight.", min=1, max=64, show_default="as quantised, else 16"),
    ] = None,
    a_bits: Annotated[int, typer.Option(help="Bits of an activation.", min=1, max=64)] = 16,
    kv_bits: Annotated[int, typer.Option(help="Bits in the KV cache.", min=1, max=64)] = 16,
    fused: Annotated[bool, typer.Option(help="Fused (flash) attention.")] = False,
    rate: Annotated[float, typer.Option(help="Compressed to this share of the prompt.")] = 0.5,
    parts: Annotated[int, typer.Option(help="Planned in so many parts.", min=2)] = 4,
    hardware_file: Annotated[
        Path | None, typer.Option(help="TOML or JSON file with hardware of your own.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write a page with curves.")] = None,
) -> None:
    """Say how long a model takes on a device at least, what bounds it, and what would save time.

    Per operator: operations, bytes, their ratio, the performance that allows, and what bounds it,
    for the prefill and for a decode step; then whole requests as they are, compressed and planned.
    """
    from . import cost
    from .cost.page import roofline_page
    from .cost.work import compressed, plain, planned
    from .files import check_writable, write_text

    extra = None if hardware_file is None else cost.read_hardware(hardware_file)
    device = cost.hardware(hardware, extra)
    if html is not None:
        check_writable(html)
    shape = cost.shape_of(model)
    precision = cost.Precision(w_bits or min(16, shape.bits), a_bits, kv_bits)
    found = cost.Roofline(shape, device, precision, fused)
    prefill, decode = found.prefill(prompt, batch), found.decode(prompt, batch)
    works = [
        plain(found, prompt, generate, batch),
        compressed(found, prompt, generate, batch, rate),
    ]
    if parts <= generate:
        works.append(planned(found, prompt, generate, batch, parts))
    facts = _facts(found, prefill, decode, works[0])
    if html is not None:
        write_text(html, roofline_page(found, prefill, decode, works, facts))
    if as_json:
        print_json(_fields(found, prefill, decode, works))
    else:
        _print(prefill, decode, works, facts)


def _print(prefill: Stage, decode: Stage, works: Sequence[Work], facts: Sequence[str]) -> None:
    from .cost.page import COLUMNS, WORK_COLUMNS, stage_rows, work_rows

    for name, stage in (("prefill", prefill), ("decode step", decode)):
        print_text(f"{name}, an operator a row, figures of one run\n")
        print_table(COLUMNS, stage_rows(stage))
        print_text("\n")
    print_text("".join(f"{fact}\n" for fact in facts) + "\n")
    print_table(WORK_COLUMNS, work_rows(works))


def _facts(found: Roofline, prefill: Stage, decode: Stage, work: Work) -> list[str]:
    from .cost.charts import short
    from .cost.page import seconds

    step, device, bits = prefill.step, found.device, found.precision
    held = found.memory(prefill)
    fits = "fits" if step.batch <= work.largest_batch else "does not fit"
    return [
        f"{found.shape.name}: {short(found.shape.num_weights)} weights, "
        f"W{bits.weights}A{bits.activations}KV{bits.kv}"
        f"{', fused attention' if found.fused else ''}; {device.name}: {short(found.peak)} OPs/s, "
        f"{short(device.bandwidth)}B/s, {short(device.memory)}B ({device.source})",
        f"prefill of {step.batch} x {step.tokens} tokens: {seconds(prefill.seconds)}, "
        f"a layer {seconds(prefill.layer_seconds)}; decode step: {seconds(decode.seconds)}, "
        f"a layer {seconds(decode.layer_seconds)}, "
        f"{short(step.batch / decode.seconds)} tokens/s",
        f"memory: {short(held.weights)}B weights, {short(held.kv)}B KV cache, "
        f"{short(held.activations)}B activations; batch {step.batch} {fits}, "
        f"the largest that fits is {work.largest_batch}",
    ]


def _fields(
    found: Roofline, prefill: Stage, decode: Stage, works: Sequence[Work]
) -> dict[str, Any]:
    def stage(one: Stage) -> dict[str, Any]:
        rows = [
            {
                **asdict(row.operator),
                "memory": row.operator.memory,
                "intensity": row.operator.intensity,
                "performance": row.performance,
                "seconds": row.seconds,
                "bound": row.bound,
            }
            for row in one.rows
        ]
        memory = found.memory(one)
        return {
            "seconds": one.seconds,
            "layer_seconds": one.layer_seconds,
            "ops": one.ops,
            "moved": one.memory,
            "held": {**asdict(memory), "total": memory.total},
            "operators": rows,
        }

    return {
        "model": {**asdict(found.shape), "num_weights": found.shape.num_weights},
        "hardware": asdict(found.device),
        "precision": asdict(found.precision),
        "fused": found.fused,
        "prefill": stage(prefill),
        "decode": stage(decode),
        "requests": [
            {
                **asdict(one),
                "seconds": one.seconds,
                "tokens_per_second": one.tokens_per_second,
            }
            for one in works
        ],
    }
