"""What goes through the proxy, and what comes back."""

from __future__ import annotations

import json
from typing import Any

import httpx
import openai
import pytest
from engine.proxied import LEXICAL, LONG, Start, chat, history
from engine.upstream import DONE, HELLO, USAGE, Upstream, completion, event, says, streams


def test_a_plain_request_is_the_same_bytes_both_ways(
    server: Upstream, start: Start, http: httpx.Client
) -> None:
    body = b'{ "model":"tiny",  "messages":[{"role":"user","content":"\xc3\xa9 \\ud83d\\ude42"}]}'
    direct = http.post(f"{server.url}/chat/completions", content=body)
    through = http.post(f"{start().url}/chat/completions", content=body)
    assert server.seen[0].raw == server.seen[1].raw == body
    assert through.content == direct.content
    assert through.headers["content-type"] == direct.headers["content-type"]
    assert through.headers["x-headrace-decision"] == "off"


@pytest.mark.parametrize("options", [None, {"include_usage": True}, {"include_usage": False}])
def test_a_plain_stream_is_the_same_bytes(
    options: Any, server: Upstream, start: Start, http: httpx.Client
) -> None:
    body = chat(stream=True) | ({"stream_options": options} if options else {})
    direct = http.post(f"{server.url}/chat/completions", json=body)
    proxy = start()
    through = http.post(f"{proxy.url}/chat/completions", json=body)
    assert through.content == direct.content
    assert through.headers["x-accel-buffering"] == "no"
    assert through.headers["cache-control"] == "no-cache"
    proxy.counts(2, "usage_tokens_total", policy="*", kind="completion")


def test_old_turns_are_compressed_and_the_answer_says_so(
    server: Upstream, start: Start, http: httpx.Client
) -> None:
    proxy = start(LEXICAL)
    answer = http.post(f"{proxy.url}/chat/completions", json=history())
    sent = server.seen[-1].body["messages"]
    same = [new == old for new, old in zip(sent, history()["messages"], strict=True)]
    assert same == [True, False, True, True]
    before, after = (int(answer.headers[f"x-headrace-tokens-{at}"]) for at in ("before", "after"))
    assert int(answer.headers["x-headrace-tokens-saved"]) == before - after > 100
    block = answer.json()["usage"].pop("headrace")
    assert (block["tokens_before"], block["tokens_saved"]) == (before, before - after)
    assert answer.json()["usage"] | {"headrace": 0} == USAGE | {"headrace": 0}
    proxy.counts(before, "prompt_tokens_total", policy="*", at="before")
    proxy.counts(after, "prompt_tokens_total", policy="*", at="after")
    proxy.counts(1, "decisions_total", policy="*", decision="changed")


def test_a_compressed_stream_has_the_block_in_the_usage_that_was_asked_for(
    server: Upstream, start: Start
) -> None:
    with start(LEXICAL).client() as client:
        asked: Any = history(stream=True, stream_options={"include_usage": True})
        *rest, last = client.chat.completions.create(**asked)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in rest) == "Hello"
    assert last.choices == []
    assert last.usage.total_tokens == 11
    assert last.usage.headrace["tokens_saved"] > 100


def test_options_of_one_request(server: Upstream, start: Start, http: httpx.Client) -> None:
    url = f"{start(LEXICAL).url}/chat/completions"
    http.post(url, json=history(headrace={"off": True}, top_k=3))
    assert server.seen[-1].body == history(top_k=3)
    http.post(url, json=history(headrace={"rate": 1.0}))
    assert server.seen[-1].body == history()
    for options, words in (
        ({"rte": 1}, "no option 'rte'"),
        ({"compressor": "somebody/model"}, "compressor is one of"),
        ({"keep": ["(a+)+$"]}, "keep is set in the server's configuration only"),
        ({"tokenizer": "/etc/passwd"}, "tokenizer is set in the server's configuration only"),
        (7, "takes an object of options"),
    ):
        num_seen = len(server.seen)
        refused = http.post(url, json=history(headrace=options))
        assert refused.status_code == 400
        assert words in refused.json()["error"]["message"]
        assert refused.json()["error"]["type"] == "invalid_request_error"
        assert len(server.seen) == num_seen


