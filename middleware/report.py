"""What each stage did to one request, and what that saved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class StageReport:
    """One stage's row.

    ``tokens_in`` and ``tokens_out`` count the prompt before and after the stage, None where the
    stage does not change the prompt. ``seconds`` is wall time. ``decision`` is a few words for
    people ("kept 3 of 8 documents"); ``details`` holds the same for machines. ``predicted`` is
    the stage's own forecast of ``seconds`` where it made one.
    """

    stage: str
    decision: str
    seconds: float = 0.0
    tokens_in: int | None = None
    tokens_out: int | None = None
    predicted: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Report:
    """The rows of one request, in the order in which the stages ran.

    >>> Report().add(StageReport("compress", "kept half", 0.1, 100, 50)).tokens_saved
    50
    """

    stages: tuple[StageReport, ...] = ()

    def add(self, *rows: StageReport) -> Report:
        """Return a report with these rows at the end."""
        return replace(self, stages=(*self.stages, *rows))

    def stage(self, name: str) -> StageReport | None:
        """Return the first row of that stage, None when it did not run."""
        return next((row for row in self.stages if row.stage == name), None)

    @property
    def tokens_saved(self) -> int:
        """Prompt tokens that the stages took away together."""
        return sum(
            row.tokens_in - row.tokens_out
            for row in self.stages
            if row.tokens_in is not None and row.tokens_out is not None
        )

    @property
    def seconds(self) -> float:
        """Wall time of all stages together."""
        return sum(row.seconds for row in self.stages)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON values."""
        return {
            "tokens_saved": self.tokens_saved,
            "seconds": self.seconds,
            "stages": [asdict(row) for row in self.stages],
        }
