"""Requests that are compressed and ranked at the same time: common forward passes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from engine import Reply, SimulatedEngine

from headrace import Compress, Document, Pipeline, Request, Rerank
from headrace.compressors import (
    Compressor,
    CrossEncoder,
    TokenClassifier,
    make_counter,
    make_scorer,
)
from headrace.compressors.gathering import Gatherer
from headrace.compressors.mini import MiniReranker
from headrace.compressors.mini import engine as mini
from headrace.compressors.rerankers import BiEncoder, Reranker
from headrace.middleware.models import resolve

TOPICS = {
    "canal": "The canal was dug by hand in 1832 and carried coal for {n} years until trains came.",
    "castle": "The castle has {n} rooms, most of them empty since the duke sold all he had.",
    "choir": "A choir of {n} children sang in the square before the mayor opened the new bridge.",
    "comet": "The comet comes back every {n} years, and its tail is longest in the month of March.",
}
TEXTS = [
    " ".join(line.format(n=7 * i + k) for k, line in enumerate([*TOPICS.values()][: 1 + i % 4]))
    for i in range(12)
]


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(
        _checkpoint(tmp_path_factory.mktemp("m") / "tokens", "BertForTokenClassification", 2)
    )


@pytest.fixture(scope="module")
def ranker(tmp_path_factory: pytest.TempPathFactory) -> str:
    name = "BertForSequenceClassification"
    return str(_checkpoint(tmp_path_factory.mktemp("m") / "pairs", name, 1))


def _checkpoint(folder: Path, kind: str, labels: int) -> Path:
    """MiniLM's encoder with a head whose weights are drawn once."""
    import torch
    import transformers

    source = str(resolve("minilm"))
    loaded: Any = getattr(transformers, kind).from_pretrained(source, num_labels=labels)
    generator = torch.Generator().manual_seed(7)
    loaded.classifier.weight.data = torch.randn(labels, 384, generator=generator)
    loaded.save_pretrained(folder)
    cast("Any", transformers.AutoTokenizer).from_pretrained(source).save_pretrained(folder)
    return folder


def _request(text: str) -> Request:
    return Request.of("Who dug the canal, and when?", documents=(Document(text, id="1"),))


def _many(text: str) -> Request:
    documents = [Document(line.format(n=len(text)), id=name) for name, line in TOPICS.items()]
    documents.append(Document(text, id="long"))
    return Request.of("Who sang in the square?", documents=tuple(documents))


async def _together(stage: Any, requests: Sequence[Request]) -> list[Request]:
    return list(await asyncio.gather(*(stage.transform(request) for request in requests)))


def _seen(requests: Sequence[Request]) -> list[list[tuple[str | None, str]]]:
    return [[(d.id, d.text) for d in request.documents] for request in requests]


@pytest.mark.model
@pytest.mark.parametrize("name", ["mini", "classifier", "sentences"])
async def test_what_is_kept_of_a_text_does_not_depend_on_who_else_asks(
    name: str, classifier: str
) -> None:
    named = classifier if name == "classifier" else name
    requests = [_request(text) for text in TEXTS]
    stage = _fresh(named)
    alone = [await stage.transform(request) for request in requests]
    together = await _together(_fresh(named), requests)
    assert _seen(together) == _seen(alone)
    assert _seen(alone) != _seen(requests)


def _fresh(name: str) -> Compress:
    """Return a stage whose scorer remembers nothing."""
    mini._shared.cache_clear()  # pyright: ignore[reportPrivateUsage]
    stage = Compress(rate=0.5)
    stage.__dict__["engine"] = Compressor(make_scorer(name), make_counter(None))
    return stage


@pytest.mark.model
@pytest.mark.parametrize("kind", ["mini", "bi-encoder", "cross-encoder"])
async def test_the_order_of_documents_does_not_depend_on_who_else_asks(
    kind: str, ranker: str
) -> None:
    makers: dict[str, Callable[[], Reranker]] = {
        "mini": MiniReranker,
        "bi-encoder": BiEncoder,
        "cross-encoder": lambda: CrossEncoder(ranker),
    }
    alone, together = Rerank(top_k=3), Rerank(top_k=3)
    alone.__dict__["reranker"], together.__dict__["reranker"] = makers[kind](), makers[kind]()
    requests = [_many(text) for text in TEXTS]
    expected = [await alone.transform(request) for request in requests]
    mini._shared.cache_clear()  # pyright: ignore[reportPrivateUsage]
    found = await _together(together, requests)
    assert _seen(found) == _seen(expected)
    for one, other in zip(found, expected, strict=True):
        scores = [d.score for d in one.documents]
        assert scores == pytest.approx([d.score for d in other.documents], abs=1e-4)


