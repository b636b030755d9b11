"""What is left of the answers after compression, and whether a reader still finds them.

    python benchmarks/quality.py --data DATA [--sets squad nq] [--questions 60] [--read]
                                 [--methods random lexical ...] [--json OUT] [--plot OUT.svg]

Every method's scores go through the same selector, under one joint budget a question counted with
the reader's tokenizer, at 2x, 3x and 5x. "Left": SQuAD (held-out articles), NQ with 20 documents,
HotpotQA: the answer is in the text as one string; QMSum: the share of the words that a human's
summary has from the meeting; GSM8K: the share of the numbers of a few-shot prompt. "Read": SmolLM2
reads the compressed documents and the question, and its reply holds the answer. Brackets are 95 %
bootstrap intervals. ``--plot`` needs matplotlib.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from baselines import baseline
from quality_data import Case, load, reading

import headrace
from headrace import Document, Pipeline, Request
from headrace.backends import TransformersBackend
from headrace.compressors import (
    Budget,
    Compressor,
    Scorer,
    TokenCounter,
    make_counter,
)
from headrace.compressors.training.measuring import interval

FACTORS = (2, 3, 5)
SETS = ("squad", "nq", "hotpot", "qmsum", "gsm8k")


@dataclass(frozen=True)
class Row:
    """A method at a factor on a set: means, with their intervals."""

    set: str
    method: str
    factor: int
    share: float
    left: tuple[float, float, float]
    read: tuple[float, float, float] | None
    questions: int
    seconds: float


METHODS: dict[str, tuple[str, bool]] = {
    "random": ("random", False),
    "lexical, blind": ("lexical", False),
    "selective-context": ("selective-context", False),
    "llmlingua": ("llmlingua", False),
    "mini, blind": ("mini", False),
    "lexical": ("lexical", True),
    "longllmlingua": ("longllmlingua", True),
    "sentences": ("sentences", True),
    "mini": ("mini", True),
}
"""Name of a row to the scorer and whether it gets the question."""
TOGETHER = "documents, sentences, words"


@cache
def scorer(name: str) -> Scorer:
    """Return the scorer of that name, once."""
    found: Scorer = baseline(name)
    return found


def shortened(case: Case, method: str, factor: int, counter: TokenCounter) -> list[Document]:
    """Return what the method leaves of the documents."""
    budget = Budget(rate=1 / factor)
    if method == TOGETHER:
        context = headrace.compress_documents(
            case.question, case.documents, rate=1 / factor, tokenizer="smollm2"
        )
        return list(context.documents)
    name, is_asked = METHODS[method]
    results = Compressor(scorer(name), counter).compress(
        [document.text for document in case.documents],
        budget,
        question=case.question if is_asked else None,
        joint=True,
        formats=["prose"] * len(case.documents),
    )
    titled = zip(case.documents, results, strict=True)
    return [Document(r.text, title=d.title) for d, r in titled if r.text.strip()]


def read(reader: Pipeline, cases: Sequence[Case], parts: Sequence[list[Document]]) -> list[float]:
    """Return for each case whether the reader's reply holds an answer."""
    requests = [
        Request.of(
            f"{_context(documents)}\n\nAnswer with a few words from the text."
            f"\nQuestion: {case.question}",
            sampling=headrace.Sampling(max_tokens=24, temperature=0),
        )
        for case, documents in zip(cases, parts, strict=True)
    ]
    replies = reader.map_sync(requests)
    return [
        float(any(reading(answer) in reading(getattr(reply, "text", "")) for answer in one.answers))
        for one, reply in zip(cases, replies, strict=True)
    ]


def _context(documents: Sequence[Document]) -> str:
    return "\n\n".join(f"{d.title}\n{d.text}".strip() for d in documents)


def _mean(values: Sequence[float]) -> tuple[float, float, float]:
    low, high = interval(values)
    return (sum(values) / len(values), low, high)


