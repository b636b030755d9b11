"""How surprising each token of many texts is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .encoded import Encoded, Reduce, survivors
from .model import CausalModel
from .reading import Reading


@dataclass(frozen=True, slots=True)
class Pace:
    """How texts are read: see ``Perplexity`` for the meaning of each."""

    rate: float = 0.5
    segment: int = 200
    window: int = 1024
    batch_tokens: int = 1024
    reduce: Reduce = "sum"


def surprises(
    model: CausalModel,
    texts: Sequence[Encoded],
    pace: Pace,
    conditions: Sequence[Sequence[int]] = ((),),
) -> list[list[float]]:
    """Return a value for each token of each text, higher is worth more.

    With one condition it is -ln p(token | condition, what survived before it), in nats. With two
    it is how much less the second one leaves of it (LongLLMLingua, equation 5): negative where
    the second makes a token less likely. What survives of a segment is decided by that value.
    Each condition is read once for all texts.
    """
    starts = [Reading(model, [*model.start, *ids], pace.window) for ids in conditions]
    found: list[list[float]] = [[] for _ in texts]
    for batch in _batches(texts, pace):
        _read(starts, [texts[i] for i in batch], [found[i] for i in batch], pace)
    return found


def _batches(texts: Sequence[Encoded], pace: Pace) -> Iterator[list[int]]:
    """Yield texts of like length together, at most ``batch_tokens`` padded tokens at a time."""
    batch: list[int] = []
    for i in sorted(range(len(texts)), key=lambda i: len(texts[i].ids)):
        if not texts[i].ids:
            continue
        width = min(len(texts[i].ids), pace.segment)
        if batch and width * (len(batch) + 1) > pace.batch_tokens:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def _read(
    starts: Sequence[Reading], texts: Sequence[Encoded], found: Sequence[list[float]], pace: Pace
) -> None:
    """Read a batch segment by segment, all conditions in step; fills ``found``."""
    readings = [start.repeat(len(texts)) for start in starts]
    cuts = [text.cuts(pace.segment) for text in texts]
    rows = list(range(len(texts)))
    step = 0
    while True:
        spans = [cuts[row][step] for row in rows]
        ids = [texts[row].ids[a:b] for row, (a, b) in zip(rows, spans, strict=True)]
        losses = [reading.read(ids) for reading in readings]
        values = losses[0]
        if len(losses) > 1:
            values = [
                [p - q for p, q in zip(*pair, strict=True)] for pair in zip(*losses, strict=True)
            ]
        for row, line in zip(rows, values, strict=True):
            found[row].extend(line)
        step += 1
        going = [at for at, row in enumerate(rows) if step < len(cuts[row])]
        if not going:
            return
        kept = [
            survivors(_within(texts[row], span), line, pace.rate, pace.reduce)
            for row, span, line in zip(rows, spans, values, strict=True)
        ]
        for reading in readings:
            reading.forget(kept)
            if len(going) < len(rows):
                reading.select(going)
        rows = [rows[at] for at in going]


def _within(text: Encoded, span: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the groups of a segment, counted from its start."""
    start, end = span
    return [
        (max(a, start) - start, min(b, end) - start)
        for a, b in text.groups
        if a < end and b > start
    ]
