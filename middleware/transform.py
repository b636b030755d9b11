"""A stage that changes the request and leaves the answer alone."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import ClassVar, Literal

from .errors import InvalidRequest
from .report import StageReport
from .types import Event, Handler, Request


class Transform(ABC):
    """Write ``transform``; the rest of the stage follows from it.

    A transform is also usable alone: ``await stage.transform(request)`` returns the changed request
    with the stage's row at the end of ``request.report``. With ``on_error="pass"`` (the default) a
    stage that fails, whatever the reason, sends the original request on and says so in the report;
    InvalidRequest, which is the caller's to fix, is always raised.
    """

    name: ClassVar[str]
    on_error: Literal["pass", "raise"] = "pass"

    @abstractmethod
    async def transform(self, request: Request) -> Request:
        """Return the request to send on."""

    async def __call__(
        self, request: Request, call_next: Handler, /
    ) -> AsyncGenerator[Event, None]:
        """Send the transformed request on and pass the answer's events through."""
        started = time.perf_counter()
        try:
            changed = await self.transform(request)
        except InvalidRequest:
            raise
        except Exception as error:
            if self.on_error == "raise":
                raise
            row = StageReport(
                self.name,
                f"failed, request passed on unchanged: {error}",
                time.perf_counter() - started,
                details={"error": type(error).__name__},
            )
            changed = replace(request, report=request.report.add(row))
        async with aclosing(call_next(changed)) as events:
            async for event in events:
                yield event
