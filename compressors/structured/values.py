"""The long texts in a JSON value, to be shortened where they stand."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..budget import Budget
from ..render import Span
from ..select import select
from ..tokens import TokenCounter
from .nodes import Node
from .policy import JsonPolicy, Rule
from .scan import decoded, path_of, without
from .view import Stretch, View, merged, minus, units_of

_BETWEEN = "\n\n"
_WORD = re.compile(r"\w+")
_WIDE = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_PUNCTUATION = "()[]{}\"'*_~`“”‘’«».,;:!?…"
_IN_WORDS = frozenset("'’-/")


@dataclass(frozen=True, slots=True)
class Value:
    """A string of a JSON text: what it says, where that comes from, its own rate if it has one."""

    text: str
    stretches: Sequence[Stretch]
    rate: float | None = None


@dataclass(frozen=True, slots=True)
class Framed:
    """A JSON text as its frame and its long texts.

    ``said`` is what must be told of records; ``is_forced`` says that rules name something to go.
    """

    frame: tuple[Span, ...]
    values: tuple[Value, ...]
    said: str = ""
    is_forced: bool = False

    def view(self, original: str) -> View:
        """Return the texts as one view, each of which keeps at least a word."""
        return view_of(original, self.values, self.frame)


def framed(
    text: str,
    frame: Sequence[Span],
    nodes: Sequence[Node],
    is_prose: Callable[[str], bool],
    policy: JsonPolicy,
    question: str | None = None,
    *,
    lines: bool = False,
    between: Sequence[Span] = (),
) -> Framed:
    """Split a text of which these are the values into what stays and what may be shortened.

    ``frame`` are the spans that are left without white space. ``is_prose`` says of a string of
    words that it is no code or data. ``between`` are words outside the values.
    """
    said, cuts, gone, rules = "", list[Span](), set[int](), dict[int, Rule | None]()
    for i, node in enumerate(nodes):
        rule = policy.rule(path_of(nodes, i, lines=lines)) if policy.rules else None
        above = rules.get(node.parent)
        rules[i] = "keep" if above == "keep" and rule is None else rule
        if rule == "drop":
            gone.add(i)
    if policy.max_records is not None:
        said = _fewer(text, nodes, gone, policy.max_records, question, lines)
    cuts += without(nodes, gone)
    values: list[Value] = []
    for i, node in enumerate(nodes):
        rule = rules[i]
        if node.kind != "string" or rule == "keep" or _is_within(nodes, i, gone):
            continue
        start, end = node.start + 1, node.end - 1
        rate = rule if isinstance(rule, float) else None
        if rate is None and (policy.only_rules or end - start < policy.min_words * 2):
            continue
        said_here, stretches = decoded(text, start, end)
        if _SURROGATE.search(said_here) or not said_here.strip():
            continue
        if rate is None and not (is_wordy(said_here, policy.min_words) and is_prose(said_here)):
            continue
        values.append(Value(said_here, stretches, rate))
        cuts.append((start, end))
    values += [Value(text[a:b], [Stretch(0, b - a, a, b)]) for a, b in between]
    values.sort(key=lambda value: value.stretches[0].start)
    cuts += between
    is_forced = bool(gone) or any(value.rate is not None for value in values)
    return Framed(tuple(minus(frame, cuts)), tuple(values), said, is_forced)


def is_wordy(text: str, min_words: int) -> bool:
    """Whether a text has so many words (or twice as many wide characters), most of them words.

    Keys, hashes, base64, URLs, file names and lines of code are not.
    """
    words = text.split()
    wide = len(_WIDE.findall(text))
    if wide >= 2 * min_words and wide > 0.5 * len(text):
        return True
    if len(words) < min_words:
        return False
    return sum(map(_is_word, words)) >= 0.7 * len(words)


def _is_word(token: str) -> bool:
    core = token.strip(_PUNCTUATION)
    return 0 < len(core) < 60 and all(
        char.isalpha() or ord(char) > 127 or char in _IN_WORDS for char in core
    )


def view_of(original: str, values: Sequence[Value], frame: Sequence[Span]) -> View:
    """Join values to one view, a blank line between two."""
    stretches: list[Stretch] = []
    parts: list[Span] = []
    at = 0
    for value in values:
        if at:
            here = value.stretches[0].start
            stretches.append(Stretch(at, len(_BETWEEN), here, here))
            at += len(_BETWEEN)
        stretches += [replace(stretch, at=stretch.at + at) for stretch in value.stretches]
        parts.append((at, at + len(value.text)))
        at += len(value.text)
    text = _BETWEEN.join(value.text for value in values)
    units, ranges = units_of(text, parts)
    return View(original, units, tuple(stretches), tuple(frame), tuple(ranges))


def settled(
    view: View, values: Sequence[Value], scores: Sequence[float], counter: TokenCounter
) -> tuple[View, list[float]]:
    """Shorten the values that have a rate of their own; return the rest and its scores.

    What is kept of them has become frame.
    """
    if all(value.rate is None for value in values):
        return view, list(scores)
    kept: list[Span] = []
    rest: list[float] = []
    for value, (a, b) in zip(values, view.least, strict=True):
        if value.rate is None:
            rest += scores[a:b]
            continue
        alone = view_of(view.original, [value], ())
        own = alone.scored(scores[a:b])
        limit = Budget(rate=value.rate).limit(counter.count(value.text))
        (spans,) = select([own], Budget(rate=value.rate), limit or 0, counter).spans
        kept += alone.original_spans(spans)[0]
    left = [value for value in values if value.rate is None]
    return view_of(view.original, left, merged([*view.frame, *kept])), rest


def _is_within(nodes: Sequence[Node], index: int, gone: set[int]) -> bool:
    while index >= 0:
        if index in gone:
            return True
        index = nodes[index].parent
    return False


def _fewer(
    text: str, nodes: Sequence[Node], gone: set[int], most: int, question: str | None, lines: bool
) -> str:
    """Add to ``gone`` the records over the most; return what to say of that."""
    lists = [[i for i, node in enumerate(nodes) if node.parent < 0]] if lines else []
    lists += [node.children for node in nodes if node.kind == "array"]
    asked = set(_WORD.findall((question or "").lower()))
    said: list[str] = []
    for family in lists:
        records = [i for i in family if i not in gone]
        objects = sum(nodes[i].kind == "object" for i in records)
        if len(records) <= most or objects < 0.5 * len(records):
            continue
        if _is_within(nodes, nodes[records[0]].parent, gone):
            continue
        named = {
            i: len(asked & set(_WORD.findall(text[nodes[i].start : nodes[i].end].lower())))
            for i in records
        }
        ends = [records[0], records[-1]][:most]
        middle = sorted(records[1:-1], key=lambda i: -named[i])[: max(most - 2, 0)]
        gone.update(set(records) - {*ends, *middle})
        said.append(f"{len(ends) + len(middle)} of {len(records)} records stay")
    return "; ".join(dict.fromkeys(said))
