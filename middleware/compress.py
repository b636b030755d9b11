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


@dataclass(frozen=True)
class Compress(Transform):
    """Drop what the answer needs least, within one budget for the whole request.

    Exactly one of ``rate``, ``target_tokens`` and ``threshold`` is the budget, over everything that
    may be cut: the documents and the turns before the last user turn. System and tool messages,
    the question and code are never touched. ``last_user="context"`` lets the last user turn be cut
    too, but for its first and last line and every line that asks something.

    ``compressor`` is "auto", "lexical" or a token-classification model; ``tokenizer`` is what
    tokens are counted with (the engine's own, so that the budget is what the engine sees); text
    that matches a ``keep`` pattern stays.
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
        texts = dict(_texts(request, self.last_user))
        results = await asyncio.to_thread(self._compress, request, texts)
        changed = _put_back(request, dict(zip(texts, results, strict=True)))
        count = self.engine.counter.count
        before, after = _num_tokens(request, count), _num_tokens(changed, count)
        reasons = sorted({result.reason for result in results if result.reason})
        decision = f"{before} -> {after} tokens" if texts else "nothing that may be cut"
        row = StageReport(
            self.name,
            "; ".join([decision, *reasons]),
            time.perf_counter() - started,
            before,
            after,
            details={
                "compressor": self.compressor if not results else results[0].compressor,
                "texts": len(texts),
                "reasons": reasons,
            },
        )
        return replace(changed, report=request.report.add(row))

    def _compress(self, request: Request, texts: dict[Slot, str]) -> list[Compressed]:
        question, keep = request.question, [*self.keep]
        if self.last_user == "context":
            task = _task(request)
            keep += [re.compile(re.escape(line)) for line in task]
            if len(task) > 1:  # else the question is all there is
                question = " ".join(filter(ASKS.search, task)) or task[-1]
        return self.engine.compress(
            list(texts.values()), self.budget, question=question, keep=keep, joint=True
        )


def _texts(request: Request, last_user: str) -> list[tuple[Slot, str]]:
    """Everything that may be cut, in the order of the prompt."""
    last = max((i for i, m in enumerate(request.messages) if m.role == "user"), default=-1)
    found: list[tuple[Slot, str]] = []
    for i, message in enumerate(request.messages):
        is_open = i < last or (i == last and last_user == "context")
        if is_open and message.role in ("user", "assistant") and not message.is_tool:
            found += [
                ((i, j), part.text)
                for j, part in enumerate(message.parts)
                if isinstance(part, Text)
            ]
    return found + [((-1, i), document.text) for i, document in enumerate(request.documents)]


def _put_back(request: Request, results: dict[Slot, Compressed]) -> Request:
    def message(i: int, old: Message) -> Message:
        parts = tuple(
            replace(part, text=results[i, j].text)
            if isinstance(part, Text) and (i, j) in results
            else part
            for j, part in enumerate(old.parts)
        )
        return old if parts == old.parts else replace(old, parts=parts)

    def document(i: int, old: Document) -> Document:
        return replace(old, text=results[-1, i].text)

    return replace(
        request,
        messages=tuple(message(i, old) for i, old in enumerate(request.messages)),
        documents=tuple(document(i, old) for i, old in enumerate(request.documents)),
    )


def _task(request: Request) -> list[str]:
    """Return the lines of the last user turn that hold the task itself: first, last, asking."""
    asked = next((m.text for m in reversed(request.messages) if m.role == "user"), "")
    lines = [line.strip() for line in asked.split("\n") if line.strip()]
    if request.question and request.question != asked:
        return [request.question]
    at = sorted({0, len(lines) - 1} | {i for i, line in enumerate(lines) if ASKS.search(line)})
    return [lines[i] for i in at if i < len(lines)] if lines else []


def _num_tokens(request: Request, count: Callable[[str], int]) -> int:
    texts = [m.text for m in request.messages] + [d.text for d in request.documents]
    return sum(count(text) for text in texts)
