"""What a proxy has done, as Prometheus reads it and as the page shows it.

Labels are few and known beforehand: a model's name comes from the caller, so the label is the
policy that it fell under. No prompt, no key and no address is ever in a label.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from .config import Live

REMEMBERED = 50  # requests on the page
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
_ADDED = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)


@dataclass
class Record:
    """One request; ``seconds`` is from its first byte to the last of the answer."""

    route: str = "other"  # chat, completions, responses, messages, other
    policy: str = "*"
    model: str = ""
    status: int = 0
    is_stream: bool = False
    decision: str = ""  # of ``Prepared``, "answered" or "refused"; none of one who left before
    tokens_before: int = 0
    tokens_after: int = 0
    stage_seconds: float = 0.0
    first_seconds: float | None = None
    seconds: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    error: str = ""  # the code of an error of ours
    is_gone: bool = False
    is_traced: bool = False
    stages: tuple[str, ...] = ()
    clock: list[float] = field(default_factory=list[float])

    @property
    def tokens_saved(self) -> int:
        """Prompt tokens that were taken away."""
        return self.tokens_before - self.tokens_after


class Metrics:
    """Counters of one proxy, in a registry of their own."""

    def __init__(self, live: Live) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self.registry = CollectorRegistry()
        self.started = time.time()
        self.recent: deque[dict[str, Any]] = deque(maxlen=REMEMBERED)
        names = ("requests", "before", "after", "prompt", "completion")
        self.totals: dict[str, int] = dict.fromkeys(names, 0)

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"headrace_{name}", text, labels, registry=self.registry)

        def histogram(name: str, text: str, buckets: Any, *labels: str) -> Histogram:
            return Histogram(
                f"headrace_{name}", text, labels, buckets=buckets, registry=self.registry
            )

        self._requests = counter("requests", "Answered requests.", "route", "policy", "status")
        self._decisions = counter("decisions", "What became of the request.", "policy", "decision")
        self._errors = counter("errors", "Errors of the proxy's own.", "code")
        self._gone = counter("disconnects", "Callers that went away.", "route")
        self._tokens = counter("prompt_tokens", "Prompt tokens, estimated.", "policy", "at")
        self._usage = counter("usage_tokens", "Tokens as the server counts them.", "policy", "kind")
        self._seconds = histogram("request_seconds", "Whole requests.", _SECONDS, "route", "stream")
        self._first = histogram("first_byte_seconds", "Up to the first byte.", _SECONDS, "route")
        self._added = histogram("stage_seconds", "Changing the prompt.", _ADDED, "policy")
        self.open = Gauge("headrace_open_requests", "Under way.", registry=self.registry)
        broken = Gauge("headrace_config_broken", "1: the file is broken.", registry=self.registry)
        broken.set_function(lambda: float(live.error is not None))
        reloads = Gauge(
            "headrace_config_reloads", "The file read again.", ["result"], registry=self.registry
        )
        for result in live.num_reloads:
            reloads.labels(result).set_function(partial(_number, live.num_reloads, result))

    def observe(self, record: Record) -> None:
        """Count one request."""
        self._requests.labels(record.route, record.policy, str(record.status)).inc()
        self._seconds.labels(record.route, str(record.is_stream).lower()).observe(record.seconds)
        if record.first_seconds is not None:
            self._first.labels(record.route).observe(record.first_seconds)
        if record.error:
            self._errors.labels(record.error).inc()
        if record.is_gone:
            self._gone.labels(record.route).inc()
        if record.route != "other":
            self._read(record)

    def text(self) -> bytes:
        """Return everything in Prometheus' text format."""
        from prometheus_client import generate_latest

        return generate_latest(self.registry)

    def page(self) -> dict[str, Any]:
        """Return what the page shows, as JSON values: totals, and the last requests."""
        before, after = self.totals["before"], self.totals["after"]
        return {
            "uptime_seconds": round(time.time() - self.started),
            "requests": self.totals["requests"],
            "tokens_before": before,
            "tokens_after": after,
            "tokens_saved": before - after,
            "share_saved": (before - after) / before if before else 0.0,
            "prompt_tokens": self.totals["prompt"],
            "completion_tokens": self.totals["completion"],
            "recent": list(self.recent),
        }

    def _read(self, record: Record) -> None:
        policy = record.policy
        if record.decision:
            self._decisions.labels(policy, record.decision).inc()
        self._tokens.labels(policy, "before").inc(record.tokens_before)
        self._tokens.labels(policy, "after").inc(record.tokens_after)
        if record.stages:
            self._added.labels(policy).observe(record.stage_seconds)
        for kind in ("prompt", "completion", "cached"):
            self._usage.labels(policy, kind).inc(getattr(record, f"{kind}_tokens"))
        for name, value in (
            ("requests", 1),
            ("before", record.tokens_before),
            ("after", record.tokens_after),
            ("prompt", record.prompt_tokens),
            ("completion", record.completion_tokens),
        ):
            self.totals[name] += value
        self.recent.append(
            {
                "at": round(time.time(), 3),
                "model": record.model[:80],
                "route": record.route,
                "status": record.status,
                "decision": record.decision,
                "tokens_before": record.tokens_before,
                "tokens_after": record.tokens_after,
                "seconds": round(record.seconds, 3),
                "first_seconds": round(record.first_seconds or record.seconds, 3),
                "stage_seconds": round(record.stage_seconds, 4),
                "stages": list(record.stages),
            }
        )


def _number(numbers: dict[str, int], name: str) -> float:
    return float(numbers[name])
