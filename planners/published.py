"""Skeleton-of-Thought as it was published, so that it can be measured beside the others.

Ning et al., arXiv 2307.15337 (ICLR 2024), and github.com/imagination-research/sot (MIT): two kinds
of calls with its own task each, its way to read the list, all points at once, a sentence or two
a point, and nothing before, between or behind them. The prompts say in our words what theirs say.
Its faults are kept (docs/planning.md has them); ``skeleton`` is for answers that are to be used.
"""

from __future__ import annotations

import re

from ..middleware.types import Message, Request
from .mapping import with_last_text
from .slots import Slot

# Section 2.1 and the released code: a number, a dot, and all up to the end of the line.
_POINT = re.compile(r"(\d+)\.\s?([\s\S]+?)(?=\n|\n*$)")
_SKELETON = """\
You are an organizer who gives only the skeleton of an answer, not its content. Give it as a \
numbered list of points (1., 2., 3., ...). No point is a full sentence: each has only 3~5 words. \
A skeleton generally has 3~10 points.

Question:
Which materials are houses built of?
Skeleton:
1. Fired clay bricks.
2. Poured concrete.
3. Timber frames.
4. Natural stone.
5. Rammed earth.

Question:
How can a small office save paper?
Skeleton:
1. Print on both sides.
2. Share files online.
3. Sign documents digitally.
4. Reuse misprinted sheets.

Now give the skeleton for this question. Begin with "1. ".
"""


def skeleton_messages(request: Request) -> tuple[Message, ...]:
    """Return the messages of the first call."""
    question = request.messages[-1].text
    return with_last_text(request, f"{_SKELETON}{question}\nSkeleton:\n")


def read_skeleton(text: str) -> list[tuple[str, str]]:
    r"""Return number and title of each point, the first of each number.

    >>> read_skeleton("Dumplings.\n2. Noodles.")
    [('1', 'Dumplings.'), ('2', 'Noodles.')]
    >>> read_skeleton("")
    []
    """
    text = text.strip()
    whole = text if text.startswith("1.") else f"1. {text}"
    points: dict[str, str] = {}
    for number, title in _POINT.findall(whole):
        points.setdefault(number, title)
    return [(number, title) for number, title in points.items() if title.strip()]


def point_pieces(request: Request, outline: str) -> list[str | Slot]:
    """Return the answer's pieces: each point's line, continued by what its call writes."""
    question = request.messages[-1].text
    shared = (
        "You write one point, and only one, of the whole answer to this question.\n\n"
        f"{question}\n\nThe skeleton of the answer is\n\n{outline.strip()}\n\n"
    )
    pieces: list[str | Slot] = []
    for number, title in read_skeleton(outline):
        head = f"{number}. {title.strip()}"
        task = (
            f"Continue with point {number} and nothing but point {number}. Write it very shortly, "
            f'in 1~2 sentences, and do not go on to other points. Begin with "{head}".'
        )
        slot = Slot(head, with_last_text(request, shared + task), otherwise="", prefix=head)
        pieces += [("\n" if pieces else "") + head + " ", slot]
    return pieces
