"""The command that trains headrace-mini, or fine-tunes it."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from ...middleware.errors import HeadraceError
from ..mini import weights
from .corpus import Corpus
from .encode import Encode, Row
from .finish import write
from .held_out import DEV_ARTICLES, FILES, SQUAD_ARTICLES
from .loop import Settings, train
from .pairs import pairs
from .records import Group
from .start import Teacher, base_network, base_tokenizer, shipped_network

Epoch = Callable[[int], list[list[Row]]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, or go on training, and write the model into the run's folder ``model``."""
    options = _parser().parse_args(arguments)
    try:
        run(options)
    except HeadraceError as error:
        sys.exit(f"headrace training: {error}")


def run(options: argparse.Namespace) -> None:
    """Train as the options say."""
    if options.threads:
        torch.set_num_threads(options.threads)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    if options.pairs:
        groups = list(pairs(options.pairs))
        settings = Settings(options.steps or 300, rate=3e-5, head_rate=1e-4, seed=options.seed)
        network = shipped_network(options.start or weights.DATA, dropout=0.1)
        epoch = _own(groups, base_tokenizer())
        held_out: dict[str, Any] = {}
    else:
        settings = Settings(options.steps or 5000, seed=options.seed)
        network = base_network(settings.seed, dropout=0.1)
        corpus = Corpus(options.data, base_tokenizer(), Teacher(device), settings.seed)
        groups, epoch = corpus.groups(0), corpus.rows
        held_out = {"test": SQUAD_ARTICLES, "dev": DEV_ARTICLES, "files": FILES}
    about = {
        "groups": dict(Counter(group.source for group in groups)),
        "held_out": held_out,
        "settings": json.loads(settings.identity),
        "torch": torch.__version__,
    }
    (out / "run.json").write_text(json.dumps(about, indent=2), encoding="utf-8")
    train(network, epoch, settings, out, device)
    write(network, out / "model")


def _own(groups: Sequence[Group], tokenizer: Any) -> Epoch:
    encode = Encode(tokenizer, limit=224)
    rows = [encode.group(group, number, None) for number, group in enumerate(groups)]
    return lambda _: rows


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m headrace.compressors.training",
        description="Train headrace-mini from all-MiniLM-L6-v2, or fine-tune it on your own pairs.",
    )
    data = parser.add_mutually_exclusive_group(required=True)
    data.add_argument("--data", type=Path, help="folder with the data sets of the full training")
    data.add_argument("--pairs", type=Path, help="JSON lines to fine-tune the shipped weights on")
    parser.add_argument("--out", type=Path, required=True, help="folder of the run")
    parser.add_argument("--start", type=Path, help="model to fine-tune, default: the shipped one")
    parser.add_argument("--steps", type=int, help="default: 5000 with --data, 300 with --pairs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=0, help="CPU threads, 0: torch's choice")
    return parser


if __name__ == "__main__":
    main()
