"""Tokens as an engine spells them to places in the text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from ...middleware.errors import BackendError

_NEAR = 64
_RUN = 6
_SPECIAL = 2
_BYTES = re.compile(r"<0x[0-9A-Fa-f]{2}>|bytes:.*", re.DOTALL)


def aligned(text: str, tokens: Sequence[str]) -> list[tuple[int, int]]:
    """Return the characters [start, end) of each token; (0, 0) for one that is not of the text.

    Engines do not all spell the prompt back as it was. Understood are special tokens before the
    text, tokens after it (what was generated), SentencePiece's "▁" and GPT-2's "Ġ" and "Ċ" for
    white space, a space that was put before the first word, and tokens that hold a part of a
    character: "", U+FFFD, "<0xE2>" or "bytes:" and an escape. Several such tokens share the
    characters up to the next token that can be read.

    Raises BackendError when the tokens do not spell the text.

    >>> aligned("a é b", ["<s>", "a", " ", "<0xC3>", "<0xA9>", " b", "!"])
    [(0, 0), (0, 1), (1, 2), (2, 3), (2, 3), (3, 5), (0, 0)]
    """
    spans: list[tuple[int, int]] = [(0, 0)] * len(tokens)
    unread: list[int] = []
    at = 0
    for i, token in enumerate(tokens):
        if at >= len(text) and not unread:
            break
        if not _is_readable(token):
            if "\ufffd" in token and text.startswith(token, at) and not unread:
                spans[i] = (at, at + len(token))
                at += len(token)
            else:
                unread.append(i)
            continue
        found = _sought(text, tokens, i, at, len(unread)) if unread else _here(text, token, at)
        if found is None:
            if unread:  # generated, after a text that ends in them
                break
            if at == 0 and i < _SPECIAL:
                continue  # a special token before the text
            raise BackendError(
                f"the engine's tokens do not spell the prompt at character {at}"
                f" ({token!r:.40}); give tokenizer=, the model's name, and ids are sent instead"
            )
        start, end = found
        for j in unread:
            spans[j] = (at, start)
        unread = []
        spans[i] = (start, end)
        at = end
    for j in unread:
        spans[j] = (at, len(text))
    if tokens and text and not any(end > start for start, end in spans):
        raise BackendError(
            f"the engine's tokens do not spell the prompt ({tokens[0]!r:.40} ...);"
            " give tokenizer=, the model's name, and ids are sent instead"
        )
    return spans


def _here(text: str, token: str, at: int) -> tuple[int, int] | None:
    """Return where a token stands that follows directly."""
    for spelling in _spellings(token, at == 0):
        if text.startswith(spelling, at):
            return at, at + len(spelling)
    return None


def _sought(
    text: str, tokens: Sequence[str], i: int, at: int, unread: int
) -> tuple[int, int] | None:
    """Return where token ``i`` stands after unread ones: by the tokens that follow it, too."""
    run = list(takewhile(_is_readable, tokens[i : i + _RUN]))
    for number in range(len(run), 0, -1):
        for spelled in zip(*(_spellings(token) for token in run[:number]), strict=True):
            together = "".join(spelled)
            place = text.find(together, at + 1, at + _NEAR * unread + len(together))
            if place >= 0:
                return place, place + len(spelled[0])
    return None


def _is_readable(token: str) -> bool:
    return bool(token) and "\ufffd" not in token and not _BYTES.fullmatch(token)


def _spellings(token: str, is_first: bool = False) -> tuple[str, ...]:
    """Return a token as it is and as SentencePiece and GPT-2 write white space."""
    plain = token.replace("▁", " ")
    spaced = token.replace("Ġ", " ").replace("Ċ", "\n")
    stripped = plain.removeprefix(" ") if is_first else plain
    return token, plain, spaced, stripped or plain
