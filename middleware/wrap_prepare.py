"""A body of an API, as it is sent on: the stages that change a request, around nothing."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from .compress import EMPTIED
from .report import Report, StageReport
from .transform import Transform
from .types import Document, Event, Finished, Handler, Message, Request, Response, Sampling
from .wrap_bodies import Kind, Unreadable, left_whole, read, write
from .wrap_options import Options, stages

Decision = Literal["off", "unread", "failed", "unchanged", "changed"]
"""What became of a request: headrace was asked for nothing, could not read it, a stage failed and
it went on as it was, nothing of it could be cut, or it was changed."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A body to send. It is the same object as the one given unless ``decision`` is "changed"."""

    body: Mapping[str, Any]
    decision: Decision
    report: Report

    @property
    def tokens(self) -> tuple[int, int] | None:
        """Tokens of the prompt before and after, as headrace counts them; None: not counted."""
        rows = [row for row in self.report.stages if row.tokens_in is not None]
        if not rows:
            return None
        return sum(row.tokens_in or 0 for row in rows), sum(row.tokens_out or 0 for row in rows)


async def prepare(kind: Kind, body: Mapping[str, Any], options: Options) -> Prepared:
    """Return a body as the options want it.

    A body that cannot be read is sent as it is, for the server to refuse, and so is one on which a
    stage fails. Raises InvalidRequest for options and marks that make no sense.
    """
    if options.off:
        return _as_it_is(body, "off", "asked to leave the request alone")
    try:
        chat = read(kind, body)
    except Unreadable:
        return _as_it_is(body, "unread", "not in a shape that is read; sent as it is")
    if not (chat.marks or options.documents or stages(options)):
        return _as_it_is(body, "off", "nothing was asked for")
    chain = stages(options)
    sampling = Sampling(extra={"tools": body["tools"]} if body.get("tools") else {})
    request = Request(chat.messages, options.documents, options.question, sampling=sampling)
    changed = await _through(chain, request)
    kept: list[Document] = []
    for question, marked in chat.groups(options.question):
        # Each for the question of its own turn, so that it stays the same bytes in later turns.
        alone = Request((Message("user", ()),), marked, question)
        cut = await _through(chain, alone)
        kept += cut.documents
        changed = replace(changed, report=changed.report.add(*cut.report.stages))
    changed = replace(changed, documents=(*changed.documents, *kept))
    report = changed.report
    if num_whole := len(left_whole(body, chat, changed)):
        why = f"{num_whole} marked parts stay whole: {EMPTIED}"
        report = report.add(StageReport("headrace", why, details={"left_whole": num_whole}))
    has_failed = any("error" in row.details for row in report.stages)
    new = write(kind, body, chat, changed)
    if new == body:
        return Prepared(body, "failed" if has_failed else "unchanged", report)
    return Prepared(new, "changed", report)


def _as_it_is(body: Mapping[str, Any], decision: Decision, why: str) -> Prepared:
    return Prepared(body, decision, Report((StageReport("headrace", why),)))


async def _through(chain: Sequence[Transform], request: Request) -> Request:
    """Return what the stages make of a request."""
    last = request

    async def take(changed: Request) -> AsyncGenerator[Event, None]:
        nonlocal last
        last = replace(changed)
        yield Finished(Response("", report=changed.report))

    handler: Handler = take
    for stage in reversed(chain):
        handler = partial(_call, stage, handler)
    async with aclosing(handler(request)) as events:
        async for _ in events:
            pass
    return last


def _call(stage: Transform, call_next: Handler, request: Request) -> AsyncGenerator[Event, None]:
    return stage(request, call_next)
