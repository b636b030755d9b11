"""Questions with documents and a way to say what is left: what quality.py measures on."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace import Document
from headrace.compressors.training.files import read_lines, read_text
from headrace.compressors.training.labels import content_words, stem
from headrace.compressors.training.measuring import Asked, nq_held_out, squad_held_out

WORDS = 1200
"""A meeting is cut to about so many words around what the question is about."""


@dataclass(frozen=True)
class Case:
    """A question, its documents, and the share of what matters that a text still holds."""

    question: str
    documents: tuple[Document, ...]
    left: Callable[[str], float]
    answers: tuple[str, ...] = ()


def load(name: str, folder: Path, size: int, seed: int) -> list[Case]:
    """Return cases of "squad", "nq", "hotpot", "qmsum" or "gsm8k"."""
    loaders: dict[str, Callable[[], list[Case]]] = {
        "squad": lambda: [_asked(one) for one in squad_held_out(folder, size, seed)],
        "nq": lambda: [_asked(one) for one in nq_held_out(folder, size, seed)],
        "hotpot": lambda: _hotpot(folder),
        "qmsum": lambda: _qmsum(folder),
        "gsm8k": lambda: _gsm8k(folder),
    }
    cases = loaders[name]()
    return random.Random(seed).sample(cases, min(size, len(cases)))


def plain(text: str) -> str:
    """Return the text with single spaces."""
    return " ".join(text.split())


def _asked(asked: Asked) -> Case:
    def left(text: str) -> float:
        return float(any(plain(answer) in plain(text) for answer in asked.answers))

    return Case(asked.question, asked.documents, left, asked.answers)


def _hotpot(folder: Path, skip: int = 40) -> list[Case]:
    """Return questions after those that ``Mini``'s mixing weights were chosen on; no yes or no."""
    found: list[Case] = []
    for record in read_lines(folder / "hotpotqa" / "dev.jsonl.gz"):
        gold = " ".join(c["text"] for c in record["contexts"] if c["is_gold"])
        answers = tuple(a for a in record["answers"] if a in gold and len(a) > 3)
        if answers:
            documents = tuple(Document(c["text"], title=c["title"]) for c in record["contexts"])
            found.append(_asked(Asked(record["question"], answers, documents)))
    return found[skip:]


def _qmsum(folder: Path) -> list[Case]:
    """Return parts of meetings with questions; what matters are the words a summary shares."""
    found: list[Case] = []
    for record in read_lines(folder / "qmsum" / "qmsum_val.jsonl.gz"):
        turns = [f"{t['speaker']}: {t['content']}" for t in record["meeting_transcripts"]]
        for query in record["specific_query_list"]:
            first = int(query["relevant_text_span"][0][0])
            text, start = "", max(first - 4, 0)
            for turn in turns[start:]:
                text += turn + "\n"
                if len(text.split()) > WORDS:
                    break
            found.append(Case(query["query"], (Document(text),), _shared(text, query["answer"])))
    return found


def _shared(text: str, summary: str) -> Callable[[str], float]:
    there = {stem(word) for word in content_words(text)}
    wanted = {stem(word) for word in content_words(summary)} & there

    def left(part: str) -> float:
        kept = {stem(word) for word in content_words(part)}
        return len(wanted & kept) / max(len(wanted), 1)

    return left


def _gsm8k(folder: Path) -> list[Case]:
    """Return few-shot prompts; what matters are the numbers of the worked steps."""
    found: list[Case] = []
    for path in sorted((folder / "gsm8k").glob("prompt_*.txt")):
        text = read_text(path)
        numbers = re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])", text)

        def left(part: str, numbers: list[str] = numbers) -> float:
            kept = re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])", part)
            return len(kept) / max(len(numbers), 1)

        found.append(Case("", (Document(text),), left))
    return found


def reading(record: Any) -> str:
    """Return an answer as SQuAD's evaluation compares it: lower case, no articles, no marks."""
    text = re.sub(r"[^\w\s]", "", str(record).lower())
    return plain(re.sub(r"\b(a|an|the)\b", " ", text))