def test_policies_by_model(server: Upstream, start: Start, http: httpx.Client) -> None:
    text = LEXICAL + '[models."gpt-*"]\noff = true\n[models.gpt-mini]\nrate = 0.9\n'
    url = f"{start(text).url}/chat/completions"
    shorter = {}
    for model in ("tiny", "gpt-large", "gpt-mini"):
        http.post(url, json=history() | {"model": model})
        shorter[model] = len(server.seen[-1].body["messages"][1]["content"]) / len(LONG)
    assert shorter["tiny"] < 0.4 < 0.6 < shorter["gpt-mini"] < 1 == shorter["gpt-large"]


def test_the_responses_api_and_plain_completions(
    server: Upstream, start: Start, http: httpx.Client
) -> None:
    proxy = start(LEXICAL)
    server.script = says({"object": "response", "usage": {"input_tokens": 5, "output_tokens": 1}})
    items = history()["messages"]
    answer = http.post(f"{proxy.url}/responses", json={"model": "tiny", "input": items})
    assert len(server.seen[-1].body["input"][1]["content"]) < 0.4 * len(LONG)
    assert answer.json()["usage"]["headrace"]["tokens_saved"] > 100
    proxy.counts(5, "usage_tokens_total", policy="*", kind="prompt")
    asked = {"documents": ["Ann built it.", "Bob sailed."], "top_k": 1, "method": "bm25"}
    body = {"model": "tiny", "prompt": "Who built it?", "headrace": asked | {"rate": None}}
    http.post(f"{proxy.url}/completions", json=body)
    assert server.seen[-1].body["prompt"].startswith("Context:\n\n[1]\nAnn built it.")


def test_the_rest_passes_through(server: Upstream, start: Start, http: httpx.Client) -> None:
    proxy = start()
    with proxy.client() as client:
        assert [model.id for model in client.models.list()] == ["tiny"]
    server.script = says({"data": [1]})
    for method, path in (("POST", "/embeddings"), ("DELETE", "/files/a%2Fb"), ("GET", "/x?y=1")):
        answer = http.request(method, proxy.url + path, content=b"\x00 no JSON")
        assert answer.json() == {"data": [1]}
        seen = server.seen[-1]
        assert (seen.method, seen.raw) == (method, b"\x00 no JSON")
    assert http.post(f"{proxy.url.removesuffix('/v1')}/tokenize", json={}).json() == {"data": [1]}
    assert server.seen[-1].path == "/tokenize"
    climbing = httpx.Request("GET", f"{proxy.url}/%2e%2e/admin")
    assert http.send(climbing).status_code == 404


def test_headers_and_the_callers_key_are_passed_on(server: Upstream, start: Start) -> None:
    with start().client(organization="org-1") as client:
        extra = {"X-Mine": "1", "Connection": "x-hop", "X-Hop": "1"}
        client.chat.completions.create(**chat(), extra_headers=extra)
    headers = server.seen[-1].headers
    assert headers["authorization"] == "Bearer sk-caller"
    assert (headers["openai-organization"], headers["x-mine"]) == ("org-1", "1")
    assert "x-hop" not in headers


def test_a_server_that_does_not_count_is_asked_without_that(
    server: Upstream, start: Start, http: httpx.Client
) -> None:
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response

    async def script(request: Request) -> Response:
        if "stream_options" in await request.json():
            return JSONResponse({"error": {"message": "unknown field stream_options"}}, 400)
        return await streams(*HELLO, DONE)(request)

    server.script = script
    url = f"{start().url}/chat/completions"
    for _ in range(2):
        assert http.post(url, json=chat(stream=True)).content == b"".join((*HELLO, DONE))
    asked = ["stream_options" in seen.body for seen in server.seen]
    assert asked == [True, False, False]  # learnt


