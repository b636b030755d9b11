"""One request: read, changed as its policy says, sent on, and its answer passed back."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from ..errors import HeadraceError
from ..verbatim import decoded, keeps_numbers, read_json, rewritten
from ..wrap_bodies import Kind, kind_of
from ..wrap_prepare import Prepared, prepare
from . import pipelined
from .config import Config
from .errors import SURROGATES, Failure, failure_of
from .events import Counts
from .metrics import Record
from .policies import Policy
from .relay import is_stream, pass_on, relay
from .sending import Headers, Sending
from .tracing import Tracer
from .upstream import Upstream, address, headers_for, key_of

_DECISION = b"x-headrace-decision"
_log = logging.getLogger("headrace.proxy")
_REFUSES = (400, 422)  # of the server
_NOT_SENT = (400, 403)  # of failures of our own: the request was at fault


@dataclass(frozen=True, slots=True)
class Call:
    """A request as it came, with its whole body."""

    method: str
    path: str
    query: bytes
    headers: Headers
    body: bytes


@dataclass
class Routes:
    """Answers calls. ``uncounted`` are servers that do not know ``stream_options``."""

    upstream: Upstream = field(default_factory=Upstream)
    engines: pipelined.Engines = field(default_factory=pipelined.Engines)
    tracer: Tracer = field(default_factory=Tracer)
    uncounted: set[str] = field(default_factory=set[str])

    async def close(self) -> None:
        """Close all connections."""
        await self.upstream.close()
        await self.engines.close()

    async def answer(self, config: Config, call: Call, sending: Sending, record: Record) -> None:
        """Answer a call and note what happened. Raises Failure as long as nothing was sent."""
        kind = kind_of(call.path) if call.method == "POST" else None
        body = _json(call.body) if kind else None
        if kind is None or body is None:
            if kind is not None:  # no JSON object: the server will say so better than we can
                decide(sending, record, "unread")
            await self._pass_on(config, call, sending)
            return
        record.model = SURROGATES.sub("\ufffd", str(body.get("model") or ""))
        record.is_stream = body.get("stream") is True
        record.policy, policy = config.policy(record.model)
        counts = Counts()
        with self.tracer.span(config, record, body, call.headers) as onward:
            try:
                policy = _asked(policy, body)
                _ = headers_for(config, call.headers, plain=True)  # or it is refused, before work
                prepared = await _prepared(kind, body, policy, record, sending)
                if prepared.decision == "changed":
                    counts.block = _block(prepared, record)
                seconds = config.keepalive if record.is_stream else 0.0
                async with sending.kept_alive(seconds):
                    is_read = kind == "chat" and prepared.decision != "unread"
                    is_ours = is_read and pipelined.is_pipelined(policy, prepared.body)
                    if is_ours and keeps_numbers(decoded(call.body)):
                        if prepared.decision in ("off", "unchanged"):
                            decide(sending, record, "answered")
                        key = key_of(config, call.headers)
                        engine = await self.engines.get(config, record.model, key)
                        more = await pipelined.answer(
                            sending, engine, policy, prepared.body, counts
                        )
                        record.stages += more
                    else:
                        await self._relay(config, call, sending, prepared, body, counts, onward)
            except Failure as failure:
                record.error = failure.code
                if not sending.status:
                    record.status = failure.status
                    if not record.decision or failure.status in _NOT_SENT:
                        decide(sending, record, "refused")
                    raise
                await sending.end(failure.event)  # of a stream, whose status is gone
            finally:
                record.status = sending.status or record.status
                record.prompt_tokens = counts.prompt_tokens
                record.completion_tokens = counts.completion_tokens
                record.cached_tokens = counts.cached_tokens
                self.tracer.end(record, counts)

    async def _pass_on(self, config: Config, call: Call, sending: Sending) -> None:
        url = address(config, call.path, call.query)
        headers = headers_for(config, call.headers, plain=False)
        async with self.upstream.answer(config, call.method, url, headers, call.body) as response:
            await pass_on(sending, response, config)

    async def _relay(
        self,
        config: Config,
        call: Call,
        sending: Sending,
        prepared: Prepared,
        given: Mapping[str, Any],
        counts: Counts,
        onward: Mapping[str, str],
    ) -> None:
        """Send a body on; what of it is as it was ``given`` stays as it was written."""
        body = dict(prepared.body)
        is_same = prepared.body is given and pipelined.FIELD not in body
        body.pop(pipelined.FIELD, None)
        plain = call.body if is_same else _rewritten(call.body, given, body)
        counts.is_hidden = is_counted = self._is_counted(config, call.path, body)
        url = address(config, call.path, call.query)
        headers = [one for one in headers_for(config, call.headers, plain=True)
                   if one[0].decode("latin-1") not in onward]  # fmt: skip
        headers += [(name.encode(), value.encode()) for name, value in onward.items()]
        streams = body.get("stream") is True

        async def once(content: bytes, *, is_last: bool) -> int | None:
            async with self.upstream.answer(
                config, "POST", url, headers, content, is_stream=streams
            ) as response:
                if response.status_code in _REFUSES and not is_last:
                    said = await response.aread()
                    if b"stream_options" in said:
                        return None
                counts.is_hidden = counts.is_hidden and is_stream(response)
                await relay(sending, response, config, counts)
                return response.status_code

        if is_counted:
            options: dict[str, Any] = {**(body.get("stream_options") or {}), "include_usage": True}
            asking = _rewritten(call.body, given, {**body, "stream_options": options})
            if await once(asking, is_last=False):
                return
            counts.is_hidden = False
        status = await once(plain, is_last=True)
        if is_counted and (status or 500) < 400:  # so it was that
            self.uncounted.add(config.backend)

    def _is_counted(self, config: Config, path: str, body: Mapping[str, Any]) -> bool:
        """Whether we ask the server to count the tokens of a stream that nobody else asks for."""
        if not config.count_usage or body.get("stream") is not True:
            return False
        if kind_of(path) not in ("chat", "completions") or config.backend in self.uncounted:
            return False
        options = body.get("stream_options")
        return options is None or (
            isinstance(options, dict) and not cast("Any", options).get("include_usage")
        )


def _json(body: bytes) -> dict[str, Any] | None:
    """Return the JSON object of a body, None for anything else, which the server shall refuse."""
    try:
        found: Any = read_json(body)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def _rewritten(body: bytes, old: Mapping[str, Any], new: Mapping[str, Any]) -> bytes:
    return rewritten(decoded(body), old, new).encode("utf-8", "surrogatepass")


def _asked(policy: Policy, body: Mapping[str, Any]) -> Policy:
    if pipelined.FIELD not in body:
        return policy
    try:
        return policy.merged(body[pipelined.FIELD], remote=True)
    except HeadraceError as error:
        raise failure_of(error) from error


def decide(sending: Sending, record: Record, decision: str) -> None:
    """Note what became of a request of a route that is read, and say it in the answer's headers."""
    record.decision = decision
    others = [one for one in sending.extra if one[0] != _DECISION and decision != "refused"]
    sending.extra = [(_DECISION, decision.encode()), *others]


