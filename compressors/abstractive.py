"""Summaries by a language model, with respect to a question."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..middleware.errors import InvalidRequest
from ..middleware.types import Document
from .budget import Budget
from .compressor import Compressor
from .rerankers.base import full_text
from .sentence_split import sentences
from .structure import split

Generate = Callable[[Sequence[str]], Sequence[str]]
"""Prompts to the model's answers, one a prompt, in order: whatever engine there is."""

PROMPT = (
    "Summarise what the document below says that helps to answer the question, in at most"
    " {words} words, in the document's language. Use only what it says, keep names, numbers and"
    " dates as they are written. If nothing in it helps, answer only: NONE\n\n"
    "Document:\n{document}\n\nQuestion: {question}\n\nSummary:"
)
_GENERAL = (
    "Summarise the document below in at most {words} words, in the document's language. Use only"
    " what it says, keep names, numbers and dates as they are written.\n\n"
    "Document:\n{document}\n\nSummary:"
)
_WORDS_PER_TOKEN = 0.7
_LEAST_WORDS = 8
_LABEL = re.compile(
    r"\s*(?:\*\*)?(?:here is (?:a|the) )?summary(?: of[^:\n]{0,80})?:(?:\*\*)?\s*", re.I
)
_NOTHING = re.compile(r"[\W_]*none[\W_]*", re.I)
_NUMBER = re.compile(r"\d+(?:[.,:/]\d+)*")


@dataclass(frozen=True, slots=True)
class Summary:
    """A document with fewer tokens.

    ``spans`` is None when a model wrote the text: it is then no part of the original, and what it
    says may be wrong. Else the document was cut and ``spans`` says where the text stands in the
    original's, as in ``Compressed``. A document that says nothing about the question has an empty
    text and ``is_relevant`` False. ``reason`` says why a document was cut instead of summarised,
    or what of the model's text was left out.
    """

    document: Document
    original: Document
    spans: tuple[tuple[int, int], ...] | None
    tokens_in: int
    tokens_out: int
    is_relevant: bool = True
    reason: str | None = None

    @property
    def is_abstractive(self) -> bool:
        """Whether a model wrote the text."""
        return self.spans is None


@dataclass(frozen=True, slots=True)
class Task:
    """A document to summarise: the prompt for the model, and the most tokens of its summary.

    ``prompt`` is None where there is nothing to gain: the document is short enough, or empty.
    """

    document: Document
    prompt: str | None
    tokens: int
    limit: int


