"""What the planner and the writers of the parts are asked.

All calls of one answer begin with the same bytes: the caller's messages with the planning task
behind the last one, then the plan as far as it is written. Only the last message differs, so an
engine with a prefix cache computes the rest once, and the planner's own call warms it.

Texts are put together by concatenation; nothing in a question or a title is ever a template.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ..middleware.types import Message, Text
from .digest import digest
from .graph import Node
from .parser import Mode

# Without an example on purpose: small models copy it (SmolLM2-135M answered with the example's own
# points to five of six questions; with this text it listed the right ones).
_SKELETON = (
    "\n\nDo not answer yet. Write only a numbered list of the 3 to {n} main points of the answer, "
    "in the language of the question. Each point has at most 6 words. No explanations."
)
_GRAPH = (
    "\n\nDo not answer yet. First write only the plan of your answer: 3 to {n} parts, a line "
    "each, in the language of the question. Nothing else. A line is\n"
    "number|title of 2 to 6 words|<numbers of the parts whose text it needs|~length in tens of "
    "words\n"
    "Leave the < field out where a part can be written alone, which is better.\n"
    "{h}"
    'For example, the plan for "Should I buy a heat pump?" is:\n'
    "@plan\n1|What a heat pump does|~6\n2|What it costs|~8\n3|Which to choose|<1,2|~6\n@end"
)

_DIFFICULTY = "A last field says how hard the part is: |h1 easy, |h2 normal, |h3 hard.\n"

_EXAMPLE = frozenset({"What a heat pump does", "What it costs", "Which to choose"})


class Wording(Protocol):
    """What a strategy asks; the parts' messages should begin with the planner's."""

    def plan(
        self, messages: tuple[Message, ...], mode: Mode, max_nodes: int
    ) -> tuple[Message, ...]:
        """Return the messages of the planner's call; the caller's last one is the user's."""
        ...

    def node(
        self,
        planned: tuple[Message, ...],
        plan_text: str,
        node: Node,
        texts: Mapping[int, tuple[str, str]],
        *,
        reason: str = "",
    ) -> tuple[Message, ...]:
        """Return the messages that ask for one part.

        ``planned`` are the planner's messages, the caller's own where the plan was given, and
        ``plan_text`` is what the planner has written so far. ``texts`` holds title and text of the
        parts that this one needs, by id. ``reason`` says what was wrong with an earlier try.
        """
        ...


def is_example(titles: Iterable[str]) -> bool:
    """Whether these are the titles of the prompt's own example: the model has copied it."""
    return len(_EXAMPLE.intersection(titles)) >= 2


def plan_messages(
    messages: tuple[Message, ...], mode: Mode, max_nodes: int, *, with_difficulty: bool = False
) -> tuple[Message, ...]:
    """Return the messages of the planner's call; the last message must be the user's.

    ``with_difficulty``: a graph says how hard each part is.
    """
    task = _SKELETON if mode == "skeleton" else _GRAPH
    task = task.replace("{h}", _DIFFICULTY if with_difficulty else "")
    return with_task(messages, task.replace("{n}", str(max(max_nodes, 3))))


def with_task(messages: tuple[Message, ...], task: str) -> tuple[Message, ...]:
    """Return the messages with a task at the end of the last one's text."""
    *before, last = messages
    first, tail = last.parts[:-1], last.parts[-1:]
    if tail and isinstance(tail[0], Text) and not tail[0].fields:
        parts = (*first, Text(tail[0].text + task))
    else:
        parts = (*last.parts, Text(task.lstrip()))
    shape = last.shape if last.shape == "parts" else "text"
    return (*before, replace(last, parts=parts, shape=shape))


