"""Examples to token ids and token labels, batches to tensors."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .records import Example, Group

MAX_QUESTION = 48
"""Tokens of a question that are read, in training and in use."""


@dataclass(frozen=True, slots=True)
class Row:
    """One sequence: ids with special tokens, where the passage starts, labels of its tokens."""

    ids: tuple[int, ...]
    start: int
    labels: tuple[float, ...]
    weight: float
    relevance: float | None
    group: int
    teacher: float | None


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows as tensors. ``owner`` numbers the groups; -1 fills what a row has not."""

    ids: Tensor
    types: Tensor
    mask: Tensor
    labels: Tensor
    weights: Tensor
    relevance: Tensor
    owner: Tensor
    teacher: Tensor


class Encode:
    """Tokenizes with ``tokenizers.Tokenizer``; rows have at most ``limit`` tokens."""

    def __init__(self, tokenizer: Any, limit: int) -> None:
        self._tokenizer = tokenizer
        self._limit = limit
        self._cls = int(tokenizer.token_to_id("[CLS]"))
        self._sep = int(tokenizer.token_to_id("[SEP]"))

    def group(self, group: Group, number: int, teacher: Sequence[float] | None) -> list[Row]:
        """Return the rows of a group, the teacher's scores attached."""
        return [
            self._row(example, number, teacher[i] if teacher else None)
            for i, example in enumerate(group.examples)
        ]

    def _row(self, example: Example, number: int, teacher: float | None) -> Row:
        head = [self._cls]
        if example.question:
            asked: list[int] = self._tokenizer.encode(
                example.question, add_special_tokens=False
            ).ids
            head += [*asked[:MAX_QUESTION], self._sep]
        encoded: Any = self._tokenizer.encode(example.passage, add_special_tokens=False)
        values = [0.0] * len(example.passage)
        for start, end, value in example.marks:
            values[start:end] = [max(value, old) for old in values[start:end]]
        labels = [max(values[a:b], default=0.0) for a, b in encoded.offsets]
        room = self._limit - len(head) - 1
        first = _window(labels, room)
        ids = encoded.ids[first : first + room]
        return Row(
            (*head, *ids, self._sep),
            len(head),
            tuple(labels[first : first + room]),
            example.weight,
            example.relevance,
            number,
            teacher,
        )


def _window(labels: Sequence[float], room: int) -> int:
    """Return where a window of ``room`` tokens has the most to keep."""
    if len(labels) <= room:
        return 0
    starts = range(0, len(labels) - room + 1, max(room // 4, 1))
    return max(starts, key=lambda start: sum(labels[start : start + room]))


def batches(rows: Sequence[list[Row]], size: int, rng: random.Random) -> list[list[Row]]:
    """Return batches of about ``size`` rows: groups whole, like lengths together, shuffled."""
    groups = list(rows)
    rng.shuffle(groups)
    found: list[list[Row]] = []
    pool = size * 32
    for first in range(0, len(groups), pool):
        part = sorted(groups[first : first + pool], key=lambda g: max(len(r.ids) for r in g))
        batch: list[Row] = []
        for group in part:
            if batch and len(batch) + len(group) > size:
                found.append(batch)
                batch = []
            batch = [*batch, *group]
        found.append(batch)
    rng.shuffle(found)
    return found


def collate(rows: Sequence[Row]) -> Batch:
    """Return the rows as one batch."""
    width = max(len(row.ids) for row in rows)
    shape = (len(rows), width)
    ids, types = torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.long)
    mask = torch.zeros(shape, dtype=torch.bool)
    labels, weights = torch.zeros(shape), torch.zeros(shape)
    for i, row in enumerate(rows):
        end = row.start + len(row.labels)
        ids[i, : len(row.ids)] = torch.tensor(row.ids)
        mask[i, : len(row.ids)] = True
        if row.start > 1:
            types[i, row.start : len(row.ids)] = 1
        labels[i, row.start : end] = torch.tensor(row.labels)
        weights[i, row.start : end] = row.weight
    missing = float("nan")
    relevance = [missing if r.relevance is None else r.relevance for r in rows]
    teacher = [missing if r.teacher is None else r.teacher for r in rows]
    return Batch(
        ids,
        types,
        mask,
        labels,
        weights,
        torch.tensor(relevance),
        torch.tensor([row.group for row in rows]),
        torch.tensor(teacher),
    )
