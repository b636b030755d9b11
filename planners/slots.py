"""The slots of an answer whose parts are known before the first call, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..middleware.errors import HeadraceError
from ..middleware.types import Constraint, Enforcement, FinishReason, Message
from .budget import MIN_TOKENS
from .calibration import most_tokens
from .echoes import ListMark, without_fence
from .endings import ended, whole_length
from .fences import closing_fence
from .graph import DEFAULT_LENGTH, Node

_ENDING = 4  # tokens: an ellipsis, a fence that is closed


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


def num_fixed_tokens(piece: str | Slot) -> int:
    """Return the most tokens of a fixed text, or of what may be put into or around a slot's."""
    if isinstance(piece, str):
        return most_tokens(piece)
    return most_tokens(piece.otherwise or "") + (0 if piece.constraint else _ENDING)


def is_room(pieces: Sequence[str | Slot], max_tokens: int | None) -> bool:
    """Whether a limit has room for the fixed texts and a little of every slot."""
    if max_tokens is None:
        return True
    least = (min(piece.length, MIN_TOKENS) for piece in pieces if isinstance(piece, Slot))
    return sum(map(num_fixed_tokens, pieces)) + sum(least) <= max_tokens


@dataclass(slots=True)
class SlotWork:
    """What became of a slot; times are seconds since the request began.

    ``num_tokens`` are those of all its calls, ``num_kept`` those of the text that stands.
    ``is_last``: no slot is behind it, so that it may end where it was cut. ``is_near_end``: it may
    be cut soon.
    """

    slot: Slot
    is_last: bool = False
    start: float | None = None
    end: float | None = None
    text: str = ""
    num_sent: int = 0
    num_kept: int = 0
    num_tokens: int = 0
    num_retries: int = 0
    finish_reason: FinishReason = "stop"
    is_continued: bool = False
    is_near_end: bool = False
    error: HeadraceError | None = None
    enforced: Enforcement | None = None

    @property
    def is_written(self) -> bool:
        """Whether the engine has written it to its end."""
        return self.end is not None and self.error is None

    @property
    def is_cut(self) -> bool:
        """Whether a text ended before its end, with others behind it."""
        is_broken = self.finish_reason == "length" or self.error is not None
        return is_broken and not self.is_last and self.slot.constraint is None

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
        if is_ended and text and self.is_cut:
            text = ended(text, self.num_sent)
        elif self.is_near_end and not is_ended:
            text = text[: max(whole_length(text), self.num_sent)]
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