def test_what_the_server_refuses_is_passed_on(
    server: Upstream, start: Start, http: httpx.Client
) -> None:
    proxy = start(LEXICAL)
    for status in (400, 401, 404, 422, 429, 500):
        error = {"error": {"message": f"no {status}", "type": "t", "param": None, "code": "c"}}
        server.script = says(error, status, {"retry-after": "7", "x-request-id": "r1"})
        for body in (chat(), chat(stream=True)):
            answer = http.post(f"{proxy.url}/chat/completions", json=body)
            assert (answer.status_code, answer.json()) == (status, error)
            assert answer.headers["retry-after"] == "7"
            assert answer.headers["x-request-id"] == "r1"
            assert "x-should-retry" not in answer.headers
    server.script = says(completion())
    for raw in (b"", b"{", b"[1]", b'{"messages": 3}', b"[" * 100_000):
        assert http.post(f"{proxy.url}/chat/completions", content=raw).status_code == 200
        assert server.seen[-1].raw == raw


def test_n_tools_logprobs_and_other_fields_are_as_the_server_sent_them(
    server: Upstream, start: Start
) -> None:
    call = {"id": "t1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call, {**call, "id": "t2"}]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls", "logprobs": None}
    server.script = says(completion(choices=[choice, {**choice, "index": 1}], extra={"a": [1]}))
    with openai.OpenAI(base_url=server.url, api_key="k") as direct, start().client() as client:
        asked: Any = chat(n=2, tools=[{"type": "function", "function": {"name": "f"}}])
        both = [one.chat.completions.create(**asked) for one in (direct, client)]
    assert both[0] == both[1]
    assert server.seen[0].raw == server.seen[1].raw


def test_usage_that_servers_repeat_is_not_summed(
    server: Upstream, start: Start, http: httpx.Client
) -> None:
    def counted(n: int) -> dict[str, Any]:
        return {"prompt_tokens": 4, "completion_tokens": n, "total_tokens": 4 + n}

    pieces = [event({"content": "a"}, usage=counted(n)) for n in (1, 2, 3)]
    server.script = streams(*pieces, DONE)
    proxy = start()
    answer = http.post(f"{proxy.url}/chat/completions", json=chat(stream=True))
    assert answer.content == b"".join((*pieces, DONE))
    proxy.counts(3, "usage_tokens_total", policy="*", kind="completion")
    proxy.counts(4, "usage_tokens_total", policy="*", kind="prompt")


def test_null_usage_is_taken_out_without_touching_the_text(
    server: Upstream, start: Start, http: httpx.Client
) -> None:
    text = 'he said, "usage": null, twice'
    plain = event({"content": text})
    server.script = streams(event({"content": text}, usage=None), event(usage=USAGE), DONE)
    answer = http.post(f"{start().url}/chat/completions", json=chat(stream=True))
    assert answer.content == plain + DONE
    assert json.loads(answer.content[6:].split(b"\n")[0])["choices"][0]["delta"]["content"] == text


@pytest.mark.parametrize(
    ("base", "path"),
    [
        ("", "/v1/chat/completions"),
        ("/", "/v1/chat/completions"),
        ("/v1", "/v1/chat/completions"),
        ("/v1/", "/v1/chat/completions"),
        ("/api/v3", "/api/v3/chat/completions"),
        ("/openai/v1/chat/completions", "/openai/v1/chat/completions"),
    ],
)
def test_the_servers_address_is_joined_once(
    base: str, path: str, server: Upstream, start: Start, http: httpx.Client
) -> None:
    host = server.url.removesuffix("/v1")
    http.post(start(f'backend = "{host}{base}"\n').url + "/chat/completions", json=chat())
    assert server.seen[-1].path == path
