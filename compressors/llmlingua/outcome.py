"""The reference's result: a dictionary with strings for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..compressed import Compressed

PRICE = 0.06
"""US dollars for a thousand tokens of GPT-4 as the reference has them, of 2023."""


def figures(before: int, after: int) -> dict[str, Any]:
    """Return the reference's counts: ``ratio`` "2.0x", ``rate`` "50.0%", ``saving``.

    >>> figures(200, 100)["ratio"], figures(200, 100)["rate"], figures(0, 0)["rate"]
    ('2.0x', '50.0%', '100.0%')
    """
    ratio = before / max(after, 1) if before else 1.0
    rate = after / before if before else 1.0
    saving = (before - after) * PRICE / 1000
    return {
        "origin_tokens": before,
        "compressed_tokens": after,
        "ratio": f"{ratio:.1f}x",
        "rate": f"{rate * 100:.1f}%",
        "saving": f", Saving ${saving:.1f} in GPT-4.",
    }


def joined(instruction: str, contexts: Sequence[str], question: str) -> str:
    r"""Return the prompt: instruction, contexts and question with blank lines, empty ones left out.

    >>> joined("Be brief.", ["a", "", "b"], "Who?")
    'Be brief.\n\na\n\nb\n\nWho?'
    """
    body = "\n\n".join(context for context in contexts if context.strip())
    return "\n\n".join(part for part in (instruction, body, question) if part)


def labelled(result: Compressed) -> list[tuple[str, bool]]:
    """Return the words of a text and whether they stayed."""
    if not result.scores:
        return [(word, bool(result.text)) for word in result.original.split()]
    found: list[tuple[str, bool]] = []
    spans, at = result.spans, 0
    for start, end, _ in result.scores:
        while at < len(spans) and spans[at][1] <= start:
            at += 1
        stays = at < len(spans) and spans[at][0] <= start and end <= spans[at][1]
        found.append((result.original[start:end], stays))
    return found


def label_line(words: Sequence[tuple[str, bool]], word_sep: str, label_sep: str) -> str:
    """Return ``fn_labeled_original_prompt``."""
    return word_sep.join(f"{word}{label_sep}{int(stays)}" for word, stays in words)
