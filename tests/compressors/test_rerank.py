from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from headrace.compressors import BM25, BiEncoder, Reranker, make_reranker, rerank
from headrace.compressors.mini import MiniReranker
from headrace.compressors.rerankers import Cascade
from headrace.middleware.errors import HeadraceError, InvalidRequest
from headrace.middleware.types import Document

DOCUMENTS = [
    Document("The canteen serves soup at noon.", id="a", metadata={"page": 3}),
    Document("Annual revenue rose to 12.5 million euros.", id="b"),
    Document("It is in Turin.", title="Location of the headquarters", id="c"),
    Document("東京は日本の首都です。", id="d"),
]


@pytest.fixture(params=["bm25", pytest.param("bi-encoder", marks=pytest.mark.model)])
def reranker(request: pytest.FixtureRequest) -> Reranker:
    return make_reranker(request.param)


def test_the_answer_comes_first_with_id_score_and_metadata(reranker: Reranker) -> None:
    ranked = rerank("How high was the annual revenue?", DOCUMENTS, reranker=reranker)
    assert ranked[0].id == "b"
    assert sorted(d.id or "" for d in ranked) == ["a", "b", "c", "d"]
    scores = [d.score or 0.0 for d in ranked]
    assert scores == sorted(scores, reverse=True)
    assert next(d for d in ranked if d.id == "a").metadata == {"page": 3}
    assert all(d.score is None for d in DOCUMENTS)


def test_titles_count(reranker: Reranker) -> None:
    assert rerank("Where are the headquarters?", DOCUMENTS, reranker=reranker)[0].id == "c"


def test_no_question_word_in_common_keeps_the_order() -> None:
    ranked = rerank("xylophone", DOCUMENTS, reranker=BM25())
    assert [d.id for d in ranked] == ["a", "b", "c", "d"]
    assert [d.score for d in ranked] == [0.0] * 4


def test_bm25_reads_scripts_without_spaces() -> None:
    assert rerank("日本の首都はどこですか", DOCUMENTS, reranker=BM25())[0].id == "d"


def test_top_k_keeps_the_best(reranker: Reranker) -> None:
    assert len(rerank("soup", DOCUMENTS, top_k=2, reranker=reranker)) == 2
    assert len(rerank("soup", DOCUMENTS, top_k=9, reranker=reranker)) == 4


def test_empty_documents_pass(reranker: Reranker) -> None:
    empty = [Document("", id="e"), Document("\ud800 soup", id="f"), Document("", id="g")]
    ranked = rerank("soup", empty, reranker=reranker)
    assert ranked[0].id == "f"
    assert len(ranked) == 3
    assert rerank("soup", [Document("")], reranker=reranker)[0].text == ""
    assert rerank("soup", [], reranker=reranker) == []


@pytest.mark.parametrize("top_k", [0, -1, 1.5, True])
def test_a_top_k_that_makes_no_sense_is_refused(top_k: int) -> None:
    with pytest.raises(InvalidRequest, match="top_k"):
        rerank("soup", DOCUMENTS, top_k=top_k, reranker=BM25())


def test_a_question_is_needed() -> None:
    with pytest.raises(InvalidRequest, match="question"):
        rerank(" ", DOCUMENTS, reranker=BM25())


def test_an_unknown_method_is_said() -> None:
    with pytest.raises(HeadraceError, match="no/such-folder"):
        make_reranker("./no/such-folder")


@pytest.mark.model
def test_auto_takes_the_embedded_model() -> None:
    auto = make_reranker("auto")
    assert auto.name == "bm25 > mini"
    assert auto.score("soup", DOCUMENTS) == MiniReranker().score("soup", DOCUMENTS)


@pytest.mark.model
def test_a_document_without_words_never_ranks_first() -> None:
    documents = [Document(""), Document(" \n"), Document("The river rose.", id="r")]
    ranked = rerank("soup", documents, reranker=BiEncoder())
    assert ranked[0].id == "r"
    assert [d.score for d in ranked[1:]] == [-1.0, -1.0]


class Shortest:
    """Prefers short texts, and counts what it reads."""

    name = "shortest"

    def __init__(self) -> None:
        self.read: list[int] = []

    def score(self, question: str, documents: Sequence[Document]) -> list[float]:
        self.read.append(len(documents))
        return [-float(len(d.text)) for d in documents]


def test_of_many_documents_the_second_reranker_reads_the_best() -> None:
    documents = [Document(f"soup {'is good ' * (i % 7)}", id=str(i)) for i in range(150)]
    documents += [Document(f"rain {i}", id=str(i + 150)) for i in range(150)]
    second = Shortest()
    cascade = Cascade(second)
    scores = cascade.score("soup", documents)
    assert cascade.name == "bm25 > shortest"
    assert second.read == [100]
    order = sorted(range(300), key=lambda i: -scores[i])
    assert documents[order[0]].text == "soup "
    rough = BM25().score("soup", documents)
    rest = [rough[i] for i in order[100:]]
    assert rest == sorted(rest, reverse=True)
    assert scores[order[100]] < scores[order[99]]


def test_few_documents_and_foreign_questions_are_read_whole() -> None:
    second = Shortest()
    cascade = Cascade(second)
    few = [Document(f"soup {i}") for i in range(200)]
    assert cascade.score("soup", few) == Shortest().score("soup", few)
    assert cascade.score("Suppe", few * 2) == Shortest().score("", few * 2)
    assert second.read == [200, 400]


def test_a_mistyped_method_is_told_the_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(HeadraceError, match="no method 'bm52': choose auto, bm25, bi-encoder"):
        make_reranker("bm52")


@pytest.mark.model
def test_the_end_of_a_long_document_is_read() -> None:
    filler = "The weather was mild and the garden was full of birds. " * 120
    long = Document(f"{filler} The launch code of the rocket is 7-4-1.", id="long")
    other = Document(filler, id="other")
    ranked = rerank("What is the launch code of the rocket?", [other, long], reranker=BiEncoder())
    assert ranked[0].id == "long"
    assert (ranked[0].score or 0) > 0.4


@pytest.mark.model
def test_threads_get_the_same_scores() -> None:
    encoder = BiEncoder()
    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda _: encoder.score("soup", DOCUMENTS), range(6)))
    assert all(row == pytest.approx(rows[0], abs=1e-5) for row in rows)


def test_bm25_as_a_share_is_comparable_and_bounded() -> None:
    shares = BM25().share("who bought the red car", DOCUMENTS)
    assert all(0.0 <= share <= 1.0 for share in shares)
    bought = [*DOCUMENTS, Document("Ann bought the red car.")]
    assert BM25().share("who bought the red car", bought)[-1] > max(shares)
    assert BM25().share("", bought) == BM25().share("?", bought) == [0.0] * 5
