"""What the openai client gets through the proxy, and directly: the same, for each shape of request.

    headrace serve-engine llama &
    python benchmarks/proxy_shapes.py --url http://127.0.0.1:8080/v1 [--model smollm2]

Each request is made twice, at temperature 0 and without the server's prompt cache: to the server,
and through a proxy in front of it that has no policy. "Same" means equal field by field, but for
ids, times and durations; of a stream, every chunk; of an error, its class, status and body. A
stream's pieces are put together where a server may cut a text differently each time. Errors that a
healthy server does not give (401, 429, 500, ...) come from a server of this file. The last rows ask
headrace for something, and what differs is what was asked for.
"""

from __future__ import annotations

import argparse
import contextlib
import http.server
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import openai
from proxy_sameness import Ask, result

PNG = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9"
    "awAAAABJRU5ErkJggg=="
)
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}
SCHEMA = {
    "type": "json_schema",
    "json_schema": {
        "name": "person",
        "schema": {
            "type": "object",
            "properties": {"name": {"type": "string", "maxLength": 12}},
            "required": ["name"],
            "additionalProperties": False,
        },
    },
}
CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city": "Bern"}'},
}
LONG = " ".join(
    f"Mill {i} on the river was built in {1700 + i} by a careful and rather slow mason named Ann."
    for i in range(25)
)


@dataclass(frozen=True)
class Shape:
    """A request: ``ask`` makes it and returns what is compared."""

    name: str
    ask: Ask


def say(text: str = "Name three rivers.") -> list[dict[str, Any]]:
    """Return a chat of one turn."""
    return [{"role": "user", "content": text}]


def chat(name: str, messages: Any = None, **fields: Any) -> Shape:
    """Make a chat completion, streamed if the fields say so."""

    def ask(client: openai.OpenAI) -> Any:
        asked = {"max_tokens": 8, "temperature": 0, **fields}
        extra = {"cache_prompt": False, **asked.pop("extra_body", {})}
        create: Any = client.chat.completions.create
        said = say() if messages is None else messages
        return create(model=MODEL, messages=said, extra_body=extra, **asked)

    return Shape(name, ask)


def whole(client: openai.OpenAI, path: str) -> Any:
    """Post to a path that the client has no method for."""
    post: Any = client.post
    return post(path, cast_to=object, body={"a": 1})


def leave(client: openai.OpenAI, *, after: int) -> str:
    """Go away after some chunks, and say whether the server then has nothing to do."""
    create: Any = client.chat.completions.create
    messages = say("Count to a thousand in words.")
    with contextlib.suppress(openai.APITimeoutError):
        if after:
            stream = create(model=MODEL, messages=messages, max_tokens=1500, stream=True)
            for _ in zip(range(after), stream, strict=False):
                pass
            stream.close()
        else:
            create(model=MODEL, messages=messages, max_tokens=1500, timeout=1.5)
    with openai.OpenAI(base_url=SERVER, api_key="none") as server:
        for _ in range(60):
            page: Any = server.get(SERVER.removesuffix("/v1") + "/metrics", cast_to=str)
            found = re.search(r"^\S*requests_processing (\d+)", page, re.MULTILINE)
            if found and found[1] == "0":
                return "the server stopped"
            time.sleep(1)
    return "the server went on"


def helper(client: openai.OpenAI) -> Any:
    """Use the client's own stream helper."""
    stream: Any = client.chat.completions.stream
    with stream(
        model=MODEL,
        messages=say(),
        max_tokens=12,
        temperature=0,
        extra_body={"cache_prompt": False},
    ) as events:
        return events.get_final_completion()


def parsed(client: openai.OpenAI) -> Any:
    """Parse into a pydantic model."""
    from pydantic import BaseModel

    class Person(BaseModel):
        name: str

    parse: Any = client.chat.completions.parse
    answer = parse(
        model=MODEL,
        messages=say("A person."),
        response_format=Person,
        max_tokens=40,
        temperature=0,
        extra_body={"cache_prompt": False},
    )
    return answer.choices[0].message.parsed.model_dump()


