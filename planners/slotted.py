"""An answer of fixed texts and slots between them, each slot written by a call of its own.

There is no planner: what the parts are is known before the first call (the items of a list, the
fields of an object). All slots are written at the same time and read in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

from ..middleware.errors import BackendError, DeadlineExceeded, HeadraceError
from ..middleware.types import (
    Enforcement,
    Finished,
    FinishReason,
    Handler,
    Request,
    TextDelta,
    Usage,
)
from .budget import MIN_TOKENS, Budget
from .calls import Calls
from .counting import Count
from .endings import NEAR
from .overlap import Overlap
from .prompts import continue_messages
from .slots import Check, Slot, SlotWork, num_fixed_tokens
from .thoughts import Thoughts


class SlotsAnswer:
    """Writes the slots of one answer; use it once, inside a running event loop.

    ``pieces`` are fixed texts and slots in the order of the answer, ``width`` is how many slots
    are written at a time. ``check`` says what is wrong with the text of a slot that has a
    constraint, None when it may stand. After ``stream`` has ended, ``failed`` is the index of the
    piece before which the answer had to stop (None: it is whole), and ``unusable`` says why when
    nothing was sent.
    """

    def __init__(
        self,
        request: Request,
        call_next: Handler,
        pieces: Sequence[str | Slot],
        *,
        width: int,
        check: Check = lambda _slot, _text: None,
        calls: Calls | None = None,
    ) -> None:
        self.text = ""
        self.unusable = ""
        self.failed: int | None = None
        self.calls = calls or Calls(request, call_next)
        slots = [piece for piece in pieces if isinstance(piece, Slot)]
        self.works = [SlotWork(slot, slot is slots[-1]) for slot in slots]
        self._request = request
        self._call_next = call_next
        self._pieces = pieces
        self._check = check
        limit = request.sampling.max_tokens
        fixed = sum(num_fixed_tokens(piece) for piece in pieces)
        self._budget = Budget(None if limit is None else max(limit - fixed, 0))
        self._gate = asyncio.Semaphore(width)
        self._news = asyncio.Event()

    @property
    def usage(self) -> Usage:
        """Tokens and calls so far."""
        return self.calls.usage

    @property
    def tokens_left(self) -> int | None:
        """Tokens of the limit that what was shown leaves, None without one."""
        limit = self._request.sampling.max_tokens
        if limit is None:
            return None
        fixed = sum(num_fixed_tokens(piece) for piece in self._pieces[: self.failed])
        kept = sum(work.num_kept for work in self.works[: self.num_shown])
        return max(limit - fixed - kept, 0)

    @property
    def missing(self) -> list[str]:
        """Names of the slots that the engine has not written."""
        return [work.slot.name for work in self.works if not work.is_written]

    @property
    def num_shown(self) -> int:
        """How many slots are in the text that was sent."""
        shown = self._pieces[: self.failed]
        return sum(1 for piece in shown if isinstance(piece, Slot))

    @property
    def finish_reason(self) -> FinishReason:
        """``length`` also where a slot could not be written: the answer is not complete."""
        reasons = {work.finish_reason for work in self.works}
        if "content_filter" in reasons:
            return "content_filter"
        return "length" if "length" in reasons or self.missing else "stop"

    @property
    def enforced(self) -> Enforcement:
        """How far the engine held every slot to its constraint."""
        found = [w.enforced or Enforcement() for w in self.works if w.slot.constraint is not None]
        levels = ("none", "partial", "full")
        level = min(found, key=lambda one: levels.index(one.level)).level if found else "none"
        residual = tuple(dict.fromkeys(text for one in found for text in one.residual))
        was_closed = any(one.was_closed for one in found)
        by = next((one.by for one in found if one.by), "")
        return Enforcement(level, residual, by, was_closed)

    async def stream(self) -> AsyncGenerator[str, None]:
        """Yield the answer's text in order.

        Raises DeadlineExceeded, and whatever the next handler raises beyond HeadraceError. Closing
        it cancels every call and waits until they are closed.
        """
        tasks = [asyncio.create_task(self._write(work)) for work in self.works]
        for task in tasks:
            task.add_done_callback(lambda _: self._news.set())
        works = iter(self.works)
        held = ""
        try:
            for index, piece in enumerate(self._pieces):
                if isinstance(piece, str):
                    held += piece
                    continue
                work = next(works)
                async with aclosing(self._read(work, tasks)) as texts:
                    async for text in texts:
                        self.text += held + text
                        yield held + text
                        held = ""
                if work.is_written or work.num_sent:
                    continue
                if not self.text or piece.otherwise is None:
                    self.failed = index
                    self.unusable = "" if self.text else f"{piece.name} failed: {work.error}"
                    return
                held += piece.otherwise
            if held:
                self.text += held
                yield held
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(
        self, work: SlotWork, tasks: Sequence[asyncio.Task[None]]
    ) -> AsyncGenerator[str, None]:
        while True:
            self._news.clear()
            for task in tasks:
                if task.done():
                    task.result()  # raises what nobody expects, and the deadline
            if text := work.take():
                yield text
            elif work.end is not None:
                return
            else:
                await self._news.wait()

    async def _write(self, work: SlotWork) -> None:
        async with self._gate:
            work.start = self.calls.seconds
            limit = self._budget.max_tokens
            num_open = sum(1 for other in self.works if other.start is None) + 1
            granted = None if limit is None else self._budget.grant(limit, num_open)
            is_begun = False
            while True:
                try:
                    await self._call(work, granted, is_begun=is_begun)
                    if granted is not None and (more := self._more(work, granted)):
                        granted, is_begun = granted + more, True
                        continue
                    problem = self._problem(work)
                except DeadlineExceeded:
                    raise
                except HeadraceError as error:
                    if self._may_retry(work, error):
                        continue
                    work.error = error
                    break
                if problem is None:
                    break
                work.num_retries += 1
                if work.num_retries > 1:
                    work.error = BackendError(problem)
                    break
                work.text, work.num_kept, is_begun = "", 0, False
            work.end = self.calls.seconds
            if granted is not None:
                self._budget.refund(granted - work.num_kept)
            self._news.set()

    def _more(self, work: SlotWork, granted: int) -> int:
        """Return the tokens with which a text that was cut is continued, once; 0: it is not."""
        is_free = work.slot.constraint is None and work.slot.until is None
        if work.finish_reason != "length" or work.is_continued or not is_free:
            return 0
        work.is_continued = True
        num_open = sum(1 for other in self.works if other.start is None)
        return self._budget.grant(max(granted // 2, MIN_TOKENS), num_open + 1)

    async def _call(self, work: SlotWork, granted: int | None, *, is_begun: bool) -> None:
        messages, overlap = work.slot.messages, None
        if work.num_sent or is_begun:  # what was read stays
            overlap = Overlap(work.text)
            messages = continue_messages(messages, overlap.shown)
        else:
            work.text, work.num_kept = "", 0
        work.is_near_end = False
        if granted is not None and (granted := granted - work.num_kept) < 1:
            raise BackendError("there are no tokens left for it")
        await self.calls.cool_down()
        request = replace(
            self._request,
            messages=messages,
            constraint=work.slot.constraint,
            sampling=replace(self._request.sampling, max_tokens=granted),
            deadline=self.calls.remaining(),
        )
        count, said, is_cut = Count(granted), 0, False
        # A held answer has no reasoning; what looks like it is its text.
        thoughts = Thoughts() if work.slot.constraint is None else None
        try:
            async with aclosing(self.calls.count(self._call_next(request))) as events:
                async for event in events:
                    if isinstance(event, Finished):
                        work.finish_reason = event.response.finish_reason
                        said = event.response.usage.completion_tokens
                        is_cut = work.finish_reason == "length"
                        work.enforced = event.response.enforced
                    elif isinstance(event, TextDelta):  # pyright: ignore[reportUnnecessaryIsInstance]
                        count.piece(event.text)
                        if granted is not None and granted - count.num_tokens <= NEAR:
                            work.is_near_end = not work.is_last
                        text = thoughts.feed(event.text) if thoughts else event.text
                        work.text += overlap.feed(text) if overlap else text
                        self._news.set()
        finally:
            num_tokens = count.end(said, is_cut=is_cut)
            work.num_tokens += num_tokens
            work.num_kept += num_tokens
            if thoughts is not None and (text := thoughts.flush()):
                work.text += overlap.feed(text) if overlap else text
            if overlap is not None:
                work.text += overlap.flush()

    def _problem(self, work: SlotWork) -> str | None:
        if work.slot.constraint is not None:
            return self._check(work.slot, work.text.strip())
        return "the engine wrote nothing" if work.is_blank else None

    def _may_retry(self, work: SlotWork, error: HeadraceError) -> bool:
        if work.num_retries or not isinstance(error, BackendError):
            return False
        if not error.may_be_sent_again:
            return False
        work.num_retries += 1
        return True
