"""Data sets to groups of examples. One function a data set; each says what it takes and leaves."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from .files import read_lines, read_text
from .held_out import DEV_ARTICLES, SQUAD_ARTICLES, is_held_out
from .labels import (
    answer_marks,
    blind_marks,
    content_words,
    deletion_marks,
    occurrences,
    sentence_marks,
    sentences,
    stem,
    summary_marks,
)
from .records import Example, Group, Mark

UNANSWERABLE = 0.3
"""Relevance of a passage on the question's subject that does not answer it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a paragraph; no answers: the paragraph does not answer it."""

    question: str
    answers: tuple[str, ...]
    paragraph: int


@dataclass(frozen=True, slots=True)
class Article:
    """An article's paragraphs and the questions about them."""

    title: str
    paragraphs: tuple[str, ...]
    asked: tuple[Asked, ...]


Part = Literal["train", "dev", "test"]


def squad(folder: Path, part: Part = "train") -> list[Article]:
    """Return the articles of one part of SQuAD 1.1; to train on, with 2.0's unanswerable questions.

    "dev" is for choices, "test" for measuring.
    """
    articles: list[Article] = []
    unanswerable = _unanswerable(folder) if part == "train" else {}
    import json

    loaded: dict[str, Any] = json.loads(read_text(folder / "squad" / "squad_v1.json.gz"))
    for article in loaded["data"]:
        title = article["title"]
        own = "test" if title in SQUAD_ARTICLES else "dev" if title in DEV_ARTICLES else "train"
        if own != part:
            continue
        paragraphs: list[str] = [p["context"] for p in article["paragraphs"]]
        asked = [
            Asked(qa["question"].strip(), _answers(qa), number)
            for number, paragraph in enumerate(article["paragraphs"])
            for qa in paragraph["qas"]
            if qa["answers"]
        ]
        for number, text in enumerate(paragraphs):
            asked += [Asked(question, (), number) for question in unanswerable.get(text, ())]
        articles.append(Article(article["title"], tuple(paragraphs), tuple(asked)))
    return articles


def _unanswerable(folder: Path) -> dict[str, list[str]]:
    import json

    loaded: dict[str, Any] = json.loads(read_text(folder / "squad" / "squad_v2.json.gz"))
    return {
        paragraph["context"]: [q["question"].strip() for q in paragraph["qas"] if not q["answers"]]
        for article in loaded["data"]
        for paragraph in article["paragraphs"]
    }


def _answers(qa: dict[str, Any]) -> tuple[str, ...]:
    """Return the first answer, and those that two annotators gave."""
    counts = Counter(str(answer["text"]) for answer in qa["answers"])
    first = str(qa["answers"][0]["text"])
    return tuple(dict.fromkeys([first, *(text for text, n in counts.items() if n > 1)]))


def squad_blind(articles: Sequence[Article]) -> Iterator[Group]:
    """Yield each paragraph without a question: what any of its questions asks about stays."""
    for article in articles:
        for number, text in enumerate(article.paragraphs):
            asked = [(a.question, a.answers) for a in article.asked if a.paragraph == number]
            marks = blind_marks(text, asked)
            yield Group((Example("", text, marks),), "squad, no question")


def deletions(folder: Path, rng: random.Random, per_passage: int = 4) -> Iterator[Group]:
    """Yield passages of news sentences with the words humans kept, no question."""
    records = list(read_lines(folder / "sentence_compression" / "google_10k.jsonl.gz"))
    records = [record for record in records if record["coverage"] >= 0.9]
    rng.shuffle(records)
    for first in range(0, len(records) - per_passage + 1, per_passage):
        text, marks = "", list[Mark]()
        for record in records[first : first + per_passage]:
            at = len(text)
            text += record["sentence"].strip() + " "
            found = deletion_marks(record["sentence"].strip(), record["tokens"], record["keep"])
            marks += [(start + at, end + at, value) for start, end, value in found]
        yield Group((Example("", text.strip(), tuple(marks), 0.5),), "human deletions")


def hotpot(folder: Path, rng: random.Random) -> Iterator[Group]:
    """Yield HotpotQA training questions: each gold paragraph beside two distractors."""
    for record in read_lines(folder / "hotpotqa" / "train100.jsonl.gz"):
        question: str = record["question"]
        gold = [c for c in record["contexts"] if c["is_gold"]]
        others = [c for c in record["contexts"] if not c["is_gold"]]
        titles = [c["title"] for c in gold]
        for context in gold:
            marks = _hotpot_marks(question, context, [*record["answers"], *titles])
            good = Example(question, titled(context), marks, 1.0, 1.0)
            bad = [
                Example(question, titled(c), (), 1.0, 0.0)
                for c in rng.sample(others, min(2, len(others)))
            ]
            yield Group((good, *bad), "hotpotqa")


def _hotpot_marks(question: str, context: dict[str, Any], wanted: list[str]) -> tuple[Mark, ...]:
    text = titled(context)
    asked = {stem(word) for word in content_words(question)}
    marks: list[Mark] = []
    for number in context["gold_sentences"]:
        if number >= len(context["sentences"]):
            continue
        sentence = context["sentences"][number].strip()
        at = text.find(sentence)
        if at < 0:
            continue
        home = (at, at + len(sentence))
        marks += sentence_marks(text, home, asked)
        marks += [
            (start, end, 1.0)
            for name in wanted
            for start, end in occurrences(text, name)
            if home[0] <= start < home[1]
        ]
    return tuple(marks)


