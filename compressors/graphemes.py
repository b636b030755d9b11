"""Where a text must not be cut: inside what a reader sees as one character."""

from __future__ import annotations

import unicodedata

_JOINER = "\u200d"
_MAX_RUN = 64


def joins_previous(text: str, at: int) -> bool:
    """Return whether the character at ``at`` belongs to the one before it.

    Combining marks, variation selectors, emoji joiners, skin tones, tag characters, the second
    half of a flag, conjoining Hangul and CR LF (Unicode Standard Annex 29, rules GB3 to GB13,
    without the Indic conjuncts of GB9c that need property tables).
    """
    if at <= 0 or at >= len(text):
        return False
    char, before = text[at], text[at - 1]
    if char < "\u0300":
        return (char == "\n" and before == "\r") or before == _JOINER
    if before == _JOINER or char == _JOINER or char == "\u200c":
        return True
    if before in "\r\n" or unicodedata.category(before) == "Cc":
        return False
    code = ord(char)
    if (
        0x1F3FB <= code <= 0x1F3FF
        or 0xE0020 <= code <= 0xE007F
        or 0xFF9E <= code <= 0xFF9F  # half-width voicing marks
        or char in "\u0e33\u0eb3"  # Thai and Lao am: written after, read with
    ):
        return True
    if unicodedata.category(char)[0] == "M":
        return True
    if 0x1160 <= code <= 0x11FF:  # conjoining vowels and final consonants
        return unicodedata.category(before) == "Lo" and 0x1100 <= ord(before) <= 0xD7FF
    if 0x1100 <= code <= 0x115F or 0xAC00 <= code <= 0xD7A3:
        return 0x1100 <= ord(before) <= 0x115F
    if 0x1F1E6 <= code <= 0x1F1FF:
        return _flags_before(text, at) % 2 == 1
    return False


def _flags_before(text: str, at: int) -> int:
    count = 0
    while count < _MAX_RUN and at > count and 0x1F1E6 <= ord(text[at - 1 - count]) <= 0x1F1FF:
        count += 1
    return count