def completion(**fields: Any) -> Ask:
    """Make a plain completion."""

    def ask(client: openai.OpenAI) -> Any:
        create: Any = client.completions.create
        body = {"prompt": "The longest river is", "max_tokens": 8, "temperature": 0, **fields}
        return create(model=MODEL, extra_body={"cache_prompt": False}, **body)

    return ask


def responses(**fields: Any) -> Ask:
    """Make a request of the responses API."""

    def ask(client: openai.OpenAI) -> Any:
        create: Any = client.responses.create
        body = {"input": "Name a river.", "max_output_tokens": 12, "temperature": 0, **fields}
        return create(model=MODEL, extra_body={"cache_prompt": False}, **body)

    return ask


def shapes() -> list[Shape]:
    """Return every shape that a real server is asked with."""
    image = {"type": "image_url", "image_url": {"url": PNG}}
    audio = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
    parts = [{"type": "text", "text": "Name "}, {"type": "text", "text": "three rivers."}]
    tools: dict[str, Any] = {"tools": [WEATHER], "max_tokens": 40}
    called = [
        *say("Weather in Bern?"),
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": '{"celsius": 21}'},
    ]
    usage = {"stream": True, "stream_options": {"include_usage": True}}
    return [
        chat("plain"),
        chat("stream", stream=True),
        chat("stream, usage asked for", **usage),
        chat("stream, usage declined", stream=True, stream_options={"include_usage": False}),
        Shape("the client's stream helper", helper),
        chat("system prompt", [{"role": "system", "content": "Be brief."}, *say()]),
        chat("several turns", [*say(), {"role": "assistant", "content": "Aare."}, *say("More.")]),
        chat("text in parts", [{"role": "user", "content": parts}]),
        chat("image", [{"role": "user", "content": [*parts, image]}]),
        chat("audio", [{"role": "user", "content": [*parts, audio]}]),
        chat("n = 2", n=2, seed=1),
        chat("n = 2, stream", n=2, seed=1, stream=True),
        chat("logprobs", logprobs=True),
        chat("5 logprobs each, stream", logprobs=True, top_logprobs=5, stream=True),
        chat("JSON object", response_format={"type": "json_object"}),
        chat("JSON schema", say("A person."), response_format=SCHEMA, max_tokens=40),
        chat("JSON schema, stream", say("A person."), response_format=SCHEMA, stream=True),
        Shape("JSON schema, parsed by the client", parsed),
        chat("tools", say("Weather in Bern?"), **tools),
        chat("tools, stream", say("Weather in Bern?"), stream=True, **tools),
        chat("a tool is required", say("Weather in Bern?"), tool_choice="required", **tools),
        chat(
            "a required tool, stream",
            say("Weather in Bern?"),
            tool_choice="required",
            stream=True,
            **tools,
        ),
        chat(
            "parallel tool calls",
            say("Weather in Bern and Basel?"),
            parallel_tool_calls=True,
            tool_choice="required",
            **tools,
        ),
        chat("tool results", called, **tools),
        chat("stop", stop="2"),
        chat("64 stops", stop=[f"never {i}" for i in range(64)]),
        chat("one token", max_tokens=1),
        chat("max_completion_tokens", max_completion_tokens=5),
        chat("seed and temperature", temperature=0.7, seed=7, top_p=0.9),
        chat("penalties", presence_penalty=0.5, frequency_penalty=0.5),
        chat("logit_bias", logit_bias={"100": -100}),
        chat("a field that only this server knows", extra_body={"top_k": 3, "min_p": 0.1}),
        chat("emoji and CJK", say("Repeat: 漢字 🙂 é \u200b")),
        chat("empty message", say("")),
        Shape("completion", completion()),
        Shape("completion, stream", completion(stream=True)),
        Shape("completion, two prompts", completion(prompt=["A river:", "A mill:"])),
        Shape("response", responses()),
        Shape("response, stream", responses(stream=True)),
        Shape("models", lambda client: [model.id for model in client.models.list()]),
        Shape(
            "embeddings, which it has not",
            lambda client: client.embeddings.create(
                model=MODEL, input="a", encoding_format="float"
            ),
        ),
        Shape("a path that is not there", lambda client: whole(client, "/nothing")),
        chat("400: longer than the context", say(LONG * 8)),
        chat("400: a wrong type", max_tokens="many"),
        chat("no messages", []),
        chat("an unknown role", [{"role": "nobody", "content": "Hi"}]),
        chat(
            "400: a broken schema",
            response_format={"type": "json_schema", "json_schema": {"schema": {"type": "nothing"}}},
        ),
        Shape("caller leaves a stream", lambda client: leave(client, after=3)),
        Shape("caller leaves before the first byte", lambda client: leave(client, after=0)),
    ]


