"""Writes one part of the answer: at most one more try, at most one continuation."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from ..middleware.errors import BackendError, DeadlineExceeded, HeadraceError
from ..middleware.types import Finished, Message, Response
from .budget import MIN_TOKENS, PART_TOKENS, Budget, wanted_tokens
from .calibration import Calibration, num_tokens
from .calls import Calls
from .endings import NEAR
from .join import Join
from .overlap import Overlap
from .prompts import continue_messages
from .repeats import REPEATED, is_refusal, most_alike
from .thoughts import Thoughts
from .work import Work

Ask = Callable[[str], tuple[Message, ...]]

_MOST_CHARACTERS = 6  # of a token, where pieces are more than one
_LEAST = 8  # tokens of a text; with less it is not begun
_CUT = 1.3  # how much longer a cut text is taken to be
_REASONS = {
    "empty": "Write full sentences, not only the title.",
    "refusal": "Write what is generally known about it.",
}


@dataclass(slots=True)
class Writer:
    """Writes parts into ``join`` and hands on what becomes readable through ``send``.

    ``began`` is called with every call's first piece, ``num_parts`` says how many parts there are;
    ``lengths`` learns, under the name ``kind``.
    """

    calls: Calls
    join: Join
    budget: Budget
    send: Callable[[str], None]
    lengths: Calibration
    kind: str
    began: Callable[[], None]
    num_parts: Callable[[], int]
    num_retries: int = 0
    _overlaps: dict[int, Overlap] = field(default_factory=dict[int, Overlap])

    @property
    def can_retry(self) -> bool:
        """Whether there may be another extra call: half as many as there are parts."""
        return self.num_retries < max(self.num_parts() // 2, 1)

    def count(self, work: Work) -> None:
        """Note an extra call."""
        work.num_retries += 1
        self.num_retries += 1

    async def write(
        self, work: Work, ask: Ask, num_open: Callable[[], int], *, retries: int = 1
    ) -> None:
        """Write a part; ``ask`` makes its messages from the reason for another try ("" at first).

        ``num_open`` counts the other parts that were not given tokens yet. An engine's failure is
        kept in ``work.error``; DeadlineExceeded is raised.
        """
        id, most = work.node.id, work.num_retries + retries
        left = self._begin(work, num_open)
        work.error, work.flaw = None, ""
        is_begun = self.join.written(id) and not self.forget(work)
        messages = self._go_on(work, ask) if is_begun else ask("")
        while left:
            try:
                response = await self._call(work, messages, left)
            except DeadlineExceeded:
                raise
            except HeadraceError as error:
                is_passing = isinstance(error, BackendError) and error.may_be_sent_again
                if not (is_passing or work.is_small) or not self._may_retry(work, most):
                    work.error = error
                    break
                messages = ask("") if self.forget(work) else self._go_on(work, ask)
                left = self._rest(work, num_open)
                continue
            work.finish_reason = response.finish_reason
            work.flaw = self._flaw(work)
            if work.flaw and self._may_retry(work, most):
                reason = self._reason(work)
                messages = ask(reason) if self.forget(work) else self._go_on(work, ask)
                left = self._rest(work, num_open)
            elif response.finish_reason == "length" and not work.is_continued:
                work.is_continued = True
                wanted = max(work.num_granted // 2, MIN_TOKENS)
                left = self._grant_more(work, wanted, num_open)
                if left:
                    messages = self._go_on(work, ask)
            else:
                break
        work.flaw = self._flaw(work)
        if work.flaw.startswith("repeats"):
            self.forget(work)  # said twice is worse than not said here
        self._settle(work)
        if not left and work.error is None:
            work.finish_reason = "length"
        self._observe(work)

    def forget(self, work: Work) -> bool:
        """Forget what is written of a part and can be written again; False if some was sent."""
        if not self.join.reset(work.node.id):
            return False
        work.num_kept = 0
        return True

    def _begin(self, work: Work, num_open: Callable[[], int]) -> int:
        """Return the tokens for a part's first call, with room around its text kept apart."""
        factor, slack = self.lengths.factor(self.kind), self.lengths.slack(self.kind)
        wanted = wanted_tokens(work.node.length, factor, slack)
        work.is_given = True
        frame = 0 if work.num_frame else self.join.num_frame_tokens(work.node.id)
        granted = self.budget.grant(wanted + frame, num_open() + 1)
        if granted < frame + _LEAST:
            self.budget.refund(granted)
            return 0
        work.num_frame += frame
        work.num_granted += granted - frame
        return granted - frame

    def _rest(self, work: Work, num_open: Callable[[], int]) -> int:
        """Return the tokens that a part still may write, 0 where there are none."""
        left = work.num_granted - work.num_kept
        if left < MIN_TOKENS:
            left += self._grant_more(work, MIN_TOKENS - left, num_open)
        return max(left, 0)

    def _grant_more(self, work: Work, wanted: int, num_open: Callable[[], int]) -> int:
        """Return up to so many tokens that nobody else needs."""
        others = num_open()
        more = self.budget.grant(wanted, others + 1, kept=PART_TOKENS * others)
        work.num_granted += more
        return more

    def _settle(self, work: Work) -> None:
        """Give back what the part did not need."""
        self.budget.refund(work.num_granted - work.num_kept)
        work.num_granted = work.num_kept
        if self.join.is_blank(work.node.id) and not self.join.is_sent(work.node.id):
            self.budget.refund(work.num_frame)
            work.num_frame = 0

    def _observe(self, work: Work) -> None:
        """Learn from a text's length; one that we have cut would have been longer."""
        is_cut = work.finish_reason == "length"
        if work.flaw or work.error or (is_cut and self.budget.max_tokens is not None):
            return
        tokens = min(work.num_tokens, 2 * num_tokens(self.join.written(work.node.id)))
        actual = round(tokens * _CUT) if is_cut else tokens
        self.lengths.observe(self.kind, work.node.length, actual)

    async def _call(self, work: Work, messages: tuple[Message, ...], max_tokens: int) -> Response:
        id = work.node.id
        overlap, thoughts = self._overlaps.pop(id, None), Thoughts()
        num_pieces, size, is_broken = 0, 0, True
        self.join.approach(id, is_near_end=False)
        async with aclosing(work.calls.stream(messages, max_tokens)) as events:
            try:
                async for event in events:
                    if isinstance(event, Finished):
                        said = event.response.usage.completion_tokens
                        is_broken = event.response.finish_reason == "length"
                        num_pieces = said or (max_tokens if is_broken else num_pieces)
                        return event.response
                    if not num_pieces:
                        self.began()
                    num_pieces = max(num_pieces + 1, round(size / _MOST_CHARACTERS))
                    size += len(event.text)
                    if max_tokens - num_pieces <= NEAR and not self._is_last(work):
                        self.join.approach(id, is_near_end=True)
                    text = thoughts.feed(event.text)
                    text = overlap.feed(text) if overlap is not None else text
                    self.send(self.join.feed(id, text))
            finally:
                work.num_tokens += num_pieces
                work.num_kept += num_pieces
                text = thoughts.flush()
                if overlap is not None:
                    text = overlap.feed(text) + overlap.flush(is_broken=is_broken)
                self.send(self.join.feed(id, text))
        raise BackendError("the engine's stream ended before the answer did", retryable=True)

    def _is_last(self, work: Work) -> bool:
        """Whether no other part stands behind it, as far as the plan is known."""
        return work.node.id == self.num_parts() or bool(work.covers)

    def _flaw(self, work: Work) -> str:
        """Return what is wrong with the text, as far as it can still be changed."""
        id = work.node.id
        if self.join.is_blank(id):
            return "empty"
        if work.covers:
            return ""
        text = self.join.body(id)
        work.alike = most_alike(text, self.join.ended())
        if self.join.is_sent(id):
            return ""
        if is_refusal(text):
            return "refusal"
        other, share = work.alike
        return f"repeats part {other}" if share > REPEATED else ""

    def _reason(self, work: Work) -> str:
        return _REASONS.get(
            work.flaw, f"Do not say again what is written about point {work.alike[0]}."
        )

    def _may_retry(self, work: Work, most: int) -> bool:
        if work.num_retries >= most or not self.can_retry:
            return False
        self.count(work)
        work.calls, work.is_small = self.calls, False
        return True

    def _go_on(self, work: Work, ask: Ask) -> tuple[Message, ...]:
        """Return the messages that continue what is written; the next call cuts the overlap."""
        overlap = Overlap(self.join.tear(work.node.id))
        self._overlaps[work.node.id] = overlap
        return continue_messages(ask(""), overlap.shown)
