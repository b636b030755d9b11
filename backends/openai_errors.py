"""The openai client's exceptions, translated into ours. The only place that knows them."""

from __future__ import annotations

import email.utils
import json
import math
import re
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..middleware.errors import (
    BackendError,
    HeadraceError,
    InvalidRequest,
    Overloaded,
    UnsupportedConstraint,
)

if TYPE_CHECKING:
    import openai

_BEARER = re.compile(r"(?i)(bearer\s+|\bsk-)[\w.*-]+")
_CONSTRAINT = re.compile(
    r"(?i)response_?format|schema|grammar|structured|guided|regex|pattern|ebnf|xgrammar|outlines"
)
# Ollama and older llama.cpp say with status 500 that they cannot read a schema.
_UNREADABLE = re.compile(
    r"(?i)JSON schema conversion failed|invalid JSON schema|failed to parse grammar|grammar error"
)


def translate(
    error: Exception, *, url: str, key: str, constrained: bool, prompt: Sequence[str] = ()
) -> HeadraceError:
    """Return what an exception of the client means to our caller.

    ``url`` is shown; ``key`` and the texts of ``prompt`` are cut out of everything the server
    said. ``constrained``: the request asked for a format, so a refusal that speaks of it is
    UnsupportedConstraint.
    """
    import openai

    def scrub(text: str) -> str:
        return scrubbed(text, key, prompt)

    if isinstance(error, openai.APITimeoutError):
        return BackendError(
            f"no answer from {url} in time; raise the timeout, or check the server's load",
            retryable=True,
            may_have_run=not _never_connected(error),
        )
    if isinstance(error, openai.APIStatusError):
        return _status(error, url, scrub, constrained)
    if isinstance(error, openai.APIConnectionError):
        return BackendError(
            f"cannot reach {url} ({scrub(_cause(error))}); check that the server runs there and"
            " that the address and port are right",
            retryable=True,
        )
    if isinstance(error, openai.APIError):  # an error event inside a stream
        if constrained and _CONSTRAINT.search(error.message):  # SGLang says it there, with 200
            return UnsupportedConstraint(f"{url} refused the constraint: {scrub(error.message)}")
        code = str(error.code or error.type or "")
        retryable = code in ("429", "server_error", "rate_limit_exceeded") or code.startswith("5")
        return BackendError(
            f"{url} broke off with an error: {scrub(error.message)}", retryable=retryable
        )
    reason = scrub(f"{type(error).__name__}: {error}")
    return BackendError(
        f"{url} sent something that is no chat completion ({reason}); check that the URL is the"
        " base of an OpenAI-compatible API"
    )


def scrubbed(text: str, key: str, prompt: Sequence[str] = ()) -> str:
    """Return the text in one line of at most 300 characters, without keys and prompts."""
    if len(key) > 4:  # shorter ones are placeholders such as "none"
        text = text.replace(key, "***")
    for one in sorted(prompt, key=len, reverse=True):
        if len(one) > 4:  # in every form in which a server may give it back
            for form in (one, json.dumps(one)[1:-1], json.dumps(one, ensure_ascii=False)[1:-1]):
                text = text.replace(form, "[prompt]")
            text = text.replace(repr(one)[1:-1], "[prompt]")
    return " ".join(_BEARER.sub("***", text).split())[:300]


def retry_after(headers: Any) -> float | None:
    """Return the seconds that a Retry-After header asks for, None when it does not say.

    Both forms of RFC 9110 section 10.2.3 are read, seconds and an HTTP date, and the
    milliseconds of ``retry-after-ms``.
    """
    for name, divisor in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) / divisor
        except ValueError:
            continue
        return max(seconds, 0.0) if math.isfinite(seconds) else None
    try:
        date = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    return max(date.timestamp() - time.time(), 0.0)


def _status(
    error: openai.APIStatusError, url: str, scrub: Callable[[str], str], constrained: bool
) -> HeadraceError:
    status = error.status_code
    said = scrub(error.message)
    if 300 <= status < 400:
        return BackendError(f"{url} redirects elsewhere (status {status}); name the final address")
    if status in (401, 403):
        hint = "; pass api_key or OPENAI_API_KEY"
        return BackendError(f"{url} refused the API key ({said})", hint=hint)
    if status == 404:
        return BackendError(f"{url} has no such model or path ({said}); check both")
    if constrained and status == 500 and _UNREADABLE.search(said):
        return UnsupportedConstraint(f"{url} refused the constraint: {said}")
    if status in (400, 413, 422):
        if constrained and _CONSTRAINT.search(said):
            return UnsupportedConstraint(f"{url} refused the constraint: {said}")
        return InvalidRequest(f"{url} refused the request: {said}")
    headers = error.response.headers
    wait = retry_after(headers)
    final = headers.get("x-should-retry") == "false" or error.code == "insufficient_quota"
    if status in (429, 503) and not final:
        return Overloaded(f"{url} is overloaded (status {status}): {said}", retry_after=wait)
    return BackendError(
        f"{url} failed with status {status}: {said}",
        retryable=not final and (status in (408, 409, 425, 429) or status >= 500),
        retry_after=wait,
        may_have_run=status in (502, 504),  # a gateway that lost sight of the engine
    )


def _never_connected(error: BaseException) -> bool:
    while error.__cause__ is not None:
        error = error.__cause__
    return type(error).__name__ in ("ConnectTimeout", "PoolTimeout")


def _cause(error: BaseException) -> str:
    """Return the innermost reason: the client's own message is only "Connection error."."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error) or type(error).__name__
