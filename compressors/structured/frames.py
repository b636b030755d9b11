"""Texts that are cut through a view, in a selection with others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..budget import Budget
from ..notes import Note
from ..render import Span
from ..select import Scored, Selection, select
from ..tokens import TokenCounter
from .view import View

_ATTEMPTS = 6
_SLACK = 0.01


@dataclass(frozen=True, slots=True)
class Frame:
    """What a text in a selection costs whatever is selected.

    ``fixed`` are the tokens around what is cut, ``least`` those of what is cut when only
    what must stay does, ``words`` those of all of it.
    """

    fixed: int = 0
    least: int = 0
    words: int = 0


def frame_of(view: View | None, scored: Scored, tokens: int, counter: TokenCounter) -> Frame:
    """Return the costs of a text of so many tokens; only JSON has a frame."""
    if view is None or not view.frame:
        return Frame(words=tokens)
    forced = select([scored], Budget(quality=0), None, counter)
    least = sum(forced.tokens)
    around, words = counter.count_many([view.rendered(forced.spans[0]), view.units.text])
    return Frame(around - least, least, words)


def fitted(
    views: Sequence[View | None],
    scored: Sequence[Scored],
    frames: Sequence[Frame],
    budget: Budget,
    left: int | None,
    counter: TokenCounter,
) -> Selection:
    """Select within ``left`` tokens beside the frames; ``tokens`` are those of the results, whole.

    A value costs more tokens in JSON than by itself, for its escapes, so that the right number to
    aim at is searched for.
    """
    if left is None or not any(view is not None and view.frame for view in views):
        return _whole(views, select(scored, budget, left, counter), counter)
    least = sum(frame.least for frame in frames)
    fixed = sum(frame.fixed for frame in frames)
    allowed = left + fixed
    low, high = (least, least + fixed), None  # what was aimed at, and what it came to
    best: Selection | None = None
    aim = left
    for _ in range(_ATTEMPTS):
        found = _whole(views, select(scored, budget, aim, counter), counter)
        tokens = sum(found.tokens)
        if tokens <= allowed:
            best, low = found, (aim, tokens)
        else:
            high = (aim, tokens)
        if allowed - tokens in range(int(_SLACK * allowed) + 1) or found.is_over or high is None:
            break
        aim = low[0] + (high[0] - low[0]) * (allowed - low[1]) // max(high[1] - low[1], 1)
        if aim <= low[0] and high[0] - low[0] > 1:
            aim = (low[0] + high[0]) // 2
        if aim in (low[0], high[0]):
            break
    return best or _whole(views, select(scored, budget, least, counter), counter)


def _whole(views: Sequence[View | None], found: Selection, counter: TokenCounter) -> Selection:
    """Return a selection with the tokens of what its spans make of the whole texts."""
    tokens = [
        count if view is None or not view.frame else counter.count(view.rendered(spans))
        for view, spans, count in zip(views, found.spans, found.tokens, strict=True)
    ]
    return Selection(found.spans, tokens, found.is_over)


def original_of(
    view: View | None, spans: Sequence[Span]
) -> tuple[Sequence[Span], tuple[Note, ...]]:
    """Return selected spans as spans of the original, and the notes among them."""
    return (spans, ()) if view is None else view.original_spans(spans)
