"""Hard negatives: passages that look like the answer to a sentence encoder and are not."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from .labels import answer_marks, occurrences
from .records import Example, Group
from .sources import UNANSWERABLE, Article, Asked

Embed = Callable[[Sequence[str]], Any]
"""Texts to a matrix of unit vectors, one row a text."""


def squad_aware(articles: Sequence[Article], embed: Embed, rng: random.Random) -> Iterator[Group]:
    """Yield each answerable question beside a paragraph of the same or another article.

    Every other question gets one, without an answer in it; three of four of these are among the
    five nearest of the article, the rest come from anywhere. Unanswerable questions stand alone,
    on their own paragraph.
    """
    everywhere = [text for article in articles for text in article.paragraphs]
    for article in articles:
        paragraphs, questions = article.paragraphs, [asked.question for asked in article.asked]
        nearest: list[list[int]] = (
            (embed(questions) @ embed(paragraphs).T).argsort(1)[:, ::-1].tolist()
        )
        for asked, order in zip(article.asked, nearest, strict=True):
            text = paragraphs[asked.paragraph]
            if not asked.answers:
                lone = Example(asked.question, text, (), 0.3, UNANSWERABLE)
                yield Group((lone,), "squad, unanswerable")
                continue
            marks = answer_marks(asked.question, text, asked.answers)
            good = Example(asked.question, text, marks, 1.0, 1.0)
            hard = list(islice(_others(paragraphs, order, asked), 5))
            is_hard = bool(hard) and rng.random() < 0.75
            other = rng.choice(hard) if is_hard else rng.choice(everywhere)
            is_free = other != text and not any(occurrences(other, a) for a in asked.answers)
            is_other = rng.random() < 0.5 and is_free
            bad = (Example(asked.question, other, (), 1.0, 0.0),) if is_other else ()
            yield Group((good, *bad), "squad")


def _others(paragraphs: Sequence[str], order: Sequence[int], asked: Asked) -> Iterator[str]:
    """Yield the paragraphs in this order that are not asked about and hold no answer."""
    for i in order:
        text = paragraphs[i]
        if i != asked.paragraph and not any(occurrences(text, a) for a in asked.answers):
            yield text
