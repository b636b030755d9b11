"""Two replicas of a pipeline behind one OpenAI-compatible address, with Ray Serve.

Each replica compresses the prompt and sends it on: to the server of OPENAI_BASE_URL, or, without
one, to the embedded model in its own process. This script starts Serve, asks one question through
the official client and stops. To keep it up: serve run examples.ray_serve:app

Needs: pip install 'headrace[ray,server]'
"""

import json
import logging
import os
import time
from collections.abc import AsyncIterator
from typing import Any, cast

import ray
from openai import OpenAI
from ray import serve
from starlette.requests import Request as HTTPRequest
from starlette.responses import JSONResponse, Response, StreamingResponse

from headrace import Compress, HeadraceError, InvalidRequest, Message, Pipeline, Request, Sampling
from headrace.backends import make_backend
from headrace.middleware.types import Finished, TextDelta

MODEL = "headrace"


@serve.deployment(num_replicas=2, max_ongoing_requests=64, ray_actor_options={"num_cpus": 0.5})
class Gateway:
    """One replica: stages, dispatcher and engine. Serve spreads the requests over them."""

    def __init__(self, engine: str | None) -> None:
        stages = [Compress(0.6, compressor="lexical", last_user="context")]
        self._pipeline = Pipeline(stages, make_backend(engine))

    async def __call__(self, http: HTTPRequest) -> Response:
        """Answer /v1/models and /v1/chat/completions; anything else is not found."""
        if http.url.path == "/v1/models":
            return JSONResponse({"object": "list", "data": [{"id": MODEL, "object": "model"}]})
        if http.url.path != "/v1/chat/completions":
            return failed(404, f"no {http.url.path} here; ask /v1/chat/completions")
        try:
            body = await http.json()
            request = asked(body)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return failed(400, f"the body is no chat request: {error}")
        if body.get("stream"):
            return StreamingResponse(self._stream(request), media_type="text/event-stream")
        try:
            answer = await self._pipeline.run(request)
        except HeadraceError as error:
            return failed(400 if isinstance(error, InvalidRequest) else 502, str(error))
        message = {"role": "assistant", "content": answer.text}
        choice = {"index": 0, "message": message, "finish_reason": answer.finish_reason}
        used = answer.usage
        return JSONResponse(
            {
                "id": f"chatcmpl-{time.time_ns()}",
                "object": "chat.completion",
                "created": int(time.time()),
                "model": MODEL,
                "choices": [choice],
                "usage": {
                    "prompt_tokens": used.prompt_tokens,
                    "completion_tokens": used.completion_tokens,
                    "total_tokens": used.prompt_tokens + used.completion_tokens,
                },
            },
            headers={"x-headrace-tokens-saved": str(answer.report.to_dict()["tokens_saved"])},
        )

    async def _stream(self, request: Request) -> AsyncIterator[str]:
        try:
            async for event in self._pipeline.stream(request):
                if isinstance(event, TextDelta):
                    yield chunk({"content": event.text})
                elif isinstance(event, Finished):
                    yield chunk({}, event.response.finish_reason)
        except HeadraceError as error:
            yield f"data: {json.dumps({'error': {'message': str(error)}})}\n\n"
        yield "data: [DONE]\n\n"


def asked(body: dict[str, Any]) -> Request:
    """Return the request that a chat completion's body asks."""
    names = ("max_tokens", "temperature", "top_p", "seed")
    sampling = Sampling(**{name: body[name] for name in names if body.get(name) is not None})
    messages = tuple(Message.from_dict(message) for message in body["messages"])
    return Request(messages, sampling=sampling)


def chunk(delta: dict[str, str], finish_reason: str | None = None) -> str:
    """Return one event of a streamed answer."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    fields = {"id": "chatcmpl-stream", "object": "chat.completion.chunk", "model": MODEL}
    return f"data: {json.dumps({**fields, 'created': int(time.time()), 'choices': [choice]})}\n\n"


def failed(status: int, message: str) -> Response:
    """Return an error as OpenAI's clients read it."""
    return JSONResponse({"error": {"message": message, "type": "headrace"}}, status)


app = cast(Any, Gateway).bind(os.environ.get("OPENAI_BASE_URL"))


def main() -> None:
    """Start Serve on a free-standing port, ask, and stop."""
    port = int(os.environ.get("PORT", "8123"))
    os.environ.setdefault("RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S", "60")  # on a busy machine
    os.environ.setdefault("RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S", "60")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    serve.run(app)
    client = OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none")
    log = "\n".join(
        f"2024-05-0{d} worker {d} finished job {d * 17}, no errors" for d in range(1, 9)
    )
    text = f"{log}\n2024-05-09 worker 9 failed job 153: disk full\n\nWhich job failed?"
    messages: Any = [{"role": "user", "content": text}]
    whole = client.chat.completions.with_raw_response.create(
        model=MODEL, messages=messages, max_tokens=20
    )
    print("saved", whole.headers["x-headrace-tokens-saved"], "prompt tokens")
    print("whole:", whole.parse().choices[0].message.content)
    stream = client.chat.completions.create(
        model=MODEL, messages=messages, max_tokens=20, stream=True
    )
    print("streamed:", "".join(part.choices[0].delta.content or "" for part in stream))
    print("replicas:", serve.status().applications["default"].deployments["Gateway"].replica_states)
    cast(Any, serve).shutdown()
    ray.shutdown()


if __name__ == "__main__":
    main()