@dataclass(frozen=True, slots=True)
class Abstractive:
    """Summarises documents for a question (RECOMP's abstractive compressor, Xu et al. 2024, 3.2).

    Works with any model: ``tasks`` says what to ask, ``finish`` turns the answers into summaries,
    ``compress`` does both around a function that generates. Each document may take its share of
    the budget. A summary is never longer than that: what is over is cut at the end of a sentence. A
    sentence with a number that the document does not hold is left out. Where nothing is left, the
    document is cut by ``extractive`` instead, with the same limit. Where the model answers NONE,
    nothing in the document is relevant and it has an empty text, as RECOMP's empty summary.
    Documents shorter than ``least`` tokens, or than their limit, are not worth a call: the
    former are cut, the latter stay as they are.

    The texts of a model are not checked beyond that, and ``recover`` cannot find them in the
    original.
    """

    extractive: Compressor
    least: int = 48
    prompt: str = PROMPT

    def __post_init__(self) -> None:
        try:
            self.prompt.format(words=1, document="", question="")
        except (LookupError, ValueError) as error:
            raise InvalidRequest(
                f"a summary's prompt has {{words}}, {{document}} and {{question}}, got {error!r};"
                " write other braces twice"
            ) from error
        if "{document}" not in self.prompt:
            raise InvalidRequest("a summary's prompt needs {document}, where the text goes")

    def compress(
        self,
        documents: Sequence[Document],
        budget: Budget,
        generate: Generate,
        *,
        question: str | None = None,
    ) -> list[Summary]:
        """Return the documents summarised, in order; ``generate`` is called once, with all prompts.

        Raises InvalidRequest for a budget without a number of tokens, and when ``generate`` does
        not return one answer a prompt.
        """
        tasks = self.tasks(documents, budget, question=question)
        prompts = [task.prompt for task in tasks if task.prompt is not None]
        answers = list(generate(prompts)) if prompts else []
        if len(answers) != len(prompts):
            raise InvalidRequest(
                f"generate must return an answer a prompt, got {len(answers)} for {len(prompts)}"
            )
        return self.finish(tasks, answers, question=question)

    def tasks(
        self, documents: Sequence[Document], budget: Budget, *, question: str | None = None
    ) -> list[Task]:
        """Return what to ask the model, a task a document, in order."""
        if budget.rate is None and budget.target_tokens is None:
            raise InvalidRequest("a summary needs a rate or target_tokens as its budget")
        counts = self.extractive.counter.count_many([document.text for document in documents])
        total = sum(counts)
        limit = min(budget.limit(total) or 0, total)
        tasks: list[Task] = []
        for document, tokens in zip(documents, counts, strict=True):
            share = limit * tokens // total if total else 0
            asked = None
            if self.least <= tokens and 0 < share < tokens:
                words = max(int(share * _WORDS_PER_TOKEN), _LEAST_WORDS)
                asked = (self.prompt if question else _GENERAL).format(
                    words=words, document=full_text(document), question=question
                )
            tasks.append(Task(document, asked, tokens, share))
        return tasks

    def finish(
        self, tasks: Sequence[Task], answers: Sequence[str | None], *, question: str | None = None
    ) -> list[Summary]:
        """Return the summaries, given an answer for each task that has a prompt.

        An answer of None is one that the model could not give.
        """
        left = iter(answers)
        return [
            self._cut(task, question, None)
            if task.prompt is None
            else self._checked(task, next(left), question)
            for task in tasks
        ]

    def _checked(self, task: Task, answer: str | None, question: str | None) -> Summary:
        document = task.document
        if answer is None:
            return self._cut(task, question, "the model gave no answer")
        if question and _NOTHING.fullmatch(answer):
            empty = replace(document, text="")
            why = "nothing in it is relevant, says the model"
            return Summary(empty, document, (), task.tokens, 0, False, why)
        text, reason = self._trimmed(answer, task)
        if not text:
            return self._cut(task, question, reason)
        tokens = self.extractive.counter.count(text)
        return Summary(
            replace(document, text=text), document, None, task.tokens, tokens, reason=reason
        )

    def _trimmed(self, answer: str, task: Task) -> tuple[str, str | None]:
        """Return as many sentences of an answer as fit and hold no new number, and what is amiss.

        Sentences that the model repeats are taken once.
        """
        text = answer[label.end() :] if (label := _LABEL.match(answer)) else answer
        text = text.strip()
        if not text:
            return "", "the model's answer was empty"
        known = set(_NUMBER.findall(full_text(task.document)))
        reasons: list[str] = []
        kept, seen = "", set[str]()
        at = 0
        for sentence in sentences(split(text)):
            body, space = text[sentence.start : sentence.end], text[at : sentence.start]
            at = sentence.end
            if body in seen:
                continue
            seen.add(body)
            if new := sorted(set(_NUMBER.findall(body)) - known):
                reasons.append(f"a sentence with {new[0]}, which the document does not hold, went")
                continue
            longer = f"{kept}{space}{body}" if kept else body
            if self.extractive.counter.count(longer) > task.limit:
                reasons.append(f"the model's answer did not fit into {task.limit} tokens")
                break
            kept = longer
        return kept, "; ".join(dict.fromkeys(reasons)) or None

    def _cut(self, task: Task, question: str | None, reason: str | None) -> Summary:
        budget = Budget(target_tokens=task.limit)
        [found] = self.extractive.compress(
            [task.document.text], budget, question=question, fold=False
        )
        text, spans = found.text, found.spans
        reasons = (reason, found.reason)
        if found.tokens_out > task.limit:
            text, spans = "", ()
        return Summary(
            replace(task.document, text=text),
            task.document,
            spans,
            task.tokens,
            found.tokens_out if text else 0,
            reason="; ".join(filter(None, reasons)) or None,
        )
