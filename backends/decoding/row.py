"""One answer in the making."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ...middleware.types import Enforcement, FinishReason, Usage
from .automaton import Matcher, apply_mask, forced_token
from .closing import Closing
from .guessing import Guesser
from .lookup import Lookup
from .sampling import Sampler
from .stream import Detokenizer, StopFilter

if TYPE_CHECKING:
    import torch


@dataclass(slots=True, eq=False)
class Row:
    """One request of a batch: what it still may do and what it has written.

    ``key`` tells the caller which request it is. ``finish_reason`` is None until the row ends.
    Tokens beyond ``num_read`` (of prompt and answer) are certain but not read by the model yet;
    ``draft`` are guesses at what follows them, to be read along and checked in the same pass.
    ``num_cached`` tokens of the prompt were known from other rows.
    Without ``runs_ahead`` every token takes a pass of its own, forced or not.
    """

    key: int
    prompt: Sequence[int]
    max_tokens: int
    eos: frozenset[int]
    sampler: Sampler
    detokenizer: Detokenizer
    stop: StopFilter
    matcher: Matcher | None = None
    guesser: Guesser | None = None
    lookup: Lookup | None = None
    closing: Closing | None = None
    runs_ahead: bool = True
    tokens: list[int] = field(default_factory=list[int])
    text: str = ""
    finish_reason: FinishReason | None = None
    num_read: int = 0
    num_cached: int = 0
    num_forced: int = 0
    num_passes: int = 0
    closed_at: int | None = None
    draft: list[int] = field(default_factory=list[int])
    is_guessed: bool = False

    @property
    def length(self) -> int:
        """Tokens of the prompt and the answer."""
        return len(self.prompt) + len(self.tokens)

    @property
    def usage(self) -> Usage:
        """What the row has cost so far."""
        return Usage(
            prompt_tokens=len(self.prompt),
            completion_tokens=len(self.tokens),
            cached_tokens=self.num_cached,
            forced_tokens=self.num_forced,
        )

    @property
    def enforced(self) -> Enforcement | None:
        """How far the answer was held to its constraint, None without one."""
        if self.matcher is None:
            return None
        return replace(
            self.matcher.enforcement, was_closed=self.was_closed, closed_at=self.closed_at
        )

    @property
    def was_closed(self) -> bool:
        """Whether the answer was brought to its end early, to fit ``max_tokens``."""
        return self.closing is not None and self.closing.was_needed

    def unread(self, limit: int | None = None) -> list[int]:
        """Return the certain tokens that come next, at most ``limit`` of them."""
        prompt = len(self.prompt)
        if self.num_read >= prompt:
            unread = self.tokens[self.num_read - prompt :]
        else:
            unread = [*self.prompt[self.num_read :], *self.tokens]
        return unread if limit is None else unread[:limit]

    def start(self) -> str:
        """Take the tokens that are certain before anything was read; returns their text.

        Raises UnsupportedConstraint when the constraint outgrew the automaton.
        """
        return self._run_ahead()

    def take(self, logits: torch.Tensor) -> str:
        """Take the next tokens and return the text that has become certain.

        ``logits``: [1 + len(draft), vocabulary], after the last certain token and after each
        token of the draft. A guess that the model would have chosen itself is kept, so that the
        answer is the one without guesses. Raises UnsupportedConstraint when the constraint
        outgrew the automaton.
        """
        draft, self.draft = self.draft, []
        delta = ""
        accepted = 0
        for place in range(len(draft) + 1):
            token = self._choose(logits[place])
            delta += self._append(token)
            if self.finish_reason:
                return delta
            if place == len(draft) or token != draft[place]:
                break
            accepted += 1
            self.num_read += 1  # it has been read already, as a guess
            self.num_forced += 1
        if self.guesser is not None and self.is_guessed:
            self.guesser.learn(len(draft), accepted)
        return delta + self._run_ahead()

    def follow(self, tokens: Sequence[int]) -> str:
        """Take tokens that somebody else chose; returns the text that has become certain.

        Those behind the answer's end are left out.
        """
        delta = ""
        for token in tokens:
            if self.finish_reason:
                break
            delta += self._append(token)
        return delta

    def _choose(self, logits: torch.Tensor) -> int:
        """Return the next token. ``logits``: [vocabulary]."""
        if self.matcher is None:
            return self.sampler.pick(logits)
        mask = self.matcher.mask()
        if (token := forced_token(mask)) is None:
            token = self.sampler.pick(apply_mask(mask, logits))
        if self.closing is not None:
            token = self.closing.choose(self.matcher, token, self.max_tokens - len(self.tokens))
            if self.was_closed and self.closed_at is None:
                self.closed_at = len(self.text)
        return token

    def _append(self, token: int) -> str:
        """Take a token and return the text that has become certain."""
        self.tokens.append(token)
        if self.matcher is not None:
            self.matcher.advance(token)
        if self.closing is not None:
            self.closing.advance(token)
        if token in self.eos:
            was_ended = self.closing is not None and self.closing.was_ended
            return self._end("length" if self.was_closed or was_ended else "stop")
        piece = self.detokenizer.push(token)
        if self.guesser is not None:
            self.guesser.push(piece)
        delta = self.stop.push(piece)
        self.text += delta
        if self.stop.is_hit:
            self.finish_reason = "stop"
        elif self.matcher is not None and self.matcher.is_finished:
            return delta + self._end("length" if self.was_closed else "stop")
        elif len(self.tokens) >= self.max_tokens:
            return delta + self._end("length")
        return delta

    def _run_ahead(self) -> str:
        """Take the tokens that the constraint forces, and guess at those after them."""
        delta = ""
        if not self.runs_ahead:
            return delta
        for token in self.matcher.forced() if self.matcher is not None else ():
            delta += self._append(token)
            self.num_forced += 1
            if self.finish_reason:
                return delta
        draft = self.guesser.guess() if self.guesser is not None else []
        self.is_guessed = bool(draft)  # and not looked up
        if not draft and self.lookup is not None:
            draft = self.lookup.guess([*self.prompt, *self.tokens])
        self.draft = draft[: self.max_tokens - len(self.tokens) - 1]
        return delta

    def _end(self, reason: FinishReason) -> str:
        rest = self.stop.push(self.detokenizer.flush()) + self.stop.flush()
        self.text += rest
        self.finish_reason = "stop" if self.stop.is_hit else reason
        return rest
