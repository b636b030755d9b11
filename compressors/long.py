"""Texts of many pages: in chunks, so that memory stays small and something is seen to happen."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from .blocks import blocks
from .budget import Budget
from .compressed import Compressed
from .graphemes import joins_previous
from .notes import Note, woven
from .render import Span
from .segments import Segment, joined
from .tokens import TokenCounter
from .units import Units

LONG = 400_000
"""A text of more characters is compressed in chunks."""
CHUNK = 100_000

_BUCKETS = 1000
_ATTEMPTS = 6
_CUTS = ("\n\n", "\n", "。", " ")


@dataclass(frozen=True, slots=True)
class Weighed:
    """A chunk's scores by unit; by words of a score (in thousandths), its tokens and their sum."""

    row: array[float]
    costs: array[int]
    mass: array[float]

    @classmethod
    def of(cls, row: Sequence[float], words: Sequence[tuple[float, int]]) -> Weighed:
        """Weigh (score, tokens) of each word; a forced word scores 1."""
        costs, mass = array("q", [0] * (_BUCKETS + 1)), array("d", [0.0] * (_BUCKETS + 1))
        for score, cost in words:
            bucket = min(max(round(score * _BUCKETS), 0), _BUCKETS)
            costs[bucket] += max(cost, 1)
            mass[bucket] += score
        return cls(array("d", row), costs, mass)


@dataclass(frozen=True, slots=True)
class Stored:
    """A scorer that knows the scores of one text."""

    name: str
    row: Sequence[float]

    def score(self, texts: Sequence[Units], question: str | None = None) -> list[list[float]]:
        """Return the scores."""
        return [list(self.row) for _ in texts]


def in_chunks(
    text: str,
    budget: Budget,
    counter: TokenCounter,
    weigh: Callable[[Sequence[str]], Iterator[Weighed]],
    compress: Callable[[str, Budget, Weighed], Compressed],
    progress: Callable[[float], None],
) -> Compressed:
    """Return a long text compressed; one threshold for all of it says what each chunk may keep.

    All chunks are weighed first, then compressed one by one; what one does not use, the next ones
    get. An approximation: scores that compare words know their own chunk only, and tokens
    are estimated a word at a time until they are counted. The limit holds for the whole text.
    ``progress`` is told the share that is done.
    """
    spans = chunks(text, CHUNK)
    parts = [Segment(start, end) for start, end in spans]
    weighed: list[Weighed] = []
    for one in weigh([text[start:end] for start, end in spans]):
        weighed.append(one)
        progress(len(weighed) / len(spans) / 2)
    tokens = counter.count(text)
    limit = budget.limit(tokens)
    is_counted = limit is not None and not budget.keeps_all(tokens)
    kept = shares(weighed, budget, (limit or 0) / max(tokens, 1))
    left = limit or 0
    found: list[Compressed] = []
    for i, (part, one) in enumerate(zip(parts, weighed, strict=True)):
        own = budget
        if is_counted:
            own = Budget(target_tokens=max(round(left * kept[i] / (sum(kept[i:]) or 1)), 0))
        elif budget.quality is not None:
            own = Budget(quality=kept[i])
        found.append(compress(text[part.start : part.end], own, one))
        left -= found[-1].tokens_out
        progress((1 + (i + 1) / len(spans)) / 2)
    whole = _whole(text, parts, found, tokens, counter)
    for i in [i for i in range(len(parts) - 1, -1, -1) if is_counted and found[i].tokens_out]:
        over = whole.tokens_out - (limit or 0)
        if over <= 0 or len(parts) - i > _ATTEMPTS:
            break
        own = Budget(target_tokens=max(found[i].tokens_out - over, 0))
        found[i] = compress(text[parts[i].start : parts[i].end], own, weighed[i])
        whole = _whole(text, parts, found, tokens, counter)
    return whole


def chunks(text: str, size: int) -> list[Span]:
    r"""Cut a text into spans of about ``size`` characters, where it allows best.

    After a paragraph, else a line, a sentence, a word; not within code, tables, JSON and the like,
    which may make a chunk longer.

    >>> chunks("aaaa\n\nbbbb\n\ncccc", 8)
    [(0, 6), (6, 16)]
    """
    regions = [(region.start, region.end) for region in blocks(text)]
    starts = [start for start, _ in regions]
    spans: list[Span] = []
    at = 0
    while len(text) - at > size + size // 2:
        cut = _cut(text, at + max(size // 2, 1), at + size)
        if (i := bisect_right(starts, cut) - 1) >= 0 and cut < regions[i][1]:
            cut = max(regions[i][1], cut)
        spans.append((at, cut))
        at = cut
    return [*spans, (at, len(text))] if at < len(text) else spans


def grouped(texts: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """Yield neighbouring texts of at most ``size`` characters together, at least one."""
    group: list[str] = []
    for text in texts:
        if group and sum(map(len, group)) + len(text) > size:
            yield group
            group = []
        group.append(text)
    if group:
        yield group


def _cut(text: str, first: int, last: int) -> int:
    found = ((text.rfind(mark, first, last), len(mark)) for mark in _CUTS)
    cut = next((at + length for at, length in found if at >= 0), last)
    while joins_previous(text, cut):
        cut += 1
    return cut


def shares(weighed: Sequence[Weighed], budget: Budget, rate: float) -> list[float]:
    """Return what each chunk keeps of the best words of all: tokens, or its share of all scores."""
    by_mass = budget.quality is not None
    tables = [one.mass if by_mass else one.costs for one in weighed]
    sums = [float(sum(table[i] for table in tables)) for i in range(_BUCKETS + 1)]
    wanted = (budget.quality if budget.quality is not None else rate) * sum(sums)
    kept = [0.0] * len(weighed)
    for bucket in range(_BUCKETS, -1, -1):
        if not sums[bucket]:
            continue
        part = min(wanted / sums[bucket], 1.0)
        for i, table in enumerate(tables):
            kept[i] += part * table[bucket]
        wanted -= part * sums[bucket]
        if wanted <= 0:
            break
    if not by_mass:
        return kept
    return [min(own / (sum(table) or 1.0), 1.0) for own, table in zip(kept, tables, strict=True)]


def _whole(
    text: str,
    parts: Sequence[Segment],
    found: Sequence[Compressed],
    tokens: int,
    counter: TokenCounter,
) -> Compressed:
    """Put the chunks together."""
    places = list(zip((part.start for part in parts), found, strict=True))
    spans = joined(text, parts, [[(a + at, b + at) for a, b in one.spans] for at, one in places])
    if all(one.text == one.original for one in found):
        spans = [(0, len(text))]
    notes = tuple(Note(note.at + at, note.text) for at, one in places for note in one.notes)
    short = woven(text, spans, notes)
    scores = tuple((a + at, b + at, score) for at, one in places for a, b, score in one.scores)
    reason = next((one.reason for one in found if one.reason), None)
    return Compressed(
        short,
        text,
        tuple(spans),
        tokens,
        counter.count(short),
        found[0].compressor,
        reason=reason,
        scores=scores,
        notes=notes,
    )
