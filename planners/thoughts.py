"""Takes a model's reasoning out of a part's stream."""

from __future__ import annotations

_OPEN, _CLOSE = ("<think>", "<thinking>"), ("</think>", "</thinking>")


class Thoughts:
    r"""Reads a text in pieces and returns it without a ``<think>`` block at its beginning.

    A block that never ends is all there is: the text is then empty.

    >>> thoughts = Thoughts()
    >>> thoughts.feed("<thi") + thoughts.feed("nk>Hm.</think>\n") + thoughts.feed("Yes.")
    'Yes.'
    """

    def __init__(self) -> None:
        self._held: str | None = ""
        self._is_inside = False

    def feed(self, piece: str) -> str:
        """Return what of the text can be shown now."""
        if self._held is None:
            return piece
        self._held += piece
        if not self._is_inside:
            start = self._held.lstrip()
            tag = next((tag for tag in _OPEN if start.startswith(tag)), None)
            if tag is None:
                is_coming = any(tag.startswith(start) for tag in _OPEN)
                return "" if is_coming else self._release(self._held)
            self._is_inside = True
            self._held = start[len(tag) :]
        for tag in _CLOSE:
            if tag in self._held:
                rest = self._held.split(tag, 1)[1].lstrip()
                if not rest:
                    self._held, self._is_inside = "", False  # another block may follow
                    return ""
                return self._release(rest)
        return ""

    def flush(self) -> str:
        """Return what is still held: the text has ended."""
        return "" if self._is_inside else self._release(self._held or "")

    def _release(self, text: str) -> str:
        self._held = None
        return text
