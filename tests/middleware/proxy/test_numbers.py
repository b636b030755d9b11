"""Numbers go through the proxy as they were written, on every route, whatever else is changed."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import pytest
from engine.proxied import LEXICAL, LONG, Start, chat, history
from engine.upstream import DONE, USAGE, Upstream, event, posts, says, streams

ODD = "[1.0, 1.10, 1E5, 12345678901234567890, 1e400, -0, 0.1000000000000000055511151231257827]"
KEPT = "[1.0, 1.10, 1E5, 12345678901234567890, -0]"
TURNS = history()["messages"]
BODIES: dict[str, dict[str, Any]] = {
    "/chat/completions": {"messages": TURNS},
    "/responses": {"input": TURNS},
    "/messages": {"messages": TURNS[1:]},
    "/completions": {"prompt": "Who?", "headrace": {"documents": [LONG, "Mill 7."]}},
}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
ASKED = {"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}}
SEVEN = streams(event({"content": '{"n": 7}'}, "stop"), event(usage=USAGE), DONE)


def with_numbers(body: dict[str, Any], numbers: str) -> bytes:
    """Return a body that has the numbers beside its fields, and in one of its messages."""
    text = json.dumps({"model": "tiny", **body, "mill": "NUMBERS"})
    for key in ("messages", "input"):
        text = text.replace(f'"{key}": [{{', f'"{key}": [{{"mill": "NUMBERS", ', 1)
    return text.replace('"NUMBERS"', numbers).encode()


@pytest.mark.parametrize("path", BODIES)
def test_a_changed_body_keeps_its_numbers(
    path: str, server: Upstream, start: Start, http: httpx.Client
) -> None:
    server.script = says({"id": "x", "usage": USAGE})
    body = with_numbers(BODIES[path], ODD)
    answer = http.post(start(LEXICAL).url + path, content=body)
    assert answer.headers["x-headrace-decision"] == "changed"
    sent = server.seen[-1].raw
    assert sent != body
    assert sent.count(ODD.encode()) == body.count(ODD.encode()) >= 1
    assert b"Infinity" not in sent


def test_an_answers_numbers_come_back_as_they_were(
    server: Upstream, start: Start, http: httpx.Client
) -> None:
    usage = json.dumps({**USAGE, "mill": "NUMBERS"}).replace('"NUMBERS"', ODD)
    said = f'{{"id": "x", "choices": [], "mill": {ODD}, "usage": {usage}}}'

    async def script(request: Any) -> Any:
        from starlette.responses import Response

        return Response(said, media_type="application/json")

    server.script = posts(script)
    answer = http.post(start(LEXICAL).url + "/chat/completions", json=history())
    assert answer.text.count(ODD) == 2
    assert "headrace" in answer.text


@pytest.mark.parametrize("is_stream", [False, True])
def test_the_pipeline_answers_only_what_it_can_send_as_it_was(
    is_stream: bool, server: Upstream, start: Start, http: httpx.Client
) -> None:
    server.script = posts(SEVEN)
    proxy = start('[models."*"]\nconstrain = true\n')
    for numbers, decision in ((KEPT, "answered"), (ODD, "off"), ("[NaN]", "off")):
        body = with_numbers(chat(stream=is_stream, **ASKED), numbers)
        answer = http.post(f"{proxy.url}/chat/completions", content=body)
        assert (answer.status_code, answer.headers["x-headrace-decision"]) == (200, decision)
        sent = server.seen[-1].raw.decode()
        if decision == "off":
            assert sent.count(numbers) == 2
        else:
            assert json.loads(sent)["mill"] == json.loads(KEPT)
            assert re.search(r"\b12345678901234567890\b", sent)
