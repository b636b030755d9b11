"""A long text for another part's prompt: what it says first, and where it goes from there."""

from __future__ import annotations

import re

from .calibration import num_tokens

LONGEST = 400  # tokens; a text of no more is passed on whole
_SENTENCE = re.compile(r".+?(?:[.!?](?=\s|$)|[。！？]|$)", re.S)


def digest(text: str, longest: int = LONGEST) -> str:
    """Return a text of at most ``longest`` tokens (about): whole where it fits.

    Else its first sentence, the first sentence of every paragraph or list item as far as there
    is room, and its last sentence, with " ... " where something was left out. Nothing is
    rewritten.

    >>> digest("One. Two two two two. Three.", 5)
    'One. ... Three.'
    """
    if num_tokens(text) <= longest:
        return text
    blocks = [block.strip() for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+[.)])\s)", text)]
    firsts = [_first(block) for block in blocks if block]
    *_, last = (found.group().strip() for found in _SENTENCE.finditer(text.strip()))
    kept, room = firsts[:1], longest - num_tokens(firsts[0]) - num_tokens(last)
    for sentence in firsts[1:]:
        room -= num_tokens(sentence)
        if room < 0:
            break
        kept.append(sentence)
    if last not in kept:
        kept.append(last)
    cut = " ... ".join(kept)
    most = longest * 8
    return cut if len(cut) <= most else f"{cut[: most // 2]} ... {cut[-most // 2 :]}"


def _first(block: str) -> str:
    found = _SENTENCE.match(block)
    return found.group().strip() if found else block
