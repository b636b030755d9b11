"""All data of a run, pass by pass."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

from . import mining, sources
from .encode import Encode, Row
from .labels import content_words
from .records import Example, Group


class Corpus:
    """The groups of each pass: other negatives, other crops, other wordings, the same seed."""

    def __init__(self, folder: Path, tokenizer: Any, embed: mining.Embed, seed: int) -> None:
        self._folder = folder
        self._embed = embed
        self._seed = seed
        self._encode = Encode(tokenizer, limit=224)
        self._articles = sources.squad(folder)
        self._latest: dict[int, list[Group]] = {}

    def groups(self, number: int) -> list[Group]:
        """Return the groups of pass ``number``; the latest pass is remembered."""
        if number not in self._latest:
            self._latest = {number: self._made(number)}
        return self._latest[number]

    def _made(self, number: int) -> list[Group]:
        rng = random.Random(f"{self._seed}:{number}:data")
        folder = self._folder
        aware = list(mining.squad_aware(self._articles, self._embed, rng))
        answered = [group for group in aware if group.source != "squad, unanswerable"]
        others = [group for group in aware if group.source == "squad, unanswerable"]
        blind = list(sources.squad_blind(self._articles))
        found = [
            *answered,
            *_share(others, 0.3, rng),
            *(blind * 3),
            *_share(list(sources.deletions(folder, rng)), 0.3, rng),
            *sources.hotpot(folder, rng),
            *sources.natural_questions(folder, rng),
            *_share(list(sources.meetings(folder, rng)), 0.3, rng),
            *_share(list(sources.cloze(folder, rng)), 0.2, rng),
        ]
        return [_reworded(group, rng) for group in found]

    def rows(self, number: int) -> list[list[Row]]:
        """Return the rows of pass ``number``, with the teacher's cosines."""
        groups = self.groups(number)
        compared = [group for group in groups if len(group.examples) > 1]
        self._embed([t for g in compared for e in g.examples for t in (e.question, e.passage)])
        return [
            self._encode.group(group, i, self._cosines(group)) for i, group in enumerate(groups)
        ]

    def _cosines(self, group: Group) -> list[float] | None:
        if len(group.examples) < 2:
            return None
        vectors = self._embed([group.examples[0].question, *(e.passage for e in group.examples)])
        cosines: list[float] = (vectors[1:] @ vectors[0]).tolist()
        return cosines


def _share(groups: list[Group], share: float, rng: random.Random) -> list[Group]:
    return rng.sample(groups, int(len(groups) * share))


def _reworded(group: Group, rng: random.Random) -> Group:
    """Return the group with its question as people type it: no question mark, key words only."""
    question = group.examples[0].question
    if not question:
        return group
    chance = rng.random()
    if chance < 0.4:
        question = question.rstrip("?. ") or question
    elif chance < 0.5:
        question = " ".join(content_words(question)) or question
    examples: tuple[Example, ...] = tuple(replace(e, question=question) for e in group.examples)
    return replace(group, examples=examples)