def measure(
    name: str, cases: Sequence[Case], methods: Sequence[str], reader: Pipeline | None
) -> Iterator[Row]:
    """Yield a row a method and factor, after the whole text's."""
    counter = make_counter("smollm2")
    whole = [list(case.documents) for case in cases]
    sizes = [sum(counter.count(d.text) for d in documents) for documents in whole]
    if reader is not None and cases[0].answers:
        found = _mean(read(reader, cases, whole))
        yield Row(name, "the whole text", 1, 1.0, (1.0, 1.0, 1.0), found, len(cases), 0.0)
    for method in methods:
        if method == TOGETHER and not cases[0].question:
            continue
        started = time.process_time()
        found_parts = [[shortened(c, method, f, counter) for f in FACTORS] for c in cases]
        seconds = (time.process_time() - started) / len(cases) / len(FACTORS)
        for place, factor in enumerate(FACTORS):
            parts = [per_factor[place] for per_factor in found_parts]
            left = [
                case.left("\n".join(d.text for d in documents))
                for case, documents in zip(cases, parts, strict=True)
            ]
            share = sum(
                sum(counter.count(d.text) for d in documents) / size
                for documents, size in zip(parts, sizes, strict=True)
            ) / len(cases)
            has_reader = reader is not None and bool(cases[0].answers)
            replies = _mean(read(reader, cases, parts)) if reader and has_reader else None
            yield Row(name, method, factor, share, _mean(left), replies, len(cases), seconds)


def table(rows: Sequence[Row]) -> str:
    """Return the rows of one set as a Markdown table."""
    heads = [f"{f}x, left" for f in FACTORS]
    has_read = any(row.read for row in rows)
    heads += [f"{f}x, read" for f in FACTORS] if has_read else []
    lines = ["| method | " + " | ".join([*heads, "CPU-s"]) + " |", "|---" * (len(heads) + 2) + "|"]
    for method in dict.fromkeys(row.method for row in rows):
        own = {row.factor: row for row in rows if row.method == method}
        if method == "the whole text":
            cells = ["1"] * len(FACTORS) + ([_cell(own[1].read)] * len(FACTORS) if has_read else [])
        else:
            cells = [_cell(own[f].left) for f in FACTORS if f in own]
            cells += [_cell(own[f].read) for f in FACTORS if f in own] if has_read else []
        seconds = max((row.seconds for row in own.values()), default=0.0)
        lines.append(f"| {method} | " + " | ".join([*cells, f"{seconds:.2f}"]) + " |")
    return "\n".join(lines)


def _cell(value: tuple[float, float, float] | None) -> str:
    return "" if value is None else f"{value[0]:.2f} [{value[1]:.2f}, {value[2]:.2f}]"


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw what is left against the tokens kept, a panel a set."""
    from matplotlib import pyplot  # the only user of it

    any_plot: Any = pyplot
    names = list(dict.fromkeys(row.set for row in rows))
    figure, panels = any_plot.subplots(1, len(names), figsize=(4 * len(names), 4), squeeze=False)
    for panel, name in zip(panels[0], names, strict=True):
        for method in dict.fromkeys(r.method for r in rows if r.set == name and r.factor > 1):
            own = [r for r in rows if r.set == name and r.method == method]
            style = "-" if method in (TOGETHER, "mini", "mini, blind") else "--"
            panel.plot([r.share for r in own], [r.left[0] for r in own], style, label=method)
        panel.set(title=name, xlabel="tokens kept", ylabel="left", ylim=(0, 1))
    panels[0][-1].legend(fontsize="x-small")
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--methods", nargs="+", default=[*METHODS, TOGETHER])
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--read", action="store_true", help="let SmolLM2 read the results")
    parser.add_argument("--json", type=Path, help="add the rows to this file")
    parser.add_argument("--plot", type=Path, help="draw the rows, those of --json included")
    options = parser.parse_args()
    backend = TransformersBackend(dtype="bfloat16", max_batch=4) if options.read else None
    reader = Pipeline([], backend) if backend else None
    rows: list[Row] = []
    for name in options.sets:
        cases = load(name, options.data, options.questions, options.seed)
        own: list[Row] = []
        for row in measure(name, cases, options.methods, reader):
            own.append(row)
            print(json.dumps(asdict(row)), file=sys.stderr, flush=True)
        print(f"\n**{name}, {len(cases)} questions**\n\n{table(own)}\n", flush=True)
        rows += own
    if options.json:
        old = json.loads(options.json.read_text("utf-8")) if options.json.is_file() else []
        rows = [*(Row(**one) for one in old), *rows]
        options.json.write_text(json.dumps([asdict(row) for row in rows]), encoding="utf-8")
    if options.plot:
        plot(rows, options.plot)


if __name__ == "__main__":
    main()
