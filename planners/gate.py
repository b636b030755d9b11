"""Whether a plan's parts are written at the same time, or all in one call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .predictor import Forecast

MIN_GAIN = 1.15
MAX_EXTRA_PROMPT = 16_384

When = Literal["pays", "always"]


@dataclass(frozen=True, slots=True)
class Gate:
    """When to write parts at the same time.

    ``pays``: only with a predicted gain of ``min_gain`` and no more than ``max_extra`` prompt
    tokens read again; ``always``: whatever is predicted. ``trial`` says why a plan was not expected
    to pay that is followed all the same, to learn what it comes to now.
    """

    when: When = "pays"
    min_gain: float = MIN_GAIN
    max_extra: int = MAX_EXTRA_PROMPT
    trial: str = ""

    def refuses(self, found: Forecast, *, is_running: bool = False) -> str:
        """Return why one call is better, "" when the parts are.

        ``is_running``: both are being written, so that the one to end first is taken. Parts of a
        chain cannot be that but for an error in the lengths.
        """
        if self.when == "always" or self.trial:
            return ""
        least = 1.0 if is_running and not found.is_chain else self.min_gain
        if found.gain < least:
            chain = f" (a chain of {found.chain:.0%})" if found.is_chain else ""
            return f"a predicted gain of {found.gain:.2f} is less than {least:g}{chain}"
        if found.extra_prompt_tokens > self.max_extra:
            return f"{found.extra_prompt_tokens} prompt tokens to read again are too many"
        return ""
