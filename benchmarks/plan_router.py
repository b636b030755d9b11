"""Whether the router plans the right questions, beside the routers of Skeleton-of-Thought.

    python benchmarks/plan_router.py --data DIR [--sot CLONE]

DIR holds vicuna_bench__question.jsonl and mt_bench__question.jsonl (FastChat's question files),
CLONE is github.com/imagination-research/sot, also bare. Labels: with CLONE those of the paper's
authors (data/*/router.csv, 1: the answer is a list of points that can be written independently);
else, for Vicuna-80, the categories in which most of their labels are 1. MT-Bench's first turns are
labelled here, by the same rule, before any router was run on them.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.middleware.types import Request
from headrace.planners import route
from headrace.planners.listed import find_items

CATEGORIES = {"generic", "counterfactual", "knowledge", "common-sense"}
# First turns of MT-Bench (ids 81 to 160) whose best answer is a list of three or more parts, none
# of which needs another one's text: kinds of a thing each with an example (149), impacts (150), two
# or more topics side by side (151, 153), ideas, principles, methods, norms, works (155 to 160).
# Everything in writing, roleplay, reasoning, maths, coding and extraction is not, nor is a single
# explanation (141, 146, 152), a derivation (142, 145), or a plan whose steps build on one another
# (147, 148, 154).
MT_BENCH = frozenset({149, 150, 151, 153, 155, 156, 157, 158, 159, 160})
PAPER = {  # arXiv 2307.15337, appendix C: TP, FP, FN, TN
    "Vicuna-80": {"GPT-4, asked (paper)": (37, 5, 0, 38), "RoBERTa-120M (paper)": (32, 6, 5, 37)},
    "WizardLM-218": {
        "GPT-4, asked (paper)": (55, 66, 3, 94),
        "RoBERTa-120M (paper)": (27, 25, 31, 135),
    },
}


@dataclass(frozen=True)
class Asked:
    """A question and whether it should be planned."""

    text: str
    label: bool


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sot", type=Path)
    given = parser.parse_args()
    folder = given.data / "planning"
    folder = folder if folder.is_dir() else given.data
    sets = {"Vicuna-80": vicuna(folder, given.sot), "MT-Bench-80": mt_bench(folder)}
    if given.sot is not None:
        sets["WizardLM-218"] = authors(given.sot, "wizardlm")
    print("| questions | router | TP | FP | FN | TN | precision | recall |")
    print("|---|---|---|---|---|---|---|---|")
    for name, asked in sets.items():
        for router, counts in PAPER.get(name, {}).items():
            print(line(name, router, counts))
        for router, chosen in ours(asked).items():
            print(line(name, router, confusion(asked, chosen)))
        lists = sum(find_items(one.text) is not None for one in asked)
        print(f"| {name} | taken for a list of items (`map`): {lists} | | | | | | |")
    texts = [one.text for asked in sets.values() for one in asked]
    start = time.process_time()
    for text in texts:
        route(Request.of(text))
    each = (time.process_time() - start) / len(texts)
    print(f"\n{1000 * each:.2f} ms of CPU time a question, {len(texts)} questions")


def ours(asked: Sequence[Asked]) -> dict[str, list[bool]]:
    """Return what our router says: alone, and with the model deciding where it is unsure.

    The second is the best that plan-or-answer can reach, a model that is always right.
    """
    routes = [route(Request.of(one.text)) for one in asked]
    return {
        "headrace, planned at once": [one.is_planned for one in routes],
        "headrace, planned or left to the model": [r.is_planned or r.is_unsure for r in routes],
        "headrace, a model that is always right": [
            r.is_planned or (r.is_unsure and one.label)
            for r, one in zip(routes, asked, strict=True)
        ],
    }


def confusion(asked: Sequence[Asked], chosen: Iterable[bool]) -> tuple[int, int, int, int]:
    """Return true and false positives, false and true negatives."""
    pairs = [(one.label, is_chosen) for one, is_chosen in zip(asked, chosen, strict=True)]
    return (
        pairs.count((True, True)),
        pairs.count((False, True)),
        pairs.count((True, False)),
        pairs.count((False, False)),
    )


def line(name: str, router: str, counts: tuple[int, int, int, int]) -> str:
    """Return a row of the table."""
    tp, fp, fn, tn = counts
    precision = tp / max(tp + fp, 1)
    recall = tp / max(tp + fn, 1)
    return f"| {name} | {router} | {tp} | {fp} | {fn} | {tn} | {precision:.2f} | {recall:.2f} |"


def vicuna(data: Path, sot: Path | None) -> list[Asked]:
    """Return Vicuna-80 with the authors' labels, or with those of its categories."""
    if sot is not None:
        return authors(sot, "vicuna")
    rows = read(data / "vicuna_bench__question.jsonl")
    return [Asked(str(row["turns"][0]), row["category"] in CATEGORIES) for row in rows]


def mt_bench(data: Path) -> list[Asked]:
    """Return the first turns of MT-Bench with our labels."""
    rows = read(data / "mt_bench__question.jsonl")
    return [Asked(str(row["turns"][0]), row["question_id"] in MT_BENCH) for row in rows]


def read(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a JSON Lines file."""
    return [json.loads(row) for row in path.read_text("utf-8").splitlines() if row]


def authors(clone: Path, name: str) -> list[Asked]:
    """Return questions and labels of the authors' repository."""
    command = ["git", "-C", str(clone), "show", f"HEAD:data/{name}/router.csv"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = list(csv.reader(io.StringIO(text), delimiter=";"))[1:]
    return [Asked(row[1], row[0] == "1") for row in rows if len(row) > 1]


if __name__ == "__main__":
    main()
