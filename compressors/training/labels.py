"""Labels: what of a passage should stay, given what is known about its answers.

The values are those that worked in a trial: 1.0 for the answer's words, 0.9 for words of the
answer's sentence that the question shares, 0.25 to 0.5 for the other content words there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from ..scorers.vocabulary import STOP_WORDS
from ..structure import split
from .records import Mark

ANSWER, SHARED, NAME, CONTENT = 1.0, 0.9, 0.5, 0.25

_WORD = re.compile(r"\w+(?:[-'’.,]\w+)*")
_STOP = STOP_WORDS["en"] | frozenset({"much", "many", "did", "does"})


def content_words(text: str) -> list[str]:
    """Return the words that are no function words, lower case.

    >>> content_words("Who was the first of the Normans?")
    ['first', 'normans']
    """
    return [word for word in map(str.lower, _WORD.findall(text)) if word not in _STOP]


def stem(word: str) -> str:
    """Return a crude stem: enough to match "invaded" with "invade".

    >>> stem("invaded") == stem("invades") == stem("invading")
    True
    """
    if len(word) < 5 or not word.isalpha():
        return word
    for ending in ("ations", "ation", "ings", "ing", "ies", "ied", "es", "ed", "ly", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


@lru_cache(maxsize=8192)
def sentences(text: str) -> tuple[tuple[int, int], ...]:
    """Return the sentences of a text as spans, in order."""
    bounds: dict[int, tuple[int, int]] = {}
    for unit in split(text).units:
        start = bounds.get(unit.sentence, (unit.body, 0))[0]
        bounds[unit.sentence] = (start, unit.end)
    return tuple(bounds.values())


def usual(answers: Sequence[str]) -> str:
    """Return the answer most annotators gave, the first of them on a tie."""
    return Counter(answers).most_common(1)[0][0]


def occurrences(text: str, needle: str) -> list[tuple[int, int]]:
    """Return where whole words of a text read as the needle, case apart."""
    if needle.strip().lower() not in text.lower():
        return []
    pattern = rf"(?<!\w){re.escape(needle.strip())}(?!\w)"
    return [match.span() for match in re.finditer(pattern, text, re.IGNORECASE)]


def answer_marks(question: str, text: str, answers: Iterable[str]) -> tuple[Mark, ...]:
    """Label the answers and their sentence; none when no answer is in the text.

    Of several occurrences the one counts whose sentence shares most words with the question.
    """
    asked = {stem(word) for word in content_words(question)}
    spans = sentences(text)
    marks: list[Mark] = []
    for answer in dict.fromkeys(answers):
        if not answer.strip():
            continue
        best: tuple[int, tuple[int, int], tuple[int, int]] | None = None
        for found in occurrences(text, answer):
            home = next(((a, b) for a, b in spans if a <= found[0] < b), (0, len(text)))
            shared = sum(stem(w) in asked for w in set(content_words(text[slice(*home)])))
            if best is None or shared > best[0]:
                best = (shared, found, home)
        if best is not None:
            _, (start, end), home = best
            marks += [*sentence_marks(text, home, asked), (start, end, ANSWER)]
    return tuple(marks)


def sentence_marks(text: str, span: tuple[int, int], asked: set[str]) -> list[Mark]:
    """Label the content words of a sentence: those that were asked for, names, others."""
    marks: list[Mark] = []
    for match in _WORD.finditer(text, *span):
        word = match[0]
        if word.lower() in _STOP:
            continue
        is_name = word[0].isupper() or any(c.isdigit() for c in word)
        value = SHARED if stem(word.lower()) in asked else NAME if is_name else CONTENT
        marks.append((*match.span(), value))
    return marks


def blind_marks(text: str, asked: Iterable[tuple[str, Sequence[str]]]) -> tuple[Mark, ...]:
    """Label what any of several questions asks about: answers 1.0, the rest at half its value."""
    marks: list[Mark] = []
    for question, answers in asked:
        for start, end, value in answer_marks(question, text, answers):
            marks.append((start, end, value if value == ANSWER else value * 0.5))
    return tuple(marks)


def deletion_marks(text: str, tokens: Sequence[str], keep: Sequence[int]) -> tuple[Mark, ...]:
    """Label what a human did not delete; function words that stay for grammar's sake get less."""
    marks: list[Mark] = []
    at = 0
    for token, kept in zip(tokens, keep, strict=True):
        found = text.find(token, at)
        if found < 0:
            continue
        at = found + len(token)
        if kept and _WORD.match(token):
            marks.append((found, at, 0.3 if token.lower() in _STOP else 0.85))
    return tuple(marks)


def summary_marks(question: str, text: str, summary: str, outer: float = 0.2) -> tuple[Mark, ...]:
    """Label the words of a relevant passage that its summary or the question uses."""
    wanted = {stem(word) for word in content_words(f"{question} {summary}")}
    marks: list[Mark] = []
    for match in _WORD.finditer(text):
        if match[0].lower() not in _STOP:
            value = SHARED if stem(match[0].lower()) in wanted else outer
            marks.append((*match.span(), value))
    return tuple(marks)
