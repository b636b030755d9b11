"""What goes wrong, in the shape in which OpenAI's clients read it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping

from ..errors import (
    BackendError,
    DeadlineExceeded,
    HeadraceError,
    InvalidRequest,
    ModelUnavailable,
    Overloaded,
    Truncated,
    UnsupportedConstraint,
)
from ..outcome import Rejected

NO_RETRY = {"x-should-retry": "false"}
SURROGATES = re.compile("[\ud800-\udfff]")  # halves of pairs, which UTF-8 has not

_STATUS: tuple[tuple[type[HeadraceError], int, str], ...] = (
    (InvalidRequest, 400, "invalid_request"),
    (UnsupportedConstraint, 400, "unsupported_constraint"),
    (Overloaded, 429, "upstream_overloaded"),
    (DeadlineExceeded, 504, "deadline_exceeded"),
    (Truncated, 502, "truncated"),
    (ModelUnavailable, 502, "model_unavailable"),
    (Rejected, 502, "invalid_output"),
    (BackendError, 502, "upstream_failed"),
    (HeadraceError, 502, "failed"),
)


def encoded(value: object) -> bytes:
    """Return a JSON value as bytes; half a surrogate pair, which UTF-8 has not, as an escape."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


class Failure(Exception):
    """An answer that is an error of our own: ``code`` is for machines."""

    def __init__(
        self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = dict(headers or {})

    @property
    def body(self) -> bytes:
        """The error as OpenAI writes it."""
        kind = "invalid_request_error" if 400 <= self.status < 500 else "api_error"
        if self.status == 429:
            kind = "rate_limit_error"
        said = {"message": self.message, "type": kind, "param": None, "code": self.code}
        return encoded({"error": said})

    @property
    def event(self) -> bytes:
        """The error as an event of a stream, which ends it."""
        return b"data: " + self.body + b"\n\n"


def overloaded(message: str, code: str, seconds: float) -> Failure:
    """Return a refusal that says when to come back, in whole seconds from 1 on."""
    return Failure(429, code, message, {"retry-after": str(max(1, math.ceil(seconds)))})


def failure_of(error: HeadraceError) -> Failure:
    """Return what an error of the pipeline is to a caller over HTTP, without hints for Python."""
    status, code = next((s, c) for kind, s, c in _STATUS if isinstance(error, kind))
    wait = getattr(error, "retry_after", None)
    if isinstance(error, Overloaded):
        return overloaded(error.said, code, 1.0 if wait is None else wait)
    return Failure(status, code, error.said, NO_RETRY if status >= 500 else {})
