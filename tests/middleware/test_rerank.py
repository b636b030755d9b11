from __future__ import annotations

import pytest

from headrace import Document, InvalidRequest, Request, Rerank

DOCUMENTS = (
    Document("The weather was fine.", id="w", metadata={"page": 1}),
    Document("A runner stone weighs 1,200 kilograms.", id="s", metadata={"page": 2}),
    Document("A runner stone weighs 1,200 kilograms.", id="copy"),
)
QUESTION = "How heavy is a runner stone?"


async def test_the_best_come_first_and_keep_what_they_carry() -> None:
    request = Request.of(QUESTION, documents=DOCUMENTS)
    after = await Rerank(top_k=1, method="bm25").transform(request)
    (best,) = after.documents
    assert (best.id, best.metadata) == ("s", {"page": 2})
    assert best.score is not None
    assert after.messages == request.messages


async def test_copies_are_dropped_and_counted() -> None:
    after = await Rerank(method="bm25").transform(Request.of(QUESTION, documents=DOCUMENTS))
    assert [d.id for d in after.documents] == ["s", "w"]
    assert "1 of them copies" in after.report.stages[-1].decision


async def test_copies_do_not_change_the_order_of_equals() -> None:
    documents = tuple(Document(text) for text in ("alpha", "beta", "alpha"))
    after = await Rerank(method="bm25").transform(Request.of("gamma?", documents=documents))
    assert [d.text for d in after.documents] == ["alpha", "beta"]


async def test_without_documents_nothing_happens() -> None:
    after = await Rerank(method="bm25").transform(Request.of(QUESTION))
    assert after.report.stages[-1].decision == "no documents to rank"


async def test_a_wrong_top_k_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="-1"):
        await Rerank(-1, "bm25").transform(Request.of(QUESTION, documents=DOCUMENTS))
