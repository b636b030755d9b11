"""Prompt tokens that a real engine reads when prompts share a beginning, by the order they go in.

    python benchmarks/dispatch_prefix.py --data DIR [--engines process,llama] [--documents 8]
        [--come mixed,sorted] [--orders "as they come,default"]

DIR holds SQuAD. Five questions to each of several documents of about 400 words are given to the
dispatcher at once: mixed, one document after the other in turn, so that neighbours never share a
document, or sorted by document. "read" is what the engine computed of the prompts: for llama-server
by its own ``/metrics``, in this process by the usage of the answers. Each row has a fresh engine.
"least" is every document and every question once.

- as they come: ``Order(shared_prefix=None)``
- next to each other: ``Order(leader=False)``
- with a leader: ``Order(leader=True)``
- default: ``Order()``, which goes by what the engine says of its cache
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import re
import time
import urllib.request
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from headrace import Dispatcher, Message, Request, Sampling
from headrace.backends import Backend, OpenAIBackend, TransformersBackend
from headrace.backends.engines import running
from headrace.compressors import make_counter
from headrace.compressors.training.sources import squad
from headrace.middleware.queueing import Order
from headrace.middleware.types import Finished, Response

QUESTIONS, WORDS, SLOTS = 5, 400, 4
ORDERS = {
    "as they come": Order(shared_prefix=None),
    "next to each other": Order(leader=False),
    "with a leader": Order(leader=True),
    "default": Order(),
}


def prompts(folder: Path, number: int) -> list[list[Request]]:
    """Return the questions of each document."""
    made: list[list[Request]] = []
    for article in squad(folder, "test"):
        words = " ".join(article.paragraphs).split()[:WORDS]
        asked = [asked.question for asked in article.asked][:QUESTIONS]
        if len(words) == WORDS and len(asked) == QUESTIONS and len(made) < number:
            document = Message.system(" ".join(words))
            made.append(
                [
                    Request((document, Message.user(text)), sampling=Sampling(max_tokens=8))
                    for text in asked
                ]
            )
    return made


@contextmanager
def engine(name: str) -> Generator[tuple[Backend, str]]:
    """Yield a fresh engine, and where its metrics are."""
    if name == "process":
        yield TransformersBackend("smollm2", max_batch=SLOTS), ""
        return
    with running(name, slots=SLOTS) as url:
        yield OpenAIBackend(url, max_concurrency=SLOTS), f"{url.removesuffix('/v1')}/metrics"


def metered(url: str) -> int:
    """Return how many prompt tokens a llama-server has computed."""
    with urllib.request.urlopen(url) as page:
        found = re.search(r"^llamacpp:prompt_tokens_total (\d+)", page.read().decode(), re.M)
    return int(found[1]) if found else 0


async def answers(backend: Backend, order: Order, asked: Sequence[Request]) -> list[Response]:
    """Give everything to a dispatcher at once."""
    dispatcher = Dispatcher(backend, order=order, coalesce=False)

    async def one(request: Request) -> Response:
        async for event in dispatcher(request):
            if isinstance(event, Finished):
                return event.response
        raise SystemExit("an answer had no end")

    try:
        return await asyncio.gather(*map(one, asked))
    finally:
        await dispatcher.close()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--engines", default="process,llama")
    parser.add_argument("--documents", type=int, default=8)
    parser.add_argument("--come", default="mixed,sorted")
    parser.add_argument("--orders", default=",".join(ORDERS))
    options = parser.parse_args()
    by_document = prompts(options.data, options.documents)
    come = {
        "mixed": [request for group in zip(*by_document, strict=True) for request in group],
        "sorted": [request for group in by_document for request in group],
    }
    asked = come["mixed"]
    count = make_counter("smollm2").count
    least = sum(count(group[0].messages[0].text) for group in by_document) + sum(
        count(request.messages[1].text) for request in asked
    )
    print(f"{len(asked)} requests, {len(by_document)} documents, {SLOTS} rows; least {least:,}\n")
    print("| engine | they come | order | prompt tokens | read | seconds |")
    print("|---|---|---|---|---|---|")
    for name, how, order in itertools.product(
        options.engines.split(","), options.come.split(","), options.orders.split(",")
    ):
        with engine(name) as (backend, metrics):
            before = metered(metrics) if metrics else 0
            started = time.perf_counter()
            found = asyncio.run(answers(backend, ORDERS[order], come[how]))
            seconds = time.perf_counter() - started
            sent = sum(response.usage.prompt_tokens for response in found)
            read = sent - sum(response.usage.cached_tokens for response in found)
            if metrics:
                read = metered(metrics) - before
        print(f"| {name} | {how} | {order} | {sent:,} | {read:,} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