class Failing(http.server.BaseHTTPRequestHandler):
    """Answers with the status that stands in the field ``user``."""

    def do_POST(self) -> None:
        """Fail as asked."""
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        status = int(asked["user"])
        error = {"message": f"said {status}", "type": "t", "param": None, "code": "c"}
        body = json.dumps({"error": error}).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.send_header("retry-after", "1")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextlib.contextmanager
def proxy(backend: str) -> Iterator[str]:
    """Run a proxy without a policy."""
    line = [sys.executable, "-m", "headrace.middleware.cli", "serve", "--port", "0", "--quiet"]
    process = subprocess.Popen([*line, "--backend", backend], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        first = process.stderr.readline()
        found = re.search(r"http://\S+/v1", first)
        if found is None:
            raise SystemExit(first)
        yield found[0]
    finally:
        process.terminate()
        process.wait(30)


def compare(shape: Shape, direct: str, through: str) -> bool:
    """Print a row and say whether both are the same."""
    both = []
    for url in (direct, through):
        with openai.OpenAI(base_url=url, api_key="sk-none", max_retries=0, timeout=300) as client:
            both.append(result(shape.ask, client))
    is_same = bool(both[0][0] == both[1][0])
    print(f"| {shape.name} | {both[0][1]} | {both[1][1]} | {'yes' if is_same else '**no**'} |")
    if not is_same:
        sys.stderr.write(f"{shape.name}:\n  {both[0][0]!r:.1500}\n  {both[1][0]!r:.1500}\n")
    return is_same


def asked(url: str) -> None:
    """Show what differs where headrace is asked for something."""
    history = [*say(LONG), {"role": "assistant", "content": "I see."}, *say("Who built mill 7?")]
    with openai.OpenAI(base_url=url, api_key="none", max_retries=0) as client:
        for options in ({"off": True}, {"rate": 0.5, "compressor": "lexical"}):
            create: Any = client.chat.completions.create
            extra = {"headrace": options, "cache_prompt": False}
            answer = create(model=MODEL, messages=history, max_tokens=5, extra_body=extra)
            block = getattr(answer.usage, "headrace", None)
            saved = block["tokens_saved"] if block else 0
            print(f"| `{json.dumps(options)}` | {answer.usage.prompt_tokens} | {saved} |")


def main() -> None:
    """Compare every shape; exit 1 when one differs."""
    global MODEL, SERVER
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", required=True)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--only", default="", help="shapes with this in their name")
    options = parser.parse_args()
    MODEL, SERVER = options.model, options.url
    print("| request | directly | through the proxy | same |\n|---|---|---|---|")
    same: list[bool] = []
    with proxy(SERVER) as through:
        for shape in shapes():
            if options.only in shape.name:
                same.append(compare(shape, SERVER, through))
        failing = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Failing)
        threading.Thread(target=failing.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{failing.server_port}/v1"
        with proxy(base) as other:
            for status in (400, 401, 403, 404, 409, 422, 429, 500, 503):
                for fields in ({}, {"stream": True}):
                    name = f"server says {status}{', stream' if fields else ''}"
                    if options.only in name:
                        same.append(compare(chat(name, user=str(status), **fields), base, other))
        print(f"\n{sum(same)} of {len(same)} the same.\n")
        print("| asked of headrace | prompt tokens | saved, as headrace counts |\n|---|---|---|")
        asked(through)
    sys.exit(0 if all(same) else 1)


MODEL = SERVER = ""

if __name__ == "__main__":
    main()
