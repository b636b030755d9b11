"""Importance without a model."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from ..units import Unit, Units
from .vocabulary import FILLERS, HOW_MANY, SIGNALS, STOP_WORDS, WHO, language, turns

_KINDS = {
    "fence": 0.95,
    "template": 0.95,
    "json": 0.85,
    "code": 0.8,
    "front": 0.7,
    "email": 0.75,
    "table": 0.7,
    "number": 0.9,
    "tex": 0.7,
    "tag": 0.65,
    "path": 0.65,
    "pair": 0.6,
    "link": 0.6,
    "url": 0.5,
    "comment": 0.1,
    "particle": 0.15,
}
_REPEATED = frozenset(("number", "pair", "link", "url", "path"))
_SHORT = frozenset(("fence", "template", "json", "front", "table"))
_CLOCK = re.compile(r"\d[-/]\d{2}\b|\d:\d{2}\b")
_DIGIT = re.compile(r"\d+")
_WIDE = re.compile(r"[\u0e00-\u0eff\u2e80-\u9fff\uac00-\ud7af]")
_SAMPLE = 4000
_TURNING = 0.3
_FILLER = 0.02
_MOST_TURNING = 120
_EDGE = 1e-6
_NAMED = 0.15


@dataclass(frozen=True, slots=True)
class Lexical:
    """Scores words by kind, rarity and the sentence they stand in; no model, no download.

    A word is worth more when its shape (digits masked) is rare in the text, when it is long, a
    name, a number or a word that announces something (error, must, decided); function words of
    the text's language and sounds of speech are worth little. A sentence is worth what its
    words are, and a question raises the sentences that share its words (weighted by how few
    sentences have them, as BM25 does) and their neighbours, and within them the shared words.
    Negations and limits (only, if, unless) stay as long as anything of their sentence. A bound
    unit is worth its best word. Knows no synonyms and no grammar.
    """

    name: str = "lexical"
    compares_texts: ClassVar[bool] = True

    def score(self, texts: Sequence[Units], question: str | None = None) -> list[list[float]]:
        """Return a score for each unit; see ``Scorer.score``."""
        words = [_word_scores(units) for units in texts]
        asked = keys(question or "")
        relevance = matches(texts, asked) if asked else None
        if relevance is None or not any(any(row) for row in relevance):
            return [_combined(units, scores) for units, scores in zip(texts, words, strict=True)]
        return [
            _combined(units, scores, row, _asked_for(units, question or "", asked))
            for units, scores, row in zip(texts, words, relevance, strict=True)
        ]


def _word_scores(units: Units) -> list[float]:
    contents = [units.text[unit.body : unit.end] for unit in units.units]
    lower = {content: content.lower().replace("’", "'") for content in set(contents)}
    parts = [
        part
        for unit, content in zip(units.units, contents, strict=True)
        for part in (lower[content].split() if unit.kind == "bound" else (lower[content],))
    ]
    counts = Counter(_DIGIT.sub("0", part) for part in parts)
    stop = STOP_WORDS[language(parts[:_SAMPLE])]
    most = max(math.log(2 + max(counts.values(), default=0)), math.log(12))
    known: dict[tuple[str, str], float] = {}

    def scored(content: str, low: str, kind: str) -> float:
        rarity = 1 - math.log(1 + counts[_DIGIT.sub("0", low)]) / most
        return _word(content, low, kind, rarity, stop)

    scores: list[float] = []
    for unit, content in zip(units.units, contents, strict=True):
        memo = (content, unit.kind)
        if memo not in known:
            low = lower[content]
            if unit.kind != "bound":
                known[memo] = scored(content, low, unit.kind)
            else:
                pairs = zip(content.split(), low.split(), strict=True)
                known[memo] = max(scored(one, its, _kind(its)) for one, its in pairs)
        scores.append(known[memo])
    return scores


def _kind(part: str) -> str:
    """Return the kind of a word within a bound unit: what has digits counts as a number."""
    return "number" if any(map(str.isdigit, part)) else "word"


def _word(content: str, lower: str, kind: str, rarity: float, stop: frozenset[str]) -> float:
    if lower in FILLERS:
        return _FILLER
    if kind in _KINDS:
        kept = 0.2 if _CLOCK.search(content) else 0.6  # of what a shape on every line is worth
        value = _KINDS[kind] * (kept + (1 - kept) * rarity if kind in _REPEATED else 1)
        return value if kind in _SHORT else value - _length_penalty(content)
    if turns(lower):
        return _TURNING
    if lower in stop:
        return 0.08
    value = 0.25 + 0.35 * rarity + 0.15 * min(len(content), 12) / 12
    value += 0.12 * (lower != content) + 0.25 * rarity * (lower in SIGNALS)
    if any(map(str.isdigit, content)):
        value += 0.15
    return min(value, 0.95) - _length_penalty(content)


def _length_penalty(content: str) -> float:
    """Say how much less a word is worth for its length: it takes the room of several."""
    return min(0.06 * math.log2(len(content) / 16), 0.5) if len(content) > 16 else 0.0


def _combined(
    units: Units,
    words: list[float],
    relevance: list[float] | None = None,
    asked_for: Sequence[float] = (),
) -> list[float]:
    count = units.units[-1].sentence + 1 if units.units else 0
    totals, numbers, best = [0.0] * count, [0] * count, [0.0] * count
    headed = [False] * count
    for unit, score in zip(units.units, words, strict=True):
        s = unit.sentence
        if unit.role == "word" and score > 0.2:
            totals[s] += score
            numbers[s] += 1
        headed[s] = headed[s] or (unit.role == "mark" and units.text[unit.body] == "#")
    lines = [t / (n + 1.5) + 0.15 * h for t, n, h in zip(totals, numbers, headed, strict=True)]
    top = max(lines, default=1.0) or 1.0
    share = 0.4 if relevance is None else 0.65
    scores: list[float] = []
    turning: list[int] = []
    for i, (unit, score) in enumerate(zip(units.units, words, strict=True)):
        line = lines[unit.sentence] / top
        if relevance is not None:
            line = 0.2 * line + 0.8 * relevance[unit.sentence]
        value = (1 - share) * score + share * line + (asked_for[i] if asked_for else 0)
        value *= 0.5 if score == _FILLER else 1  # also in the best of sentences
        scores.append(min(max(value, 0.0), 1.0))
        if unit.role == "word" and unit.kind not in _KINDS:
            if _is_turning(units, unit):
                turning.append(i)
            else:
                best[unit.sentence] = max(best[unit.sentence], scores[-1])
    for i in turning:
        scores[i] = min(max(scores[i], best[units.units[i].sentence] + _EDGE), 1.0)
    return scores


def _is_turning(units: Units, unit: Unit) -> bool:
    """Whether the unit is or holds a word without which its sentence would be another one."""
    if unit.kind not in ("word", "bound") or unit.end - unit.body > _MOST_TURNING:
        return False
    content = units.text[unit.body : unit.end].lower().replace("’", "'")
    return any(map(turns, content.split())) if unit.kind == "bound" else turns(content)


def _asked_for(units: Units, question: str, asked: frozenset[str]) -> list[float]:
    """Return what each unit gains because the question names it or asks for its kind."""
    words = frozenset(re.findall(r"\w+", question.lower()))
    wants_name, wants_number = bool(words & WHO), bool(words & HOW_MANY)
    known: dict[str, float] = {}
    gains: list[float] = []
    for unit in units.units:
        content = units.text[unit.body : unit.end]
        if content not in known:
            gain = _NAMED * bool(keys(content) & asked)
            is_name = wants_name and content[:1].isupper() and bool(keys(content))
            is_number = wants_number and any(map(str.isdigit, content))
            known[content] = max(gain, _NAMED * (is_name or is_number))
        gains.append(known[content])
    return gains


def matches(texts: Sequence[Units], asked: frozenset[str]) -> list[list[float]]:
    """Return for each sentence of each text the share of the question it answers to, in [0, 1].

    ``asked`` are the question's ``keys``; rare ones count more, and the best sentence has 1.
    """
    found: list[list[set[str]]] = []
    known: dict[str, frozenset[str]] = {}
    for units in texts:
        count = units.units[-1].sentence + 1 if units.units else 0
        rows: list[set[str]] = [set() for _ in range(count)]
        for unit in units.units:
            content = units.text[unit.body : unit.end]
            if content not in known:
                known[content] = keys(content) & asked
            rows[unit.sentence] |= known[content]
        found.append(rows)
    total = sum(map(len, found))
    having = Counter(key for rows in found for row in rows for key in row)
    weights = {key: math.log(1 + total / number) for key, number in having.items()}
    best = max((sum(weights[k] for k in row) for rows in found for row in rows), default=0) or 1.0
    shares = [[sum(weights[key] for key in row) / best for row in rows] for rows in found]
    return [_with_neighbours(row) for row in shares]


def _with_neighbours(row: list[float]) -> list[float]:
    wider = list(row)
    for i, (a, b) in enumerate(pairwise(row)):
        wider[i] = max(wider[i], 0.4 * b)
        wider[i + 1] = max(wider[i + 1], 0.4 * a)
    return wider


def keys(text: str) -> frozenset[str]:
    """Return stems of the content words, character pairs for scripts without spaces."""
    found: set[str] = set()
    for word in re.findall(r"\w+", text.lower()):
        if _WIDE.search(word):
            found.update(word[i : i + 2] for i in range(max(len(word) - 1, 1)))
        elif not any(
            word in stop for stop in (STOP_WORDS["en"], STOP_WORDS["de"], STOP_WORDS["fr"])
        ):
            found.add(_stem(word))
    return frozenset(found)


def _stem(word: str) -> str:
    for ending in ("ations", "ation", "ings", "ing", "ies", "ed", "es", "en", "er", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word
