from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any, ClassVar

import pytest

from headrace.compressors import Budget, Compressor, make_counter, split
from headrace.compressors.perplexity import Perplexity, RemotePerplexity
from headrace.compressors.perplexity.alignment import aligned
from headrace.middleware.errors import BackendError, InvalidRequest

model = pytest.mark.model

TEXTS = [
    "The committee met on 12 May 2021 to talk about the old bridge over the river.",
    "Costs rise to 1,234.56 EUR, which nobody had expected when the work began.",
    "It rained 🚀🚀 in 東京, all day long.",
]


class Completions(BaseHTTPRequestHandler):
    """vLLM's /v1/completions with SmolLM2's real log-probabilities."""

    seen: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.seen.append({**body, "path": self.path, "key": self.headers.get("Authorization")})
        choices = [self.choice(at, prompt, body) for at, prompt in enumerate(body["prompt"])]
        answer = {"object": "text_completion", "model": body["model"], "choices": choices[::-1]}
        self.reply(200, answer)

    def choice(self, index: int, prompt: Any, body: dict[str, Any]) -> dict[str, Any]:
        import torch

        loaded = Perplexity()._loaded()  # pyright: ignore[reportPrivateUsage]
        ids = loaded.ids(prompt) if isinstance(prompt, str) else prompt
        with torch.inference_mode():
            own = loaded.model(torch.tensor([ids])).logits[0].log_softmax(-1)
        generated = int(own[-1].argmax())
        ids = [*ids, generated]
        values = [None, *own.gather(1, torch.tensor(ids[1:])[:, None])[:, 0].tolist()]
        tokens = [loaded.tokenizer.decode([token], skip_special_tokens=False) for token in ids]
        choice: dict[str, Any] = {"index": index, "text": tokens[-1], "finish_reason": "length"}
        if "prompt_logprobs" in body:
            choice["prompt_logprobs"] = [None] + [
                {str(i): {"logprob": value, "rank": 1, "decoded_token": token}}
                for i, value, token in list(zip(ids, values, tokens, strict=True))[1:-1]
            ]
        if body.get("echo"):
            choice["logprobs"] = {"tokens": tokens, "token_logprobs": values}
        return choice

    def reply(self, status: int, answer: Any) -> None:
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def answering(status: int, answer: Any, seconds: float = 0.0) -> type[Completions]:
    class Fixed(Completions):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            time.sleep(seconds)
            self.reply(status, answer)

    return Fixed


