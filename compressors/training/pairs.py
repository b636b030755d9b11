"""Your own questions and passages, to fine-tune on.

One JSON object a line:

    {"question": "...", "passage": "...", "answers": ["..."]}       words of the passage that answer
    {"question": "...", "passage": "...", "keep": [[0, 12], ...]}   characters that should stay
    {"question": "...", "passage": "...", "relevant": false}        a passage that does not help
    {"passage": "...", "keep": [[0, 12], ...]}                      no question: what always matters

Lines with the same question are ranked against one another.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...middleware.errors import InvalidRequest
from .files import read_lines
from .labels import answer_marks
from .records import Example, Group, Mark


def pairs(path: Path) -> Iterator[Group]:
    """Yield the groups of a file in the format above.

    Raises InvalidRequest that names the line, when one says nothing to learn from.
    """
    asked: dict[str, list[Example]] = {}
    for number, record in enumerate(read_lines(path), 1):
        example = _example(record, f"{path}, record {number}")
        if example.question:
            asked.setdefault(example.question, []).append(example)
        else:
            yield Group((example,), "pairs, no question")
    for examples in asked.values():
        good = [e for e in examples if e.relevance == 1.0]
        bad = [e for e in examples if e.relevance == 0.0]
        if not good:
            yield from (Group((example,), "pairs") for example in bad)
        for place, example in enumerate(good):
            yield Group((example, *bad[place :: len(good)][:3]), "pairs")


def _example(record: dict[str, Any], where: str) -> Example:
    question, passage = record.get("question") or "", record.get("passage")
    if not isinstance(question, str) or not isinstance(passage, str) or not passage.strip():
        raise InvalidRequest(f"{where}: needs a passage, and a question or none, as strings")
    if record.get("relevant") is False:
        if not question:
            raise InvalidRequest(f"{where}: a passage is irrelevant to a question; none is given")
        return Example(question, passage, (), 1.0, 0.0)
    marks: list[Mark] = []
    for span in record.get("keep") or ():
        start, end = int(span[0]), int(span[1])
        if not 0 <= start < end <= len(passage):
            raise InvalidRequest(f"{where}: keep [{start}, {end}] is not within the passage")
        marks.append((start, end, 1.0))
    if answers := record.get("answers"):
        found = answer_marks(question, passage, answers)
        if not found:
            raise InvalidRequest(f"{where}: no answer is in the passage: {answers!r:.80}")
        marks += found
    if not marks:
        raise InvalidRequest(f'{where}: needs "answers", "keep" or "relevant": false')
    return Example(question, passage, tuple(marks), 1.0, 1.0 if question else None)
