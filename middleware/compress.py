"""The stage that makes the prompt shorter."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal

from ..compressors import Budget, Compressed, Compressor
from . import parts
from .report import StageReport
from .transform import Transform
from .types import Document, Message, Request, Text

Slot = tuple[int, int]
"""Where a text came from: (-1, document) or (message, part)."""

ASKS = re.compile(r"[?？؟]")
SENTENCE_END = re.compile(r"\n|(?<=[.!?])\s+|(?<=[。！？])")
FILE_NAME = re.compile(r"[^\n]*\.\w{1,10}")
SHORT_TURN = 20  # tokens; a turn of no more is left alone
NOTHING = "nothing that may be cut"


@dataclass(frozen=True)
class Compress(Transform):
    """Drop what the answer needs least, within one budget for the whole request.

    Exactly one of ``rate``, ``target_tokens`` and ``threshold`` is the budget, over everything that
    may be cut: the documents and the turns before the last user turn. System and tool messages
    and the question are never touched, nor is a turn of 20 tokens or less; code is never cut.
    ``last_user="context"`` lets the last user turn be cut too, but for its first and last sentence
    and every sentence that asks something. A document that nothing is left of is left out.

    ``compressor`` is "auto", "lexical", "mini" or a token-classification model; ``tokenizer`` is
    what tokens are counted with (the engine's own, so that the budget is what the engine sees);
    text that matches a ``keep`` pattern stays.
    """

    name: ClassVar[str] = "compress"
    rate: float | None = None
    target_tokens: int | None = None
    threshold: float | None = None
    compressor: str = "auto"
    tokenizer: str | None = None
    keep: tuple[str | re.Pattern[str], ...] = ()
    last_user: Literal["keep", "context"] = "keep"
    on_error: Literal["pass", "raise"] = "pass"

    def __post_init__(self) -> None:
        _ = self.budget  # a wrong budget is said here, not at the first request

    @cached_property
    def budget(self) -> Budget:
        """The budget as one value."""
        return Budget(rate=self.rate, target_tokens=self.target_tokens, threshold=self.threshold)

    @cached_property
    def engine(self) -> Compressor:
        """The scorer and the token counter, loaded when first needed."""
        return Compressor(parts.scorer(self.compressor), parts.counter(self.tokenizer))

    async def transform(self, request: Request) -> Request:
        """Return the request with fewer tokens."""
        started = time.perf_counter()
        texts = self._texts(request)
        results = await asyncio.to_thread(self._compress, request, texts)
        changed, num_gone = _put_back(request, results)
        count = self.engine.counter.count
        before, after = _num_tokens(request, count), _num_tokens(changed, count)
        reasons = sorted({result.reason for result in results.values() if result.reason})
        decision = f"{before} -> {after} tokens" if texts else NOTHING
        if num_gone:
            decision += f", nothing left of {num_gone} documents"
        row = StageReport(
            self.name,
            "; ".join([decision, *reasons]),
            time.perf_counter() - started,
            before,
            after,
            details={
                "compressor": self.engine.scorer.name,
                "texts": len(texts),
                "documents_dropped": num_gone,
                "reasons": reasons,
            },
        )
        return replace(changed, report=request.report.add(row))

    def _texts(self, request: Request) -> dict[Slot, str]:
        """Return everything that may be cut, in the order of the prompt."""
        last = max((i for i, m in enumerate(request.messages) if m.role == "user"), default=-1)
        found: dict[Slot, str] = {}
        for i, message in enumerate(request.messages):
            is_open = i < last or (i == last and self.last_user == "context")
            if is_open and message.role in ("user", "assistant") and not message.is_tool:
                for j, part in enumerate(message.parts):
                    if isinstance(part, Text) and self.engine.counter.count(part.text) > SHORT_TURN:
                        found[i, j] = part.text
        return found | {(-1, i): document.text for i, document in enumerate(request.documents)}

    def _compress(self, request: Request, texts: dict[Slot, str]) -> dict[Slot, Compressed]:
        question, keep = request.question, [*self.keep]
        if self.last_user == "context":
            task = _task(request)
            keep += [re.compile(re.escape(line)) for line in task]
            question = " ".join(filter(ASKS.search, task)) or (task[-1] if task else question)
        formats = [_file_name(request.documents[at]) if place < 0 else None for place, at in texts]
        results = self.engine.compress(
            list(texts.values()),
            self.budget,
            question=question,
            keep=keep,
            formats=formats,
            joint=True,
        )
        return dict(zip(texts, results, strict=True))


def _put_back(request: Request, results: dict[Slot, Compressed]) -> tuple[Request, int]:
    """Return the request with the results, and how many documents nothing is left of.

    Those are left out. A message is never emptied: many engines refuse an empty one.
    """

    def message(i: int, old: Message) -> Message:
        parts = tuple(
            replace(part, text=results[i, j].text)
            if isinstance(part, Text) and (i, j) in results and results[i, j].text.strip()
            else part
            for j, part in enumerate(old.parts)
        )
        return old if parts == old.parts else replace(old, parts=parts)

    documents = [
        replace(old, text=results[-1, i].text)
        for i, old in enumerate(request.documents)
        if results[-1, i].text.strip()
    ]
    changed = replace(
        request,
        messages=tuple(message(i, old) for i, old in enumerate(request.messages)),
        documents=tuple(documents),
    )
    return changed, len(request.documents) - len(documents)


def _file_name(document: Document) -> str | None:
    """Return the name that says what a document's text is (data.csv), if it has one."""
    for name in (document.metadata.get("source"), document.title):
        if isinstance(name, str) and FILE_NAME.fullmatch(name):
            return name
    return None


def _task(request: Request) -> list[str]:
    """Return what of the last user turn is the task itself: its ends, and whatever asks."""
    asked = next((m.text for m in reversed(request.messages) if m.role == "user"), "")
    if request.question and request.question != asked:
        return [request.question]
    pieces = [piece.strip() for piece in SENTENCE_END.split(asked) if piece.strip()]
    ends = {0, len(pieces) - 1} if pieces else set[int]()
    at = sorted(ends | {i for i, piece in enumerate(pieces) if ASKS.search(piece)})
    return [pieces[i] for i in at]


def _num_tokens(request: Request, count: Callable[[str], int]) -> int:
    texts = [m.text for m in request.messages] + [d.text for d in request.documents]
    return sum(count(text) for text in texts)
