"""The slots of an answer whose parts are known before the first call, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..middleware.errors import HeadraceError
from ..middleware.types import Constraint, Enforcement, FinishReason, Message
from .echoes import ListMark, without_fence
from .graph import DEFAULT_LENGTH, Node
from .join import closing_fence


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in the answer.

    With a ``constraint`` the text is held until it is whole and checked. Other text is passed on
    as it comes, up to ``until``, and without ``prefix`` or the ``mark`` of a list where it begins
    with that. ``otherwise`` stands where the engine does not write it; None: the answer ends before
    this slot. ``length`` is a guess at its tokens.
    """

    name: str
    messages: tuple[Message, ...]
    constraint: Constraint | None = None
    until: str | None = None
    prefix: str = ""
    mark: ListMark | None = None
    otherwise: str | None = None
    length: int = DEFAULT_LENGTH


Check = Callable[[Slot, str], "str | None"]


def slot_nodes(pieces: Sequence[str | Slot]) -> tuple[Node, ...]:
    """Return the slots as parts of a plan that need nothing of one another."""
    slots = [piece for piece in pieces if isinstance(piece, Slot)]
    return tuple(Node(at, slot.name, length=slot.length) for at, slot in enumerate(slots, 1))


@dataclass(slots=True)
class SlotWork:
    """What became of a slot; times are seconds since the request began."""

    slot: Slot
    start: float | None = None
    end: float | None = None
    text: str = ""
    num_sent: int = 0
    num_tokens: int = 0
    num_retries: int = 0
    finish_reason: FinishReason = "stop"
    error: HeadraceError | None = None
    enforced: Enforcement | None = None

    @property
    def is_written(self) -> bool:
        """Whether the engine has written it to its end."""
        return self.end is not None and self.error is None

    @property
    def is_blank(self) -> bool:
        """Whether nothing is to be shown of all that was written; a ``prefix`` alone is a text."""
        return not (self.text.strip() if self.slot.prefix else self._free(is_ended=True))

    def take(self) -> str:
        """Return what may be sent now: for free text all but the white space at its end."""
        if self.slot.constraint is None:
            text = self._free(is_ended=self.end is not None)
        else:
            text = self.text.strip() if self.is_written else ""
        piece, self.num_sent = text[self.num_sent :], max(len(text), self.num_sent)
        return piece

    def _free(self, *, is_ended: bool) -> str:
        slot, own = self.slot, self._own(is_ended=is_ended)
        if own is None:
            return ""
        text = own.lstrip()
        if slot.until is not None:
            text, found, _ = text.partition(slot.until)
            if not found and not is_ended:
                text = text[: -len(slot.until)]
        text = text.strip()
        fence = closing_fence(text) if is_ended and text else ""
        # A field ends where the text behind it begins; nothing that we add may end it before.
        return text if slot.until and slot.until in text + fence else text + fence

    def _own(self, *, is_ended: bool) -> str | None:
        """Return the text without what is there already, None while that is not clear."""
        slot, text = self.slot, self.text.lstrip()
        if slot.prefix:
            is_begun = not is_ended and slot.prefix.startswith(text)
            return None if is_begun else text.removeprefix(slot.prefix)
        if slot.mark is not None:
            return slot.mark.without(text, is_ended=is_ended)
        return without_fence(text, is_ended=is_ended) if slot.until == "\n" else text