def natural_questions(folder: Path, rng: random.Random, bad: int = 5) -> Iterator[Group]:
    """Yield NQ questions of the training third: the gold passage beside retrieved ones."""
    records = list(read_lines(folder / "nq_litm" / "nq_20docs.jsonl.gz"))
    seen = {c["text"] for r in records if is_held_out(r) for c in r["contexts"]}
    for record in records:
        if is_held_out(record):
            continue
        question: str = record["question"]
        contexts = [c for c in record["contexts"] if c["text"] not in seen]
        gold = [c for c in contexts if c["is_gold"]]
        others = [c for c in contexts if not c["is_gold"]]
        if not gold or not others:
            continue
        text = titled(gold[0])
        good = Example(question, text, answer_marks(question, text, record["answers"]), 1.0, 1.0)
        chosen = rng.sample(others, min(bad, len(others)))
        for first in range(0, len(chosen), 2):
            rest = [Example(question, titled(c), (), 1.0, 0.0) for c in chosen[first : first + 2]]
            yield Group((good, *rest), "natural questions")


def titled(context: dict[str, Any]) -> str:
    """Return title and text, as a reranker reads them."""
    return f"{context['title']}\n{context['text']}" if context["title"] else str(context["text"])


def meetings(folder: Path, rng: random.Random, characters: int = 700) -> Iterator[Group]:
    """Yield QMSum questions: turns of the relevant span beside turns of elsewhere."""
    for record in read_lines(folder / "qmsum" / "qmsum_train.jsonl.gz"):
        turns = [f"{t['speaker']}: {_spoken(t['content'])}" for t in record["meeting_transcripts"]]
        for query in record["specific_query_list"]:
            spans = [(int(a), int(b) + 1) for a, b in query["relevant_text_span"]]
            inside = [i for a, b in spans for i in range(a, min(b, len(turns)))]
            outside = [i for i in range(len(turns)) if i not in set(inside)]
            if not inside or not outside:
                continue
            question, summary = str(query["query"]), str(query["answer"])
            text = _turns(turns, rng.choice(inside), characters)
            good = Example(question, text, summary_marks(question, text, summary), 0.5, 1.0)
            elsewhere = _turns(turns, rng.choice(outside), characters)
            yield Group((good, Example(question, elsewhere, (), 0.5, 0.0)), "qmsum")
            blind = summary_marks(question, text, summary, 0.1)
            if rng.random() < 0.3:
                yield Group((Example("", text, blind, 0.3),), "qmsum, no question")


def _spoken(text: str) -> str:
    text = re.sub(r"\{\w+\}", "", text)
    return re.sub(r"\s+([,.?!'])", r"\1", re.sub(r"\s+", " ", text)).strip()


def _turns(turns: Sequence[str], first: int, characters: int) -> str:
    text = ""
    for turn in turns[first:]:
        if text and len(text) + len(turn) > characters:
            break
        text += turn[:characters] + "\n"
    return text.strip()


def cloze(folder: Path, rng: random.Random) -> Iterator[Group]:
    """Yield sentences as queries for the passage they were taken from (inverse cloze task).

    From wikitext-2's validation part and 18F's posts (Lee et al. 2019, section 4, for the task):
    the passage beside two others of the same article. A post's title is a query as well.
    """
    for passages, titles in (*_wikipedia(folder), *_posts(folder)):
        for number, passage in enumerate(passages):
            others = [p for i, p in enumerate(passages) if i != number]
            spans = sentences(passage)
            if len(spans) < 3 or not others:
                continue
            start, end = rng.choice(spans)
            query, rest = passage[start:end], f"{passage[:start]}{passage[end:].lstrip()}"
            if titles and rng.random() < 0.25:
                query, rest = titles[0], passage
            if not 4 <= len(query.split()) <= 40:
                continue
            examples = [Example(query, rest, (), 0.0, 1.0)]
            examples += [
                Example(query, other, (), 0.0, 0.0)
                for other in rng.sample(others, min(2, len(others)))
            ]
            yield Group(tuple(examples), "inverse cloze")


def _wikipedia(folder: Path) -> Iterator[tuple[list[str], list[str]]]:
    text = read_text(folder / "wikitext2" / "valid.txt.gz")
    article: list[str] = []
    for line in text.split("\n"):
        if re.match(r"^ = [^=]", line) and article:
            yield article, []
            article = []
        if len(line) > 200 and line.count("<unk>") < 4:
            article += _cut(_untokenized(line))
    yield article, []


def _untokenized(line: str) -> str:
    line = re.sub(r" @(.)@ ", r"\1", line.strip()).replace("<unk>", "…")
    line = re.sub(r" ([,.;:?!)\]%]|'s|n't)", r"\1", re.sub(r"([(\[]) ", r"\1", line))
    return re.sub(r'" ([^"]*) "', r'"\1"', line)


def _posts(folder: Path) -> Iterator[tuple[list[str], list[str]]]:
    for record in read_lines(folder / "gov_18f_posts" / "posts.jsonl.gz.gz"):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)|<[^>]+>", r"\1", record["text"])
        paragraphs = [re.sub(r"\s+", " ", p).strip() for p in re.split(r"\n\s*\n", plain)]
        passages = [cut for p in paragraphs if len(p) > 150 for cut in _cut(p)]
        if len(passages) > 1:
            yield passages[:8], [record["title"]]


def _cut(paragraph: str, characters: int = 700) -> list[str]:
    cuts: list[str] = [""]
    for start, end in sentences(paragraph):
        if cuts[-1] and len(cuts[-1]) + end - start > characters:
            cuts.append("")
        cuts[-1] = f"{cuts[-1]} {paragraph[start:end]}".strip()
    return [cut for cut in cuts if len(cut) > 150]
