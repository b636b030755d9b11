"""The calls of a prompt that lists its items: one an item, all beginning with the same bytes."""

from __future__ import annotations

from dataclasses import replace

from ..middleware.types import Message, Request, Text
from .calibration import num_tokens
from .echoes import ListMark
from .graph import DEFAULT_LENGTH
from .listed import Listed
from .slots import Slot

NO_ANSWER = "[no answer]"
_ONE = (
    "\n\nThe items come one at a time. Below is one of them: write what is asked for this one, "
    "without its number, without repeating the task, and nothing else.\n\nItem: "
)


def with_last_text(request: Request, text: str) -> tuple[Message, ...]:
    """Return the messages with another text in the last one, documents written into them."""
    *before, last = request.messages
    said = replace(last, parts=(*last.parts[:-1], Text(text)))
    return replace(request, messages=(*before, said)).with_documents_inline().messages


def item_slots(request: Request, listed: Listed) -> list[Slot]:
    """Return a slot for each item; the messages differ in the item alone, at their end."""
    return [
        Slot(
            f"item {at}",
            with_last_text(request, listed.task + _ONE + item),
            otherwise=NO_ANSWER,
            length=round(1.3 * num_tokens(item)) + 8 if listed.is_short else DEFAULT_LENGTH,
            mark=ListMark(mark, item),
        )
        for at, (mark, item) in enumerate(zip(listed.marks, listed.items, strict=True), 1)
    ]


def item_pieces(request: Request, listed: Listed) -> list[str | Slot]:
    """Return the answer's pieces: every item's own mark, then its answer, in the items' order."""
    gap = "\n" if listed.is_short else "\n\n"
    pieces: list[str | Slot] = []
    for at, (mark, slot) in enumerate(zip(listed.marks, item_slots(request, listed), strict=True)):
        pieces += [(gap if at else "") + (f"{mark} " if mark else ""), slot]
    return pieces
