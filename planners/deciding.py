"""Plan or answer, in one call: the first line that the model writes decides.

No router's call, and nothing is lost where the model answers: the answer is already streaming.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from ..middleware.types import Event, Finished, Message, Response, TextDelta
from .heads import read_head
from .parser import Mode
from .prompts import PlainWords, with_task

_LIST = (
    "write only a numbered list of these sections, in the language of the question, each with a "
    "title of at most 6 words"
)
_MARKED = (
    "write only a plan. Its first line is @plan, then comes one line a section, in the language of "
    "the question:\n"
    "number|title of 2 to 6 words|<numbers of the sections whose text it needs, if any|~length in "
    "tens of words\n"
    "and its last line is @end"
)
_TASK = (
    "\n\nIf the best answer to this has three to {n} sections that can be written separately, do "
    "not answer yet: {form}. In all other cases answer at once, and do not mention this paragraph."
)
_PLAN = "@plan"
_MAX_PLAN = 400  # pieces of text; a longer plan is none


@dataclass(frozen=True, slots=True)
class DecidingWords(PlainWords):
    """The wording that lets the model choose; the parts are asked for as ever."""

    def plan(
        self, messages: tuple[Message, ...], mode: Mode, max_nodes: int
    ) -> tuple[Message, ...]:
        """Return the messages of the call that plans or answers."""
        form = _LIST if mode == "skeleton" else _MARKED
        task = _TASK.replace("{n}", str(max(max_nodes, 3))).replace("{form}", form)
        return with_task(messages, task)


class Opening:
    """The beginning of a call that plans or answers, and all that comes after it."""

    def __init__(self, events: AsyncGenerator[Event, None], mode: Mode) -> None:
        self._events = events
        self._mode: Mode = mode
        self._held: list[Event] = []

    async def is_plan(self) -> bool:
        """Read as far as it takes to know: a character for most answers, a line for a plan."""
        text = ""
        async for event in self._events:
            self._held.append(event)
            if isinstance(event, TextDelta):
                text += event.text
            found = begins_plan(text, self._mode, is_ended=isinstance(event, Finished))
            if found is not None:
                return found
        return False

    async def aclose(self) -> None:
        """Close the call, however far it was read."""
        await self._events.aclose()

    async def events(self) -> AsyncGenerator[Event, None]:
        """Yield every event of the call, also those that ``is_plan`` has read."""
        async with aclosing(self._events) as events:
            for event in self._held:
                yield event
            async for event in events:
                yield event

    async def plan_events(self) -> AsyncGenerator[Event, None]:
        """Yield the plan's events and close the call behind ``@end``: the rest is of no use."""
        text, size = "", 0
        async with aclosing(self.events()) as events:
            async for event in events:
                yield event
                if isinstance(event, TextDelta):
                    text, size = text + event.text, size + 1
                    if size > _MAX_PLAN or re.search(r"^@end\b", text, re.M):
                        break
                if isinstance(event, Finished):
                    return
        yield Finished(Response(text))


def begins_plan(text: str, mode: Mode, *, is_ended: bool = False) -> bool | None:
    """Return whether a text is a plan, None while its beginning does not tell.

    Reasoning in tags before the text does not count. A list is a plan in skeleton mode only, and
    only where its first line is no more than a title.

    >>> begins_plan("Exercise helps", "graph"), begins_plan("@pl", "graph")
    (False, None)
    """
    text = text.lstrip()
    if text[:1] == "<" and not is_ended and "<think".startswith(text[:6]):
        _, end, text = text.partition("</think")
        text = text.partition(">")[2].lstrip() if end else ""
    if not text and not is_ended:
        return None
    line, ended, _ = text.partition("\n")
    word = line.lstrip("*`")
    if word.startswith(_PLAN):
        after = word[len(_PLAN) :]
        if after:
            return not after[0].isalnum()
        return True if ended or is_ended else None
    if not (ended or is_ended) and (not word or _PLAN.startswith(word)):
        return None
    if mode != "skeleton":
        return False
    if not (ended or is_ended):
        is_maybe = re.match(r"[(*#\s]*\d{0,2}[.):]?(?:$|\s)", line) and len(line.split()) <= 10
        return None if is_maybe else False
    head = read_head(line)
    return head is not None and head.number == 1 and 1 <= len(head.text.split()) <= 8
