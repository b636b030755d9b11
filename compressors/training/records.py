"""What is trained on."""

from __future__ import annotations

from dataclasses import dataclass

Mark = tuple[int, int, float]
"""Characters ``start`` to ``end`` of a passage should be kept with this probability."""


@dataclass(frozen=True, slots=True)
class Example:
    """A passage, read with a question or ("") without one.

    Characters outside the ``marks`` have the label 0. ``weight`` scales the token loss; 0 trains
    relevance only. ``relevance`` is in [0, 1], None when there is nothing to say about it.
    """

    question: str
    passage: str
    marks: tuple[Mark, ...] = ()
    weight: float = 1.0
    relevance: float | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Passages that are compared with one another for one question, or one passage alone."""

    examples: tuple[Example, ...]
    source: str
