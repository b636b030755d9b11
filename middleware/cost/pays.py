"""Whether a stage that shortens the prompt saves more time than it takes."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..report import Report
from ..types import Event, Finished, Response
from .predict import Observed, Predictor, StageTimes

AGAIN = 64  # refusals after which the stage is timed anew: it may have been slow by accident
_PIECES = (400, 400, 1600)  # characters on which it is timed; the first time loads


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a stage is expected to do to one request.

    Of ``prompt_tokens`` it would cut ``cut``, and would have to read ``fresh`` tokens for that,
    those of ``text``; what it knows from earlier requests costs nothing. ``run`` does to a text
    what the stage does, so that it can be timed; ``count`` counts a text's tokens.
    """

    prompt_tokens: int
    cut: int
    fresh: int
    text: str
    count: Callable[[str], int]
    run: Callable[[str], object]

    def timed(self) -> Iterator[tuple[int, float]]:
        """Yield tokens and seconds of a few short runs, none of which loads anything.

        No text comes twice: a stage may know what it has read before.
        """
        runs = [f"Part {i}. {self.text[:size]}" for i, size in enumerate(_PIECES)]
        for i, text in enumerate(runs):
            started = time.perf_counter()
            self.run(text)
            if i:
                yield self.count(text), time.perf_counter() - started


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was decided: ``saved`` are the prefill's seconds, ``spent`` the stage's own."""

    pays: bool
    saved: float
    spent: float
    outlook: Outlook
    known: StageTimes

    @property
    def words(self) -> str:
        """The same for people."""
        what = "pays" if self.pays else "does not pay"
        return f"{what}: {self.saved:.3f} s less prefill for {self.spent:.3f} s"

    def details(self) -> dict[str, Any]:
        """Return the same for machines."""
        return {"pays": self.pays, "predicted_saved": self.saved, "predicted_spent": self.spent}

    def learn(self, seconds: float, cut: int) -> None:
        """Correct what is known of the stage by a run: its seconds, and the tokens that it cut."""
        self.known.time.add(self.outlook.fresh, seconds)
        self.known.cut.add(self.outlook.cut, cut)


class Judge:
    """Compares what a stage would save of the engine's prefill with what it would take itself.

    ``stage`` names the stage with what it runs on, so that its time is learnt once an engine and
    not once a request.
    """

    def __init__(self, predictor: Predictor, stage: str) -> None:
        self._predictor = predictor
        self._known = predictor.stage(stage)

    def decide(self, outlook: Outlook) -> Verdict:
        """Return whether it is worth it. Times the stage at first, and after many refusals."""
        known = self._known
        if outlook.fresh and not len(known.time):
            for tokens, seconds in outlook.timed():
                known.time.add(tokens, seconds)
        whole = max(1, outlook.prompt_tokens)
        left = max(1, whole - round(known.cut.at(outlook.cut)))
        predict = self._predictor.predict
        saved = predict(whole, 0).prefill - predict(left, 0).prefill
        spent = known.time.at(outlook.fresh)
        verdict = Verdict(saved > spent, saved, spent, outlook, known)
        known.num_refused = 0 if verdict.pays else known.num_refused + 1
        if known.num_refused >= AGAIN:
            known.time.forget()
            known.num_refused = 0
        return verdict


async def watched(
    events: AsyncGenerator[Event, None], predictor: Predictor, stage: str
) -> AsyncGenerator[Event, None]:
    """Pass an answer's events on, learn from the last one, and write that into a stage's row."""
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Finished) and (seen := predictor.learn(event.response)):
                event = Finished(_told(event.response, seen, predictor, stage))
            yield event


def _told(response: Response, seen: Observed, predictor: Predictor, stage: str) -> Response:
    said = seen.predicted.seconds, seen.prefill + seen.decode
    words = f"; engine: predicted {said[0]:.2f} s, took {said[1]:.2f} s"
    details = {"engine_seconds": {**asdict(seen), "roofline": predictor.name}}
    rows = [*response.report.stages]
    at = next((i for i, row in enumerate(rows) if row.stage == stage), None)
    if at is None:
        return response
    row = rows[at]
    rows[at] = replace(row, decision=row.decision + words, details={**row.details, **details})
    return replace(response, report=Report(tuple(rows)))
