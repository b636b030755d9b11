"""Variations of examples, so that a small corpus can be read several times and not by heart."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from .encode import Row
from .labels import content_words, sentences
from .records import Example, Group

CROPPED = 0.5
"""How many passages lose sentences at their ends."""
MASKED = 0.05
"""How many of a passage's tokens are hidden, in rows that carry token labels."""


def reworded(group: Group, rng: random.Random) -> Group:
    """Return the group with its question as people type it: no question mark, key words only."""
    question = group.examples[0].question
    if not question:
        return group
    chance = rng.random()
    if chance < 0.4:
        question = question.rstrip("?. ") or question
    elif chance < 0.5:
        question = " ".join(content_words(question)) or question
    examples = tuple(replace(example, question=question) for example in group.examples)
    return replace(group, examples=examples)


def cropped(group: Group, rng: random.Random) -> Group:
    """Return the group with some of its passages cut to a run of sentences.

    With a question, the sentences that hold something to keep stay.
    """
    examples = tuple(
        _cropped(example, rng) if rng.random() < CROPPED else example for example in group.examples
    )
    return replace(group, examples=examples)


def _cropped(example: Example, rng: random.Random) -> Example:
    spans = sentences(example.passage)
    if len(spans) < 3:
        return example
    if example.question and example.marks:
        inside = [i for i, span in enumerate(spans) if _touches(span, example)]
    else:
        inside = [rng.randrange(len(spans) - 1)]
        inside.append(inside[0] + 1)
    first = rng.randint(0, min(inside))
    last = rng.randint(max(inside), len(spans) - 1)
    start, end = spans[first][0], spans[last][1]
    marks = [
        (max(a, start) - start, min(b, end) - start, value)
        for a, b, value in example.marks
        if a < end and b > start
    ]
    return replace(example, passage=example.passage[start:end], marks=tuple(marks))


def _touches(span: tuple[int, int], example: Example) -> bool:
    return any(start < span[1] and end > span[0] for start, end, _ in example.marks)


def masked(rows: Sequence[Row], mask: int, rng: random.Random) -> list[Row]:
    """Return the rows with some tokens of their passages hidden; labels stay as they are."""
    return [_masked(row, mask, rng) if row.weight else row for row in rows]


def _masked(row: Row, mask: int, rng: random.Random) -> Row:
    ids = list(row.ids)
    for place in range(row.start, row.start + len(row.labels)):
        if rng.random() < MASKED:
            ids[place] = mask
    return replace(row, ids=tuple(ids))
