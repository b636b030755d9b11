"""Rankings fused, documents made diverse, near copies found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compressors import BM25
from headrace.compressors.rerankers.diversity import diversify, likeness, originals
from headrace.compressors.rerankers.fusion import Fusion, fuse
from headrace.middleware.errors import InvalidRequest
from headrace.middleware.types import Document

MILL = "The mill stands on the river Saale and was built in 1742 by Anna Weber, a baker's daughter."
SCORES = st.lists(st.floats(-10, 10), max_size=12)


def test_fusion_is_the_sum_of_reciprocal_ranks() -> None:
    assert fuse([[0.9, 0.1], [5.0, 7.0], [2.0, 1.0]]) == [
        pytest.approx(1 / 61 + 1 / 62 + 1 / 61),
        pytest.approx(1 / 62 + 1 / 61 + 1 / 62),
    ]


@given(SCORES)
def test_fusing_a_ranking_with_itself_keeps_its_order(scores: list[float]) -> None:
    fused = fuse([scores, scores])
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    assert order == sorted(range(len(scores)), key=lambda i: -fused[i])


def test_fused_rerankers_are_a_reranker() -> None:
    fused = Fusion((BM25(), BM25(k1=0.5)))
    documents = [Document("Soup."), Document(MILL), Document("A mill.")]
    scores = fused.score("Who built the mill?", documents)
    assert max(range(3), key=scores.__getitem__) == 1
    assert fused.name == "bm25 + bm25"


@given(SCORES, st.floats(0, 1))
def test_diverse_documents_are_all_documents(scores: list[float], balance: float) -> None:
    same = [[1.0] * len(scores) for _ in scores]
    order = diversify(scores, same, balance=balance)
    assert sorted(order) == list(range(len(scores)))


def test_the_second_document_is_unlike_the_first() -> None:
    texts = [MILL, MILL + " It is old.", "The canteen serves soup."]
    assert diversify([1.0, 0.9, 0.8], likeness(texts), balance=0.5)[:2] == [0, 2]
    assert diversify([1.0, 0.9, 0.5], likeness(texts), balance=1.0) == [0, 1, 2]
    assert diversify([1.0, 0.9, 0.5], likeness(texts), top_k=1) == [0]


def test_near_copies_name_the_first_of_them() -> None:
    texts = [MILL, "Soup.", MILL.upper(), MILL + " Really.", MILL.replace("1742", "1743"), "soup."]
    assert originals(texts) == [0, 1, 0, 0, 4, 1]
    assert originals(["", " ", "東京は日本の首都です。", "東京は日本の首都です。"]) == [0, 0, 2, 2]


@given(st.lists(st.text(max_size=30), max_size=8))
def test_an_original_is_its_own_original(texts: list[str]) -> None:
    found = originals(texts)
    assert all(found[i] == i for i in found)
    assert all(first <= i for i, first in enumerate(found))


def test_nonsense_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="one score a document each"):
        fuse([[1.0], [1.0, 2.0]])
    with pytest.raises(InvalidRequest, match="k must be a whole number from 0 on, got -1"):
        fuse([[1.0]], k=-1)
    with pytest.raises(InvalidRequest, match="at least one reranker"):
        Fusion(())
    with pytest.raises(InvalidRequest, match=r"balance must be in \[0, 1\], got 2"):
        diversify([1.0], [[1.0]], balance=2)
    with pytest.raises(InvalidRequest, match="2 rows of 2 numbers"):
        diversify([1.0, 2.0], [[1.0]])