async def _prepared(
    kind: Kind, body: dict[str, Any], policy: Policy, record: Record, sending: Sending
) -> Prepared:
    started = time.perf_counter()
    try:
        prepared = await prepare(kind, body, policy)
    except HeadraceError as error:
        raise failure_of(error) from error
    record.stage_seconds = time.perf_counter() - started
    decide(sending, record, prepared.decision)
    if prepared.decision in ("off", "unread"):
        return prepared
    rows = prepared.report.stages
    record.stages = tuple(f"{row.stage}: {row.decision}" for row in rows)
    if prepared.decision == "failed":
        _log.warning("sent as it came: %s", "; ".join(record.stages)[:300])
    if (tokens := prepared.tokens) is not None:
        record.tokens_before, record.tokens_after = tokens
        sending.extra += [
            (b"x-headrace-tokens-before", str(tokens[0]).encode()),
            (b"x-headrace-tokens-after", str(tokens[1]).encode()),
            (b"x-headrace-tokens-saved", str(tokens[0] - tokens[1]).encode()),
        ]
    sending.extra.append((b"x-headrace-seconds", f"{record.stage_seconds:.4f}".encode()))
    return prepared


def _block(prepared: Prepared, record: Record) -> dict[str, Any]:
    """Return what stands in the usage of a changed request."""
    return {
        "tokens_before": record.tokens_before,
        "tokens_after": record.tokens_after,
        "tokens_saved": record.tokens_saved,
        "stages": [
            {"stage": row.stage, "decision": row.decision} for row in prepared.report.stages
        ],
    }