def node_messages(
    planned: tuple[Message, ...],
    plan_text: str,
    node: Node,
    texts: Mapping[int, tuple[str, str]],
    *,
    reason: str = "",
) -> tuple[Message, ...]:
    """Return the messages that ask for one part.

    ``planned`` are the planner's messages and ``plan_text`` what it has written so far. ``texts``
    holds title and text of the parts that this one needs, by id; they are passed on unchanged up
    to 400 tokens, else as their digest. ``reason`` says what was wrong with an earlier try.
    """
    intro = _written({id: (title, digest(text)) for id, (title, text) in texts.items()})
    note = f" In it, {node.note}." if node.note else ""
    agrees = " and ".join(str(id) for id in node.agrees)
    agree = f" It must agree with part {agrees}." if agrees else ""
    again = f" {reason}" if reason else ""
    words = max(node.length * 3 // 4, 20)
    size = f"one paragraph of about {words} words" if words <= 90 else f"about {words} words"
    language = "" if node.title.isascii() else " Answer in the language of the question."
    # Plain words on purpose: with any mention of a list or of "the other points" here,
    # SmolLM2-135M writes the list again instead of the text.
    task = (
        f'{intro}What can you say about point {node.id}, "{node.title}"? Answer in {size}.'
        f"{note}{agree}{language}{again}"
    )
    return (*planned, Message.assistant(plan_text), Message.user(task))


@dataclass(frozen=True, slots=True)
class PlainWords:
    """The wording of this module; ``with_difficulty`` has graphs say how hard a part is."""

    with_difficulty: bool = False

    def plan(
        self, messages: tuple[Message, ...], mode: Mode, max_nodes: int
    ) -> tuple[Message, ...]:
        """Return the messages of the planner's call."""
        return plan_messages(messages, mode, max_nodes, with_difficulty=self.with_difficulty)

    def node(
        self,
        planned: tuple[Message, ...],
        plan_text: str,
        node: Node,
        texts: Mapping[int, tuple[str, str]],
        *,
        reason: str = "",
    ) -> tuple[Message, ...]:
        """Return the messages that ask for one part."""
        return node_messages(planned, plan_text, node, texts, reason=reason)


PLAIN_WORDS: Wording = PlainWords()


def rest_messages(
    planned: tuple[Message, ...],
    plan_text: str,
    nodes: Sequence[Node],
    texts: Mapping[int, tuple[str, str]],
    *,
    reason: str = "",
) -> tuple[Message, ...]:
    """Return the messages that ask for these parts in one text, with the plan kept before it.

    ``texts`` are the parts that were written before them, whole.
    """
    first, last = nodes[0], nodes[-1]
    words = max(sum(node.length for node in nodes) * 3 // 4, 20)
    which = f"point {first.id}" if first is last else f"points {first.id} to {last.id}"
    every = "the whole answer now: all points" if first.id == 1 else f"{which} now"
    language = "" if first.title.isascii() else " Answer in the language of the question."
    again = f" {reason}" if reason else ""
    task = (
        f"{_written(texts)}Write {every}, one after the other, in about {words} words. Begin each "
        f"with its number and its title in bold, then a paragraph of full sentences, like this:\n"
        f"{first.id}. **{first.title}**: ...{language}{again}"
    )
    if not plan_text:  # the plan was given
        points = "".join(f"{node.id}. {node.title}\n" for node in nodes)
        return with_task(planned, f"\n\nThe points are:\n{points}\n{task}")
    return (*planned, Message.assistant(plan_text), Message.user(task))


def _written(texts: Mapping[int, tuple[str, str]]) -> str:
    written = "".join(
        f"{id}. {title}\n{text}\n\n" for id, (title, text) in sorted(texts.items()) if text
    )
    return f"These parts are already written:\n\n{written}" if written else ""


def continue_messages(messages: tuple[Message, ...], text: str) -> tuple[Message, ...]:
    """Return the messages that ask to go on after ``text``, for engines with or without prefill.

    Where there is no text, they ask for it as at first.
    """
    if not text.strip():
        return messages
    task = (
        "Your text was cut off. Continue it exactly where it stops, in the middle of the sentence "
        "if it stops there. Do not repeat anything that is already written."
    )
    return (*messages, Message.assistant(text), Message.user(task))