@contextmanager
def served(handler: type[Completions]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def asking(url: str, **options: Any) -> RemotePerplexity:
    return RemotePerplexity(url, "smollm2", timeout=600.0, **options)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    Perplexity()._loaded()  # pyright: ignore[reportPrivateUsage]
    with served(Completions) as base:
        yield base


@model
@pytest.mark.parametrize("ask", ["prompt_logprobs", "echo"])
@pytest.mark.parametrize("method", ["self-information", "selective-context"])
def test_scores_are_those_of_the_model_in_this_process(url: str, ask: Any, method: Any) -> None:
    units = [split(text) for text in TEXTS]
    remote = asking(url, method=method, ask=ask, tokenizer="smollm2")
    own: Any = "selective-context" if method == "selective-context" else "llmlingua"
    local = Perplexity(method=own, rate=1.0, scale="nats")
    for mine, theirs in zip(remote.score(units), local.score(units), strict=True):
        assert mine == pytest.approx(theirs, abs=1e-4)


@model
@pytest.mark.parametrize("ask", ["prompt_logprobs", "echo"])
def test_text_is_matched_to_the_engines_tokens(url: str, ask: Any) -> None:
    units = [split(text) for text in TEXTS]
    by_text = asking(url, ask=ask).score(units)
    with_start = asking(url, ask=ask, tokenizer="smollm2").score(units)
    for mine, theirs in zip(by_text, with_start, strict=True):
        assert len(mine) == len(theirs)
        # Without the first special token the first words are read without context.
        assert sum(abs(a - b) < 0.15 for a, b in zip(mine, theirs, strict=True)) > 0.7 * len(mine)


@model
def test_requests_are_batched_and_carry_the_key(url: str) -> None:
    Completions.seen.clear()
    scorer = asking(url, api_key="k", batch_size=2)
    scorer.score([split(text) for text in TEXTS])
    assert [len(body["prompt"]) for body in Completions.seen] == [2, 1]
    assert {body["path"] for body in Completions.seen} == {"/v1/completions"}
    assert {body["key"] for body in Completions.seen} == {"Bearer k"}
    assert "'k'" not in repr(scorer)


@model
def test_a_long_text_is_read_in_windows_with_context(url: str) -> None:
    Completions.seen.clear()
    text = " ".join(TEXTS * 3)
    scorer = asking(url, window=200, overlap=60)
    [row] = scorer.score([split(text)])
    prompts = [prompt for body in Completions.seen for prompt in body["prompt"]]
    assert len(prompts) == 4
    assert all(len(prompt) <= 200 and prompt in text for prompt in prompts)
    assert all(prompt[:20] in before for before, prompt in pairwise(prompts))
    [result] = Compressor(scorer, make_counter("smollm2")).compress([text], Budget(rate=0.5))
    assert 0.4 < result.rate <= 0.5
    assert len(row) == len(split(text).units)


@model
def test_odd_texts_need_no_request_or_get_a_score(url: str) -> None:
    scorer = asking(url)
    rows = scorer.score([split(text) for text in ("", " \n", "Hello", "🚀✅", "\ud800")])
    assert [len(row) for row in rows] == [0, 0, 1, 2, 1]
    assert all(0 <= score <= 1 for row in rows for score in row)


@pytest.mark.parametrize(
    ("status", "answer", "said"),
    [
        (400, {"error": {"message": "Only no echo is supported"}}, "llama.cpp's server"),
        (200, {"choices": [{"index": 0, "text": "x", "logprobs": None}]}, "no log-probabilities"),
        (200, {"choices": [{"index": 0, "prompt_logprobs": [None, 7]}]}, "unknown form"),
        (200, b"<html>nginx</html>", "ends in /v1"),
        (200, {"choices": []}, "0 answers to 1"),
        (401, {"error": {"message": "bad key s3cret"}}, r"401.*bad key \*\*\*"),
    ],
)
def test_what_an_engine_cannot_do_is_said_in_one_line(status: int, answer: Any, said: str) -> None:
    with (
        served(answering(status, answer)) as base,
        pytest.raises(BackendError, match=said) as error,
    ):
        RemotePerplexity(base, "m", api_key="s3cret").score([split("some words")])
    assert "\n" not in str(error.value)
    assert not error.value.retryable


def test_a_silent_engine_and_a_closed_port_are_said() -> None:
    with served(answering(200, {}, seconds=0.5)) as base:
        scorer = RemotePerplexity(base, "m", timeout=0.05)
        with pytest.raises(BackendError, match=r"within 0.05 s") as error:
            scorer.score([split("some words")])
    assert error.value.retryable
    with pytest.raises(BackendError, match="cannot reach"):
        replace(scorer, timeout=5.0).score([split("some words")])


@pytest.mark.parametrize(
    ("text", "tokens", "expected"),
    [
        ("the old", ["<s>", "▁the", "▁old"], [(0, 0), (0, 3), (3, 7)]),
        ("the old", ["the", "Ġold", "."], [(0, 3), (3, 7), (0, 0)]),
        ("a\nb", ["a", "Ċ", "b"], [(0, 1), (1, 2), (2, 3)]),
        ("x 東京", ["x", " \ufffd", "\ufffd", "\ufffd", "\ufffd"], [(0, 1)] + [(1, 4)] * 4),
        ("é!", ["<0xC3>", "<0xA9>", "!"], [(0, 1), (0, 1), (1, 2)]),
        ("é!", ["bytes:\\xc3", "bytes:\\xa9", "!"], [(0, 1), (0, 1), (1, 2)]),
        ("a\ufffdb", ["a", "\ufffd", "b"], [(0, 1), (1, 2), (2, 3)]),
        ("<s>x", ["<s>", "x"], [(0, 3), (3, 4)]),
        ("Costs rise", ["", "s", " rise"], [(0, 4), (4, 5), (5, 10)]),
    ],
)
def test_tokens_are_found_in_the_text(
    text: str, tokens: list[str], expected: list[tuple[int, int]]
) -> None:
    assert aligned(text, tokens) == expected


def test_tokens_of_another_text_are_refused() -> None:
    with pytest.raises(BackendError, match="tokenizer="):
        aligned("the old bridge", ["the", " new", " bridge"])


@pytest.mark.parametrize(
    "options",
    [{"base_url": "localhost"}, {"ask": "nicely"}, {"overlap": 9000}, {"batch_size": 0}],
)
def test_options_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match=str(next(iter(options.values())))):
        RemotePerplexity(**{"base_url": "http://h/v1", "model": "m", **options})
