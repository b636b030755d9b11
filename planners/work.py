"""What becomes of one part."""

from __future__ import annotations

from dataclasses import dataclass

from ..middleware.errors import BackendError, HeadraceError
from ..middleware.types import FinishReason
from .calls import Calls
from .graph import Node


@dataclass(slots=True)
class Work:
    """A part's calls and their outcome; times are seconds since the request began.

    ``calls`` is the engine that writes it, and ``covers`` the other parts that are in the same
    text. Of the answer's limit, ``num_frame`` tokens are held for what stands around the text and
    ``num_granted`` for the text, of which ``num_kept`` are written; ``num_tokens`` are those of all
    its calls. ``flaw`` says what is wrong with the text in the end ("" for nothing): it is
    "empty", a "refusal", or "repeats part 2".
    """

    node: Node
    start: float
    calls: Calls
    end: float | None = None
    covers: tuple[int, ...] = ()
    num_retries: int = 0
    is_given: bool = False
    num_frame: int = 0
    num_granted: int = 0
    num_kept: int = 0
    num_tokens: int = 0
    is_continued: bool = False
    is_small: bool = False
    is_rescued: bool = False
    finish_reason: FinishReason = "stop"
    error: HeadraceError | None = None
    flaw: str = ""
    alike: tuple[int, float] = (0, 0.0)

    @property
    def is_blank(self) -> bool:
        """Whether there is no text."""
        return self.flaw == "empty"

    @property
    def can_be_rescued(self) -> bool:
        """Whether one more call, with all that was written before it, may help."""
        if self.error is not None:
            return isinstance(self.error, BackendError) and self.error.may_be_sent_again
        return self.flaw in ("empty", "refusal")
