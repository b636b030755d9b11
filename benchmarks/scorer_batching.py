"""Forward passes of compressors and rerankers, shared by requests or not.

    python benchmarks/scorer_batching.py [--requests 32] [--runs 3] [--device cpu]

So many requests come at once, each with a question and a few short documents. The stage is asked
for all of them together, once as it is and once with passes that are not shared (each call runs
alone, one after the other: what a lock around the model does). Passes and rows are counts; CPU
seconds are this process's, the median of the runs, without one before that loads everything. The
classifier and the cross-encoder are MiniLM's encoder with random heads: what they cost, not what
they keep. "same" says whether both kept the same characters of every document, and ranked alike.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from headrace import Compress, Document, Request, Rerank
from headrace.compressors import (
    BiEncoder,
    Compressor,
    CrossEncoder,
    TokenClassifier,
    make_counter,
    make_scorer,
)
from headrace.compressors.gathering import Gatherer
from headrace.compressors.mini import MiniReranker
from headrace.compressors.mini import embedder as mini_embedder
from headrace.compressors.mini import engine as mini_engine
from headrace.middleware.models import resolve

SENTENCES = (
    "The canal was dug by hand in 1832 and carried coal until the trains came.",
    "The castle has {n} rooms, most of them empty since the duke sold what stood in them.",
    "A choir of {n} children sang in the square before the mayor opened the new bridge.",
    "The comet comes back every {n} years, and its tail is longest in March.",
    "In the museum a clock of {n} wheels shows the tides of a harbour that is dry today.",
)

Stage = Compress | Rerank


class Count:
    """How many passes and rows went through gatherers, and whether they may be shared."""

    def __init__(self) -> None:
        self.passes = self.rows = 0
        self.shares = True

    def watch(self) -> None:
        """Count what every gatherer runs from now on."""
        count, plain = self, Gatherer.__init__

        def init(gatherer: Any, run: Callable[[list[Any]], Any], **options: Any) -> None:
            def counted(rows: list[Any]) -> Any:
                count.passes += 1
                count.rows += len(rows)
                return run(rows)

            shares = options.pop("shares", True) and count.shares
            plain(gatherer, counted, shares=shares, **options)

        cast("Any", Gatherer).__init__ = init


def checkpoint(folder: Path, kind: str, labels: int) -> str:
    """Write MiniLM's encoder with a random head, and return the folder."""
    import torch
    import transformers

    torch.manual_seed(7)
    source = str(resolve("minilm"))
    model: Any = getattr(transformers, kind).from_pretrained(source, num_labels=labels)
    model.save_pretrained(folder)
    cast("Any", transformers.AutoTokenizer).from_pretrained(source).save_pretrained(folder)
    return str(folder)


def requests(number: int, documents: int) -> list[Request]:
    """Return requests whose documents nobody else has."""
    return [
        Request.of(
            "Who sang in the square?",
            documents=tuple(
                Document(
                    " ".join(
                        SENTENCES[(i + d + k) % len(SENTENCES)].format(n=100 * i + 10 * d + k)
                        for k in range(1 + (i + d) % 3)
                    )
                )
                for d in range(documents)
            ),
        )
        for i in range(number)
    ]


def stages(folder: Path, device: str | None) -> dict[str, tuple[int, Callable[[], Stage]]]:
    """Return what makes each stage anew, and how many documents its requests have."""
    tokens = checkpoint(folder / "tokens", "BertForTokenClassification", 2)
    pairs = checkpoint(folder / "pairs", "BertForSequenceClassification", 1)

    def compress(scorer: Callable[[], Any]) -> Stage:
        stage = Compress(rate=0.5)
        stage.__dict__["engine"] = Compressor(scorer(), make_counter(None))
        return stage

    def ranking(reranker: Callable[[], Any]) -> Stage:
        stage = Rerank()
        stage.__dict__["reranker"] = reranker()
        return stage

    return {
        "Compress, token classifier": (
            1,
            lambda: compress(lambda: TokenClassifier(tokens, device)),
        ),
        "Compress, mini": (1, lambda: compress(lambda: make_scorer("mini"))),
        "Rerank, mini": (4, lambda: ranking(lambda: MiniReranker(device=device))),
        "Rerank, bi-encoder": (4, lambda: ranking(lambda: BiEncoder(device=device))),
        "Rerank, cross-encoder": (4, lambda: ranking(lambda: CrossEncoder(pairs, device))),
    }


async def together(stage: Stage, some: Sequence[Request]) -> list[Request]:
    """Ask a stage for all requests at once."""
    return list(await asyncio.gather(*(stage.transform(request) for request in some)))


def forget() -> None:
    """Forget what the embedded model has read."""
    mini_engine._shared.cache_clear()  # pyright: ignore[reportPrivateUsage]
    mini_embedder.embedder.cache_clear()
    gc.collect()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=32)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--device", default=None)
    options = parser.parse_args()
    count = Count()
    count.watch()
    print(
        "| stage | passes, not shared | passes, shared | rows | CPU, shared / not | wall | same |"
    )
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        made = stages(Path(folder), options.device)
        for name, (documents, make) in made.items():
            some = requests(options.requests, documents)
            found: dict[bool, list[tuple[float, float, int, int]]] = {True: [], False: []}
            kept: dict[bool, Any] = {}
            for shares in (False, True) * (options.runs + 1):
                forget()
                count.shares = shares
                stage = make()
                asyncio.run(together(stage, requests(1, documents)[:1]))  # loads the model
                count.passes = count.rows = 0
                wall, cpu = time.perf_counter(), time.process_time()
                results = asyncio.run(together(stage, some))
                cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
                found[shares].append((cpu, wall, count.passes, count.rows))
                kept[shares] = [[d.text for d in one.documents] for one in results]
            plain, shared = (
                [statistics.median(column) for column in zip(*found[shares][1:], strict=True)]
                for shares in (False, True)
            )
            print(
                f"| {name} | {plain[2]:.0f} | {shared[2]:.0f} | {shared[3]:.0f}"
                f" | {shared[0] / plain[0]:.2f} | {shared[1] / plain[1]:.2f}"
                f" | {'yes' if kept[True] == kept[False] else 'NO'} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
