"""The training loop: seeded, resumable, with a progress bar and a log."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

import torch
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

from ..mini.network import Network
from . import checkpoint
from .encode import Batch, Row, batches, collate
from .losses import Weights, loss_of


@dataclass(frozen=True, slots=True)
class Settings:
    """A run's settings. Two runs with the same settings and data see the same batches."""

    steps: int
    batch: int = 16
    rate: float = 1e-4
    head_rate: float = 5e-4
    warmup: int = 100
    decay: float = 0.01
    clip: float = 1.0
    seed: int = 0
    save_every: int = 100
    weights: Weights = field(default_factory=Weights)

    @property
    def identity(self) -> str:
        """What a checkpoint must agree with."""
        return json.dumps(asdict(self), sort_keys=True)


def train(
    network: Network,
    epoch: Callable[[int], list[list[Row]]],
    settings: Settings,
    folder: Path,
    device: str,
) -> None:
    """Train the network in place; ``epoch`` gives the rows of pass number n, group by group.

    Word and position embeddings stay as they are. Writes ``log.jsonl`` and a checkpoint into the
    folder, and goes on from the checkpoint that is there.
    """
    untyped = cast("Any", torch)  # manual_seed's argument has no type
    network.to(device).train()
    embeddings = network.bert.embeddings
    for frozen in (embeddings.word_embeddings, embeddings.position_embeddings):
        frozen.weight.requires_grad_(False)
    optimizer = _optimizer(network, settings)
    schedule = [group["lr"] for group in optimizer.param_groups]
    state = folder / checkpoint.NAME
    done = checkpoint.load(state, settings.identity, network, optimizer)
    started, sums, count = time.perf_counter(), dict[str, float](), 0
    with _progress() as bar, (folder / "log.jsonl").open("a", encoding="utf-8") as log:
        task = bar.add_task("training", total=settings.steps, completed=done, loss="")
        for step, batch in _batches(epoch, settings, done):
            factor = _factor(step, settings)
            for group, full in zip(optimizer.param_groups, schedule, strict=True):
                group["lr"] = full * factor
            untyped.manual_seed(settings.seed * 1_000_003 + step)
            parts = _step(network, batch, optimizer, settings, device)
            for name, value in parts.items():
                sums[name] = sums.get(name, 0.0) + value
            count += 1
            if (step + 1) % 20 == 0 or step + 1 == settings.steps:
                means = {name: round(value / count, 4) for name, value in sums.items()}
                seconds = round((time.perf_counter() - started) / (step + 1 - done), 3)
                log.write(json.dumps({"step": step + 1, **means, "seconds": seconds}) + "\n")
                log.flush()
                bar.update(task, loss=" ".join(f"{k} {v:.3f}" for k, v in means.items()))
                sums, count = {}, 0
            bar.update(task, completed=step + 1)
            if (step + 1) % settings.save_every == 0 or step + 1 == settings.steps:
                checkpoint.save(state, step + 1, settings.identity, network, optimizer)
    network.eval()


def _batches(
    epoch: Callable[[int], list[list[Row]]], settings: Settings, done: int
) -> Iterator[tuple[int, Batch]]:
    """Yield the batches from step ``done`` on, pass after pass."""
    step, number = 0, 0
    while True:
        rng = random.Random(f"{settings.seed}:{number}")
        for rows in batches(epoch(number), settings.batch, rng):
            if step >= settings.steps:
                return
            if step >= done:
                yield step, collate(rows)
            step += 1
        number += 1


def _optimizer(network: Network, settings: Settings) -> torch.optim.AdamW:
    body, plain, heads = list[Tensor](), list[Tensor](), list[Tensor]()
    for name, parameter in network.named_parameters():
        if not parameter.requires_grad:
            continue
        if not name.startswith("bert."):
            heads.append(parameter)
        elif parameter.ndim < 2:
            plain.append(parameter)
        else:
            body.append(parameter)
    return torch.optim.AdamW(
        [
            {"params": body, "lr": settings.rate, "weight_decay": settings.decay},
            {"params": plain, "lr": settings.rate, "weight_decay": 0.0},
            {"params": heads, "lr": settings.head_rate, "weight_decay": 0.0},
        ]
    )


def _factor(step: int, settings: Settings) -> float:
    """Return the share of the full rate: up in a line, then down in a line."""
    if step < settings.warmup:
        return (step + 1) / settings.warmup
    return max(0.0, (settings.steps - step) / max(settings.steps - settings.warmup, 1))


def _step(
    network: Network,
    batch: Batch,
    optimizer: torch.optim.AdamW,
    settings: Settings,
    device: str,
) -> dict[str, float]:
    ids, types, mask = (part.to(device) for part in (batch.ids, batch.types, batch.mask))
    with torch.autocast(device, dtype=torch.bfloat16):
        keep, relevance = network(ids, types, mask)
    parts = loss_of(keep.cpu(), relevance.cpu(), batch, settings.weights)
    total: Any = torch.stack(list(parts.values())).sum()
    optimizer.zero_grad(set_to_none=True)
    total.backward()
    torch.nn.utils.clip_grad_norm_(network.parameters(), settings.clip)
    cast("Any", optimizer).step()
    return {name: float(value.detach()) for name, value in parts.items()}


def _progress() -> Progress:
    from rich.console import Console

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[loss]}"),
        console=Console(stderr=True),
    )
