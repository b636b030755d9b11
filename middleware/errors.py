"""Everything headrace raises on purpose.

    HeadraceError
    ├── InvalidRequest          the caller asked for something that makes no sense
    ├── UnsupportedConstraint   the constraint is valid, but this engine cannot enforce it
    ├── ModelUnavailable        a model was not found anywhere
    ├── BackendError            the engine failed (``retryable`` and ``retry_after`` say what to do)
    │   └── Overloaded          ours or the engine's queue is full
    ├── DeadlineExceeded        the request's deadline passed
    └── Truncated               the output was cut before it was complete

A message says what was wrong, with which value, and what to do about it, in one line.
"""

from __future__ import annotations


class HeadraceError(Exception):
    """Base class of every error that headrace raises on purpose.

    ``hint`` is the end of the message that only helps who calls from Python; ``said`` is the
    message without it, for callers over HTTP.
    """

    def __init__(self, message: str = "", *, hint: str = "") -> None:
        super().__init__(message + hint)
        self.hint = hint

    @property
    def said(self) -> str:
        """The message without its hint."""
        return str(self).removesuffix(self.hint)


class InvalidRequest(HeadraceError, ValueError):
    """The caller's input or options make no sense; retrying will not help."""


class UnsupportedConstraint(HeadraceError):
    """The constraint is well-formed, but cannot be enforced here."""


class ModelUnavailable(HeadraceError):
    """A model was looked for in every place and not found."""


class BackendError(HeadraceError):
    """The engine failed or refused.

    ``retryable`` tells whether the same request may succeed later; ``retry_after`` is the
    engine's own hint in seconds, None when it gave none. ``may_have_run``: the engine may have
    taken the request and be answering it, so that sending it again may be billed twice.
    """

    def __init__(
        self,
        message: str,
        *,
        retryable: bool = False,
        retry_after: float | None = None,
        may_have_run: bool = False,
        hint: str = "",
    ) -> None:
        super().__init__(message, hint=hint)
        self.retryable = retryable
        self.retry_after = retry_after
        self.may_have_run = may_have_run

    @property
    def may_be_sent_again(self) -> bool:
        """Whether another try may help and cannot be billed twice."""
        return self.retryable and not self.may_have_run


class Overloaded(BackendError):
    """A queue is full; ``retry_after`` says when to come back."""

    def __init__(self, message: str, *, retry_after: float | None = None, hint: str = "") -> None:
        super().__init__(message, retryable=True, retry_after=retry_after, hint=hint)


class DeadlineExceeded(HeadraceError, TimeoutError):
    """The request's deadline passed before it was answered."""


_TEXT_HINT = " (.text of this error is what there is)"


class Truncated(HeadraceError):
    """The output ended before it was complete; ``text`` is what there is of it."""

    def __init__(self, message: str, *, text: str = "") -> None:
        super().__init__(message, hint=_TEXT_HINT if text else "")
        self.text = text
