"""All data of a run, pass by pass."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from . import mining, sources, vary
from .encode import Encode, Row
from .records import Group


class Corpus:
    """The groups of each pass: other negatives, other crops, other wordings, the same seed."""

    def __init__(self, folder: Path, tokenizer: Any, embed: mining.Embed, seed: int) -> None:
        self._folder = folder
        self._embed = embed
        self._seed = seed
        self._encode = Encode(tokenizer, limit=224)
        self._mask = int(tokenizer.token_to_id("[MASK]"))
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
        return [vary.reworded(group, rng) for group in found]

    def rows(self, number: int) -> list[list[Row]]:
        """Return the rows of pass ``number``, cropped and masked, with the teacher's cosines."""
        groups = self.groups(number)
        rng = random.Random(f"{self._seed}:{number}:rows")
        compared = [group for group in groups if len(group.examples) > 1]
        self._embed([t for g in compared for e in g.examples for t in (e.question, e.passage)])
        encoded = (
            self._encode.group(vary.cropped(group, rng), i, self._cosines(group))
            for i, group in enumerate(groups)
        )
        return [vary.masked(rows, self._mask, rng) for rows in encoded]

    def _cosines(self, group: Group) -> list[float] | None:
        if len(group.examples) < 2:
            return None
        vectors = self._embed([group.examples[0].question, *(e.passage for e in group.examples)])
        cosines: list[float] = (vectors[1:] @ vectors[0]).tolist()
        return cosines


def _share(groups: list[Group], share: float, rng: random.Random) -> list[Group]:
    return rng.sample(groups, int(len(groups) * share))
