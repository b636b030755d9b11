"""What was decided about a plan, when, and on which prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .gate import Gate
from .predictor import Forecast

Verdict = Literal["open", "parallel", "one call", "plain"]


@dataclass(slots=True)
class Judgement:
    """Begins ``open``: nothing was decided, and parts are written one after the other meanwhile.

    ``parallel`` means that parts are written at the same time, ``one call`` that the rest is
    written in one, and ``plain`` that the answer is that of a call without a plan. ``forecast`` was
    made ``at`` seconds after the request began.
    """

    gate: Gate
    verdict: Verdict = "open"
    why: str = ""
    forecast: Forecast | None = None
    at: float = 0.0

    def look(
        self, found: Forecast, at: float, *, is_whole: bool, is_raced: bool = False
    ) -> Verdict:
        """Take a forecast; ``is_whole``: the planner has ended, so this decides.

        Before that, only what pays already is decided: more lines add parts to it. ``is_raced``:
        the one call runs already, and the forecast is about what is left of it.
        """
        if self.verdict == "open":
            why = self.gate.refuses(found, is_running=is_raced and is_whole)
            if not why:
                self.verdict = "parallel"
                gain = f"a predicted gain of {found.gain:.2f}"
                why = gain if self.gate.when == "pays" else "always"
                self.why = f"a trial, though {self.gate.trial}" if self.gate.trial else why
            elif is_whole:
                self.verdict, self.why = "one call", why
        self.forecast, self.at = found, at
        return self.verdict

    def settle(self, verdict: Verdict, why: str) -> None:
        """Decide for a reason that no forecast knows."""
        self.verdict, self.why = verdict, why

    @property
    def predicted_seconds(self) -> float | None:
        """When the answer was predicted to be whole, from its beginning."""
        if self.forecast is None:
            return None
        is_parallel = self.verdict == "parallel"
        left = self.forecast.parallel if is_parallel else self.forecast.sequential
        return self.at + left
