from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from engine.dialects import ENGINES, Imitation
from engine.wire import Server

from headrace.middleware.types import Constraint, Request, Response

Holding = Callable[..., Awaitable[Response]]


@pytest.fixture
def hold(server: Server, make: Any, ask: Any) -> Holding:
    """Ask an imitated engine under a constraint; ``server.bodies`` are the bodies afterwards."""
    backends: dict[str, Any] = {}

    async def hold(
        engine: str | Imitation | None,
        constraint: Constraint,
        *candidates: str,
        sampling: Any = None,
        **options: Any,
    ) -> Response:
        if engine is not None:
            imitation = ENGINES[engine] if isinstance(engine, str) else engine
            imitation.on(server, *candidates)
        if not backends or options:
            backends["one"] = make(server.url, **options)
        fields = {} if sampling is None else {"sampling": sampling}
        [answer] = await ask(backends["one"], [Request.of("Go", constraint=constraint, **fields)])
        return answer.finished

    return hold
