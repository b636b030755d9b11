"""What the parts of one answer have to reckon with: the engine's costs, its load, its cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..middleware.types import Request
from .calibration import num_tokens
from .calls import Calls
from .known import KnownEngine
from .predictor import Situation
from .width import allowed_width


@dataclass(slots=True)
class Outlook:
    """One answer's view of the engine.

    ``kind`` is the task whose lengths are learnt, ``most_width`` the caller's limit.
    """

    engine: KnownEngine
    calls: Calls
    request: Request
    kind: str
    most_width: int

    @property
    def others(self) -> int:
        """Calls of other requests that are under way."""
        return max(self.engine.num_open - self.calls.num_open, 0)

    @property
    def width(self) -> int:
        """How many parts may be written at a time beside the others."""
        each = self.engine.context / max(self.engine.num_rows, 1)
        return allowed_width(
            self.engine.cost, limit=self.most_width, others=self.others, context=each
        )

    @property
    def ahead(self) -> int:
        """About how many tokens a plain answer that began with the request has by now."""
        cost = self.engine.cost
        step = cost.seconds(2, self.engine.context)
        return round(max(self.calls.seconds - cost.call, 0) / step)

    def situation(self, prompt: int, num_parts: int, written: Mapping[int, str]) -> Situation:
        """Return what a forecast starts from.

        ``prompt`` are the tokens that all calls begin with, ``written`` the texts of the parts that
        are being written.
        """
        limit, engine = self.request.sampling.max_tokens, self.engine
        return Situation(
            engine.cost,
            prompt,
            engine.cached(prompt),
            engine.shared(prompt),
            engine.lengths.factor(self.kind),
            limit / max(num_parts, 1) if limit is not None else float("inf"),
            {id: num_tokens(text) for id, text in written.items()},
            self.others,
            self.others * engine.context / max(engine.num_open, 1),
        )
