"""Importance without a model."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..units import Units
from .vocabulary import FILLERS, NEGATIONS, SIGNALS, STOP_WORDS, language

_KINDS = {
    "fence": 0.95,
    "template": 0.95,
    "json": 0.85,
    "code": 0.8,
    "front": 0.7,
    "email": 0.75,
    "table": 0.7,
    "number": 0.9,
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
_NEGATION = 0.9


@dataclass(frozen=True, slots=True)
class Lexical:
    """Scores words by kind, rarity and the sentence they stand in; no model, no download.

    A word is worth more when its shape (digits masked) is rare in the text, when it is long, a
    name, a number or a word that announces something (error, must, decided); function words of
    the text's language and sounds of speech are worth little. A sentence is worth what its
    words are, and a question raises the sentences that share its words (weighted by how few
    sentences have them, as BM25 does) and their neighbours. Negations stay as long as anything
    of their sentence. Knows no synonyms and no grammar.
    """

    name: str = "lexical"

    def score(self, texts: Sequence[Units], question: str | None = None) -> list[list[float]]:
        """Return a score for each unit; see ``Scorer.score``."""
        words = [_word_scores(units) for units in texts]
        asked = _keys(question or "")
        relevance = _relevance(texts, asked) if asked else None
        if relevance is not None and not any(any(row) for row in relevance):
            relevance = None
        return [
            _combined(units, scores, None if relevance is None else relevance[i])
            for i, (units, scores) in enumerate(zip(texts, words, strict=True))
        ]


def _word_scores(units: Units) -> list[float]:
    contents = [units.text[unit.body : unit.end] for unit in units.units]
    lower = {content: content.lower().replace("’", "'") for content in set(contents)}
    keys = {content: _DIGIT.sub("0", word) for content, word in lower.items()}
    counts = Counter(keys[content] for content in contents)
    stop = STOP_WORDS[language(lower[content] for content in contents[:_SAMPLE])]
    most = math.log(2 + max(counts.values(), default=0))
    scores: list[float] = []
    known: dict[tuple[str, str], float] = {}
    for unit, content in zip(units.units, contents, strict=True):
        memo = (content, unit.kind)
        if memo not in known:
            rarity = 1 - math.log(1 + counts[keys[content]]) / max(most, math.log(12))
            known[memo] = _word(content, lower[content], unit.kind, rarity, stop)
        scores.append(known[memo])
    return scores


def _word(content: str, lower: str, kind: str, rarity: float, stop: frozenset[str]) -> float:
    if lower in FILLERS:
        return 0.02
    if kind in _KINDS:
        kept = 0.2 if _CLOCK.search(content) else 0.6  # of what a shape on every line is worth
        value = _KINDS[kind] * (kept + (1 - kept) * rarity if kind in _REPEATED else 1)
        return value if kind in _SHORT else value - _length_penalty(content)
    if lower in NEGATIONS or lower.endswith("n't"):
        return _NEGATION
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


def _combined(units: Units, words: list[float], relevance: list[float] | None) -> list[float]:
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
    for unit, score in zip(units.units, words, strict=True):
        line = lines[unit.sentence] / top
        if relevance is not None:
            line = 0.2 * line + 0.8 * relevance[unit.sentence]
        value = (1 - share) * score + share * line
        scores.append(min(max(value, 0.0), 1.0))
        is_negation = score == _NEGATION and unit.kind not in _KINDS
        if unit.role == "word" and unit.kind not in _KINDS and not is_negation:
            best[unit.sentence] = max(best[unit.sentence], scores[-1])
    for i, unit in enumerate(units.units):
        if words[i] == _NEGATION and unit.kind not in _KINDS and best[unit.sentence]:
            scores[i] = best[unit.sentence]
    return scores


def _relevance(texts: Sequence[Units], asked: frozenset[str]) -> list[list[float]]:
    """Return for each sentence of each text the share of the question it answers to, in [0, 1]."""
    found: list[list[set[str]]] = []
    known: dict[str, frozenset[str]] = {}
    for units in texts:
        count = units.units[-1].sentence + 1 if units.units else 0
        rows: list[set[str]] = [set() for _ in range(count)]
        for unit in units.units:
            content = units.text[unit.body : unit.end]
            if content not in known:
                known[content] = _keys(content) & asked
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


def _keys(text: str) -> frozenset[str]:
    """Return stems of the content words, character pairs for scripts without spaces."""
    keys: set[str] = set()
    for word in re.findall(r"\w+", text.lower()):
        if _WIDE.search(word):
            keys.update(word[i : i + 2] for i in range(max(len(word) - 1, 1)))
        elif not any(
            word in stop for stop in (STOP_WORDS["en"], STOP_WORDS["de"], STOP_WORDS["fr"])
        ):
            keys.add(_stem(word))
    return frozenset(keys)


def _stem(word: str) -> str:
    for ending in ("ations", "ation", "ings", "ing", "ies", "ed", "es", "en", "er", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word
