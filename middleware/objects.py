"""Answers as objects while they are being written."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, cast

from .partial import PartialJson
from .partial_template import PartialTemplate
from .types import Constraint, Event, Finished, Response, TextDelta


@dataclass(frozen=True, slots=True)
class PartialObject:
    """What is certain of an answer so far.

    ``value`` is a plain value (dicts, lists, texts, numbers) until the answer is complete, and
    then ``response.parsed``, validated and of the caller's type. ``response`` is None until then.
    """

    value: Any
    response: Response | None = None

    @property
    def is_final(self) -> bool:
        """Whether this is the whole, validated answer."""
        return self.response is not None


class PartialText:
    """The text of a pattern, a choice or a grammar: certain at its end, unless it may grow."""

    def __init__(self, *, grow: bool) -> None:
        self.value = ""
        self.has_value = grow
        self._grow = grow

    def push(self, piece: str) -> bool:
        """Take the next piece; returns whether ``value`` has changed."""
        self.value += piece
        return self._grow and bool(piece)


def reader(constraint: Constraint, *, grow: bool) -> PartialJson | PartialTemplate | PartialText:
    """Return what reads answers under this constraint piece by piece."""
    match constraint.kind:
        case "json_schema":
            return PartialJson(grow=grow)
        case "template":
            return PartialTemplate(cast("str", constraint.spec), grow=grow)
        case _:
            return PartialText(grow=grow)


async def partial_objects(
    events: AsyncGenerator[Event, None], constraint: Constraint, *, grow: bool = False
) -> AsyncGenerator[PartialObject, None]:
    """Yield the answer as far as it is certain, whenever that has changed; the last is final.

    ``events`` come from a pipeline with ``Constrain(retries=0)``, which passes text on as it
    comes; ``constraint`` is the request's. Objects show their finished fields and lists their
    finished items; with ``grow``, what is being written is there too (texts as far as they go,
    never a part of a number). An object that names a property twice may show the first value
    until the second is there. Raises what the pipeline raises: a value seen before may then
    belong to an answer that is not valid.
    """
    partial = reader(constraint, grow=grow)
    async with aclosing(events):
        async for event in events:
            if isinstance(event, TextDelta) and partial.push(event.text):
                yield PartialObject(partial.value)
            elif isinstance(event, Finished):
                yield PartialObject(event.response.parsed, event.response)
