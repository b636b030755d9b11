"""LLMLingua-2's recipe: a language model deletes words, and what it left becomes labels.

Pan et al. 2024 (ACL Findings), section 3: the teacher compresses short chunks under an instruction
that forbids new words (3.1), each word it left is found again in the original with a fuzzy match
in a sliding window (algorithm 1, 3.2), and chunks are thrown away when the teacher invented words
(variation rate) or when the match is poor (alignment gap; 3.3). The teacher is a function from a
prompt to a text, so that any backend can be one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .labels import sentences

Teacher = Callable[[str], str]
"""A prompt to the model's answer."""

PROMPT = """\
Compress the given text to short expressions, such that you (or another model) can reconstruct it \
as close as possible to the original. You may only remove words that are not important. Do not \
reorder, change or abbreviate words, do not add new words or symbols. Keep numbers and names.

Text to compress:
{text}

Compressed text:
"""
"""After the instruction in the paper's appendix A, shortened for small teachers."""

_WORD = re.compile(r"\w+(?:[-'’.,]\w+)*")


@dataclass(frozen=True, slots=True)
class Distilled:
    """A chunk, what the teacher made of it, and which characters of the chunk it kept.

    ``variation`` is the share of the teacher's words that the chunk does not have; ``gap`` is how
    much larger the share of chunk words that occur in the answer is than the share that was
    aligned: large when the teacher reordered.
    """

    text: str
    compressed: str
    keep: tuple[tuple[int, int], ...]
    variation: float
    gap: float


def distill(
    texts: Iterable[str], teacher: Teacher, *, characters: int = 900
) -> Iterator[Distilled]:
    """Yield each chunk of each text as the teacher cut it; chunks are whole sentences."""
    for text in texts:
        for chunk in chunks(text, characters):
            yield align(chunk, teacher(PROMPT.format(text=chunk)).strip())


def chunks(text: str, characters: int) -> list[str]:
    """Return pieces of whole sentences, at most so long where a sentence is not longer itself."""
    found: list[tuple[int, int]] = []
    for start, end in sentences(text):
        if found and end - found[-1][0] <= characters:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return [text[start:end] for start, end in found]


def align(text: str, compressed: str, window: int = 150) -> Distilled:
    """Find each word of the compressed text in the original, in order, forgiving endings.

    Each word is looked for from where the last one was found, ahead first, then behind, at most
    ``window`` words away (the paper's algorithm 1, with a common stem for its fuzzy match).

    >>> align("The old mill was sold in 1892.", "mill sold 1892").keep
    ((8, 12), (17, 21), (25, 29))
    """
    words = [(match.group(), match.start(), match.end()) for match in _WORD.finditer(text)]
    left = _WORD.findall(compressed)
    keep = [False] * len(words)
    last = 0
    missing = 0
    for word in left:
        place = _find(word, words, keep, last, window)
        if place is None:
            missing += 1
        else:
            keep[place], last = True, place
    spans = tuple((a, b) for (_, a, b), kept in zip(words, keep, strict=True) if kept)
    there = {word.lower() for word in left}
    matched = sum(word.lower() in there for word, _, _ in words)
    gap = (matched - sum(keep)) / len(words) if words else 0.0
    return Distilled(text, compressed, spans, missing / len(left) if left else 1.0, gap)


def _find(
    word: str,
    words: Sequence[tuple[str, int, int]],
    keep: Sequence[bool],
    last: int,
    window: int,
) -> int | None:
    ahead = range(last, min(last + window, len(words)))
    behind = range(last - 1, max(last - window, -1), -1)
    for is_same in (_is_equal, _is_alike):
        for part in (ahead, behind):
            for i in part:
                if not keep[i] and is_same(word, words[i][0]):
                    return i
    return None


def _is_equal(one: str, two: str) -> bool:
    return one.lower() == two.lower()


def _is_alike(one: str, two: str) -> bool:
    one, two = one.lower(), two.lower()
    if len(one) < 4 or len(two) < 4 or not (one.isalpha() and two.isalpha()):
        return False
    shared = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), 99)
    return min(shared, len(one), len(two)) >= 0.75 * max(len(one), len(two))


def filtered(
    found: Iterable[Distilled], *, worst_variation: float = 0.05, worst_gap: float = 0.1
) -> list[Distilled]:
    """Return the chunks to learn from.

    The paper drops the worst 5 % by variation and the worst 10 % by gap; a threshold on each does
    not depend on what else is in the batch. Chunks of which all or nothing was kept teach nothing.
    """
    return [
        one
        for one in found
        if one.variation <= worst_variation
        and one.gap <= worst_gap
        and 0 < len(one.keep) < len(_WORD.findall(one.text))
    ]


def records(found: Iterable[Distilled]) -> Iterator[dict[str, Any]]:
    """Yield the chunks as records for ``pairs``: without a question, with what stays."""
    for one in found:
        yield {"passage": one.text, "keep": [list(span) for span in one.keep]}
