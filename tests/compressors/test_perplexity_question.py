from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from headrace.compressors import Budget, Compressor, make_counter, rerank, split
from headrace.compressors.perplexity import Perplexity, QuestionPerplexity
from headrace.compressors.perplexity.relevance import STATEMENT, relevances
from headrace.compressors.perplexity.surprise import Pace, surprises
from headrace.compressors.rerankers.perplexity import QuestionPerplexityReranker
from headrace.middleware.errors import InvalidRequest
from headrace.middleware.types import Document

if TYPE_CHECKING:
    from headrace.compressors.perplexity.model import CausalModel

pytestmark = pytest.mark.model

QUESTION = "Which bird is the national emblem of Kiribati?"
DOCUMENTS = [
    "Steam turbines turn heat into motion. They were built by Parsons in 1884 and drive ships.",
    "The national emblem of Kiribati is the frigatebird, a bird that flies over the rising sun.",
    "Bread is made of flour, water, salt and yeast, and it has to rest before it is baked.",
]
SOURCE = '''
def mean(values: list[float]) -> float:
    """Return the mean; raises ValueError when there is nothing."""
    if not values:
        raise ValueError("no values")
    return sum(values) / len(values)  # <s> not a token
'''


@pytest.fixture(scope="module")
def loaded() -> CausalModel:
    return QuestionPerplexity()._loaded()  # pyright: ignore[reportPrivateUsage]


def test_the_document_that_answers_is_first() -> None:
    documents = [Document(text, id=str(i)) for i, text in enumerate(DOCUMENTS)]
    ranked = rerank(QUESTION, documents, reranker=QuestionPerplexityReranker())
    assert ranked[0].id == "1"
    assert all(document.score is not None and document.score < 0 for document in ranked)


def test_relevance_is_the_models_own_probability_of_the_question(loaded: CausalModel) -> None:
    import torch

    found = relevances(loaded, QUESTION, DOCUMENTS, 512, 1024)
    asked = loaded.ids(f"\n\n{QUESTION}{STATEMENT}")
    for text, score in zip(DOCUMENTS, found, strict=True):
        ids = [*loaded.start, *loaded.ids(text), *asked]
        with torch.inference_mode():
            logits = loaded.model(torch.tensor([ids])).logits[0]
        place = slice(len(ids) - len(asked) - 1, -1)
        own = logits[place].log_softmax(-1).gather(1, torch.tensor(asked)[:, None])
        assert score == pytest.approx(float(own.mean()), abs=1e-3)


def test_a_long_document_counts_by_its_best_window(loaded: CausalModel) -> None:
    filler = " ".join([DOCUMENTS[2]] * 8)
    [short, long] = relevances(loaded, QUESTION, [filler, f"{filler} {DOCUMENTS[1]}"], 96, 1024)
    assert long > short


def test_an_empty_document_and_question_of_any_length_rank(loaded: CausalModel) -> None:
    found = relevances(loaded, f"{QUESTION} " * 40, ["", *DOCUMENTS[:1]], 64, 64)
    assert all(score < 0 for score in found)


def test_contrast_is_the_difference_of_two_readings(loaded: CausalModel) -> None:
    texts = loaded.encode([split(text) for text in DOCUMENTS])
    asked = loaded.ids(f"{QUESTION}\n\n")
    pace = Pace(rate=1.0, segment=10)
    plain = surprises(loaded, texts, pace)
    given = surprises(loaded, texts, pace, [asked])
    found = surprises(loaded, texts, pace, [[], asked])
    for row, p, q in zip(found, plain, given, strict=True):
        assert row == pytest.approx([a - b for a, b in zip(p, q, strict=True)], abs=2e-3)


def test_the_question_is_computed_once_for_all_texts(loaded: CausalModel) -> None:
    asked = loaded.ids(f"{QUESTION}\n\n")
    texts = loaded.encode([split(text) for text in DOCUMENTS])
    seen: list[list[int]] = []
    hook = loaded.model.register_forward_pre_hook(
        lambda _, __, kwargs: seen.extend(kwargs["input_ids"].tolist()), with_kwargs=True
    )
    surprises(loaded, texts, Pace(batch_tokens=1), [[], asked])
    hook.remove()
    assert sum(row[1:] == asked for row in seen) == 1
    assert sum(map(len, seen)) == 2 * (1 + sum(len(t.ids) for t in texts)) + len(asked)


def test_what_the_question_asks_for_is_kept() -> None:
    scorer = QuestionPerplexity()
    [result] = Compressor(scorer, make_counter("smollm2")).compress(
        [" ".join(DOCUMENTS)], Budget(rate=0.5), question=QUESTION
    )
    assert "frigatebird" in result.text
    assert result.compressor == "longllmlingua:smollm2"


def test_better_documents_get_more_of_a_joint_budget() -> None:
    counter = make_counter("smollm2")

    def rates(dynamic: float) -> list[float]:
        scorer = QuestionPerplexity(dynamic=dynamic)
        results = Compressor(scorer, counter).compress(
            DOCUMENTS, Budget(rate=0.5), question=QUESTION, joint=True
        )
        return [result.rate for result in results]

    even, steep = rates(0.0), rates(0.3)
    assert max(even) - min(even) < 0.25
    assert steep[1] == max(steep)
    assert steep[1] == pytest.approx(0.8, abs=0.12)
    assert min(steep) == pytest.approx(0.2, abs=0.12)


def test_source_code_as_context_with_a_question() -> None:
    scorer = QuestionPerplexity()
    texts = [split(SOURCE), split("<s>struck</s> " + SOURCE[:80]), split("")]
    rows = scorer.score(texts, "When does mean raise?")
    for units, row in zip(texts, rows, strict=True):
        assert len(row) == len(units.units)
        assert all(0 <= score <= 1 for score in row)
    results = Compressor(scorer, make_counter("smollm2")).compress(
        [SOURCE, DOCUMENTS[1]], Budget(rate=0.5), question="When does mean raise?", joint=True
    )
    assert results[0].text in (SOURCE, "") or results[0].tokens_out < results[0].tokens_in


def test_without_a_question_it_scores_as_llmlingua_does() -> None:
    units = [split(DOCUMENTS[0])]
    [plain], [none] = Perplexity().score(units), QuestionPerplexity(dynamic=0.0).score(units)
    assert plain == none


def test_a_negative_share_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="-1"):
        QuestionPerplexity(dynamic=-1)
