"""One answer in the making."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...middleware.types import FinishReason, Usage
from .automaton import Matcher
from .sampling import Sampler
from .stream import Detokenizer, StopFilter

if TYPE_CHECKING:
    import torch


@dataclass(slots=True, eq=False)
class Row:
    """One request of a batch: what it still may do and what it has written.

    ``key`` tells the caller which request it is. ``finish_reason`` is None until the row ends.
    """

    key: int
    prompt: Sequence[int]
    max_tokens: int
    eos: frozenset[int]
    sampler: Sampler
    detokenizer: Detokenizer
    stop: StopFilter
    matcher: Matcher | None = None
    tokens: list[int] = field(default_factory=list[int])
    text: str = ""
    finish_reason: FinishReason | None = None

    @property
    def length(self) -> int:
        """Tokens of the prompt and the answer."""
        return len(self.prompt) + len(self.tokens)

    @property
    def usage(self) -> Usage:
        """What the row has cost so far."""
        return Usage(prompt_tokens=len(self.prompt), completion_tokens=len(self.tokens))

    def choose(self, logits: torch.Tensor) -> int:
        """Return the next token. ``logits``: [vocabulary].

        Raises UnsupportedConstraint when the constraint outgrew the automaton.
        """
        if self.matcher is None:
            return self.sampler.pick(logits)
        import torch

        from .automaton import forced_token, unpack

        mask = self.matcher.mask()
        if (token := forced_token(mask)) is not None:
            return token
        allowed = torch.as_tensor(unpack(mask, logits.shape[-1]), device=logits.device)
        return self.sampler.pick(logits.masked_fill(~allowed, float("-inf")))

    def append(self, token: int) -> str:
        """Take a token and return the text that has become certain."""
        self.tokens.append(token)
        if self.matcher is not None:
            self.matcher.advance(token)
        if token in self.eos:
            return self._end("stop")
        delta = self.stop.push(self.detokenizer.push(token))
        self.text += delta
        if self.stop.is_hit:
            self.finish_reason = "stop"
        elif self.matcher is not None and self.matcher.is_finished:
            return delta + self._end("stop")
        elif len(self.tokens) >= self.max_tokens:
            return delta + self._end("length")
        return delta

    def _end(self, reason: FinishReason) -> str:
        rest = self.stop.push(self.detokenizer.flush()) + self.stop.flush()
        self.text += rest
        self.finish_reason = "stop" if self.stop.is_hit else reason
        return rest
