"""Where a continuation really continues: cuts off what it repeats of the text before it."""

from __future__ import annotations

import re

_MIN = 12  # characters; a shorter match is chance
_MAX = 120
_RESTART = 24, 60  # sentences often begin alike; a text that begins again is alike for longer
# The last word, in scripts that put spaces between words; a longer run is an address or code.
_WORD = re.compile(r"(?<!\S)[^\s\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\uffef]{1,40}\Z")
_COMPLETE = re.compile(r"[(\[\"'“‘*]*[^\W\d_][\w'’-]*[^\W\d_][.,;:!?][)\]\"'”’*]*")


class Overlap:
    """Reads the continuation of ``before`` in pieces and returns what is new in them.

    A model that is asked to continue often repeats the last words, or begins again. Pieces are
    held until it is clear which of these it is. A text that begins again and then differs is
    taken from where it differs: a rough seam, but nothing twice.

    A text that was cut may end inside a word. That cannot be seen, so the last ``word`` counts as
    torn unless a mark ends it, and the model is to be shown the text before it, ``shown``: it
    writes the word again, of which only the rest is new. A model that writes another one has begun
    a new word. So nothing is ever put into a word.

    >>> overlap = Overlap("The pump moves heat from the air")
    >>> overlap.feed("moves heat from the air ") + overlap.feed("into the house.")
    ' into the house.'
    >>> overlap = Overlap("The pump transf")
    >>> overlap.shown, overlap.feed("transfers heat.")
    ('The pump ', 'ers heat.')
    """

    def __init__(self, before: str) -> None:
        self.word = torn_word(before)
        self.shown = before[: len(before) - len(self.word)]
        self._before = before.rstrip()
        self._space = before[len(self._before) :]
        self._held: str | None = ""
        self._doubled = ""  # of the white space at its end, what the continuation may repeat

    def feed(self, piece: str) -> str:
        """Return what is new in the text so far and was not returned yet."""
        if self._held is None:
            return self._new(piece)
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
        same = _num_same(held, self._before)
        shortest, longest = _RESTART
        enough = max(shortest, min(longest, len(self._before) // 2))
        if enough <= same < min(len(held), len(self._before)):
            rest = held[held.rfind(" ", 0, same) + 1 :]
            return self._gap(rest) + rest
        size = self._repeated(held, same)
        if size:
            self._doubled = self._space
            return self._new(held[size:])
        if self.word and held.startswith(self.word):
            return held[len(self.word) :]
        return self._gap(text) + (text.lstrip(" \t") if self._space else text)

    def _new(self, text: str) -> str:
        """Return the text without the white space that is there already."""
        same = _num_same(text, self._doubled)
        self._doubled = self._doubled[same:] if same == len(text) else ""
        return text[same:]

    def _repeated(self, held: str, same: int) -> int:
        """Return how many characters at the start of the continuation are there already."""
        is_whole = same == len(self._before)  # begun again, however short it was
        if is_whole or (same >= _MIN and same == len(held)):
            return same
        longest = min(len(held), len(self._before), _MAX)
        sizes = range(longest, _MIN - 1, -1)
        return next((n for n in sizes if self._before.endswith(held[:n])), 0)

    def _gap(self, text: str) -> str:
        """Put a space before a new word that the engine's calls have left out."""
        if self._space or not text[:1].isalnum():
            return ""
        if self.word:
            return " "
        # "so." and "So" are two words; what "readme." and "txt" are nobody knows.
        last = re.sub(r"[)\]\"'”’*]+\Z", "", self._last())[-1:]
        is_next = not text[0].islower() if last in ".!?" else True
        return " " if _COMPLETE.fullmatch(self._last()) and is_next else ""

    def _last(self) -> str:
        found = _WORD.search(self._before)
        return found[0] if found else ""


def _num_same(one: str, other: str) -> int:
    """Return how many characters both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def torn_word(text: str) -> str:
    """Return the last word of a text that was cut, "" where it cannot have been cut inside one.

    >>> torn_word("The pump mo"), torn_word("It costs 3,"), torn_word("So it is,"), torn_word("a ")
    ('mo', '3,', '', '')
    """
    found = _WORD.search(text)
    return "" if found is None or _COMPLETE.fullmatch(found[0]) else found[0]
