"""How likely a document makes a question."""

from __future__ import annotations

from collections.abc import Sequence

from ..scorers.windows import Window, batches, windows
from .model import CausalModel
from .reading import Reading

STATEMENT = " We can get the answer to this question in the given documents."
_SHORTEST = 16


def relevances(
    model: CausalModel, question: str, texts: Sequence[str], window: int, batch_tokens: int
) -> list[float]:
    """Return the mean ln p of the question and ``STATEMENT`` given each text, in nats.

    LongLLMLingua, section 4.1, equation 4 with its sign turned: higher is better. A text of more
    than ``window`` tokens counts by its best window.
    """
    asked = model.ids(f"\n\n{question.strip()}{STATEMENT}")[-(window // 2) :]
    room = max(window - len(asked), _SHORTEST)
    ids = [model.ids(text) or [*model.start] for text in texts]
    jobs = [
        Window(row, start, end)
        for row, own in enumerate(ids)
        for start, end in windows(len(own), room, room // 8)
    ]
    found = [float("-inf")] * len(texts)
    begin = Reading(model, model.start, window + len(asked))
    most = max(batch_tokens // len(asked), 1)  # so many rows, each with all of the question
    for group in batches(jobs, batch_tokens):
        for at in range(0, len(group), most):
            batch = group[at : at + most]
            reading = begin.repeat(len(batch))
            reading.skim([ids[job.text][job.start : job.end] for job in batch])
            losses = reading.read([asked] * len(batch))
            for job, row in zip(batch, losses, strict=True):
                found[job.text] = max(found[job.text], -sum(row) / len(row))
    return found
