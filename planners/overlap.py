"""Where a continuation really continues: cuts off what it repeats of the text before it."""

from __future__ import annotations

_MIN = 12  # characters; a shorter match is chance
_MAX = 120
_RESTART = 24, 60  # sentences often begin alike; a text that begins again is alike for longer


class Overlap:
    """Reads the continuation of ``before`` in pieces and returns what is new in them.

    A model that is asked to continue often repeats the last words, or begins again. Pieces are
    held until it is clear which of these it is. A text that begins again and then differs is
    taken from where it differs: a rough seam, but nothing twice.

    >>> overlap = Overlap("The pump moves heat from the air")
    >>> overlap.feed("moves heat from the air ") + overlap.feed("into the house.")
    ' into the house.'
    """

    def __init__(self, before: str) -> None:
        self._before = before.rstrip()
        self._is_spaced = before != self._before
        self._held: str | None = ""

    def feed(self, piece: str) -> str:
        """Return what is new in the text so far and was not returned yet."""
        if self._held is None:
            return piece
        self._held += piece
        held = self._held.lstrip()
        is_again = len(held) < len(self._before) and self._before.startswith(held)
        tail = self._before[-_MAX:]
        return "" if is_again or held in tail else self.flush()

    def flush(self, *, is_broken: bool = False) -> str:
        """Return what is new in all that is held: the text ended, or it is clear what it is.

        ``is_broken``: the text did not end by itself, so that what may be a repetition is better
        asked for again than shown.
        """
        text, self._held = self._held or "", None
        held = text.lstrip()
        if (is_broken or len(held) >= _MIN) and held in self._before[-_MAX:]:
            return ""
        same = self._same(held)
        shortest, longest = _RESTART
        enough = max(shortest, min(longest, len(self._before) // 2))
        if enough <= same < min(len(held), len(self._before)):
            rest = held[held.rfind(" ", 0, same) + 1 :]
            return self._gap(rest) + rest
        size = self._repeated(held, same)
        if size:
            return held[size:].lstrip() if self._is_spaced else held[size:]
        return self._gap(text) + text

    def _same(self, held: str) -> int:
        """Return how many characters it has in common with the beginning of the text."""
        pairs = enumerate(zip(held, self._before, strict=False))
        return next((i for i, (a, b) in pairs if a != b), min(len(held), len(self._before)))

    def _repeated(self, held: str, same: int) -> int:
        """Return how many characters at the start of the continuation are there already."""
        is_whole = same == len(self._before)  # begun again, however short it was
        if is_whole or (same >= _MIN and same == len(held)):
            return same
        longest = min(len(held), len(self._before), _MAX)
        sizes = range(longest, _MIN - 1, -1)
        return next((n for n in sizes if self._before.endswith(held[:n])), 0)

    def _gap(self, text: str) -> str:
        """Put a space between two Latin words that the engine's calls have torn apart."""
        ends = self._before[-1:] + text[:1]
        is_torn = len(ends) == 2 and ends.isascii() and (ends[0].isalnum() or ends[0] in ".,;:!?")
        return " " if is_torn and ends[1].isalnum() and not self._is_spaced else ""