@pytest.mark.model
async def test_requests_share_forward_passes(classifier: str) -> None:
    stage = Compress(rate=0.5, compressor=classifier)
    scorer = stage.engine.scorer
    assert isinstance(scorer, TokenClassifier)
    gather = scorer.load().gather
    with Pipeline([stage], SimulatedEngine(lambda _: Reply("So."))) as pipeline:
        answers = pipeline.map_sync([_request(text) for text in TEXTS])
    assert len(answers) == len(TEXTS)
    assert gather.num_passes <= len(TEXTS) // 2 + 1
    before = gather.num_passes
    for text in TEXTS[:4]:
        await stage.transform(_request(f"{text} Again."))
    assert gather.num_passes == before + 4


class Held:
    """A scorer whose passes wait for ``open``, and that cannot read "bad"."""

    name = "held"

    def __init__(self) -> None:
        self.open = threading.Event()
        self.passes: list[list[str]] = []
        self.gather = Gatherer[str, list[float]](self._run, width=len)

    def _run(self, texts: list[str]) -> list[list[float]]:
        self.passes.append(texts)
        assert self.open.wait(60)
        if any("bad" in text for text in texts):
            raise RuntimeError("cannot read it")
        return [[0.5] * 1000 for _ in texts]

    def score(self, texts: Sequence[Any], question: str | None = None) -> list[list[float]]:
        with self.gather.attend():
            rows = self.gather([units.text for units in texts])
        return [row[: len(units.units)] for units, row in zip(texts, rows, strict=True)]


@pytest.fixture
def held() -> Iterator[tuple[Held, Compress]]:
    scorer, stage = Held(), Compress(rate=0.5)
    stage.__dict__["engine"] = Compressor(scorer, make_counter(None))
    yield scorer, stage
    scorer.open.set()


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - threads set no asyncio.Event
            await asyncio.sleep(0.001)


async def test_a_text_that_cannot_be_read_fails_its_own_request_only(
    held: tuple[Held, Compress],
) -> None:
    scorer, stage = held
    first = asyncio.create_task(stage.transform(_request("first text")))
    await _until(lambda: len(scorer.passes) == 1)
    texts = ["good one", "bad one", "good two"]
    rest = [asyncio.create_task(stage.transform(_request(text))) for text in texts]
    await _until(lambda: scorer.gather.num_waiting == 3)
    scorer.open.set()
    results = await asyncio.gather(first, *rest, return_exceptions=True)
    assert [isinstance(result, RuntimeError) for result in results] == [False, False, True, False]
    assert sorted(scorer.passes[1]) == sorted(texts)


async def test_a_request_that_is_cancelled_leaves_the_others_and_is_not_read(
    held: tuple[Held, Compress],
) -> None:
    scorer, stage = held
    tasks = [asyncio.create_task(stage.transform(_request("first text")))]
    await _until(lambda: len(scorer.passes) == 1)
    tasks += [asyncio.create_task(stage.transform(_request(f"text {i}"))) for i in range(3)]
    await _until(lambda: scorer.gather.num_waiting == 3)
    tasks[0].cancel()  # its thread runs the pass
    tasks[2].cancel()
    await asyncio.gather(tasks[0], tasks[2], return_exceptions=True)
    scorer.open.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    gone = [isinstance(result, asyncio.CancelledError) for result in results]
    assert gone == [True, False, True, False]
    assert sorted(scorer.passes[1]) == ["text 0", "text 2"]


async def test_more_requests_than_processors_meet_in_one_pass(held: tuple[Held, Compress]) -> None:
    scorer, stage = held
    first = asyncio.create_task(stage.transform(_request("first text")))
    await _until(lambda: len(scorer.passes) == 1)
    rest = [asyncio.create_task(stage.transform(_request(f"text {i}"))) for i in range(40)]
    await _until(lambda: scorer.gather.num_waiting == 40)
    scorer.open.set()
    await asyncio.gather(first, *rest)
    assert [len(texts) for texts in scorer.passes] == [1, 40]
