"""What is made of a model's answers: real ones, and answers as models are known to give them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.compressors import Budget, Compressor, Lexical, make_counter
from headrace.compressors.abstractive import Abstractive, Summary
from headrace.middleware.errors import InvalidRequest
from headrace.middleware.types import Document

MILL = (
    "The mill stands on the river Saale, below the old bridge. It was built in 1742 by Anna Weber,"
    " a baker's daughter. Bread was cheap that year, and many people came to see the new wheel."
    " Anna Weber died in 1790 in Halle. Nobody knows why the mill was closed."
)
ASKED = "Who built the mill?"
COUNTER = make_counter()
ABSTRACTIVE = Abstractive(Compressor(Lexical(), COUNTER))


def summary(answer: str | None, rate: float = 0.5, question: str | None = ASKED) -> Summary:
    """Return what comes of an answer about the mill."""
    document = Document(MILL, title="Mill", id="m", metadata={"page": 3})
    tasks = ABSTRACTIVE.tasks([document], Budget(rate=rate), question=question)
    [found] = ABSTRACTIVE.finish(tasks, [answer], question=question)
    assert found.tokens_out == COUNTER.count(found.document.text)
    assert found.tokens_out <= int(rate * found.tokens_in)
    assert (found.document.id, found.document.title) == ("m", "Mill")
    assert found.document.metadata == {"page": 3}
    assert found.original == document
    return found


def test_a_good_answer_is_taken_and_is_no_span_of_the_document() -> None:
    found = summary("Anna Weber, the daughter of a baker, built it in 1742.")
    assert found.document.text == "Anna Weber, the daughter of a baker, built it in 1742."
    assert found.spans is None
    assert found.is_abstractive
    assert found.reason is None


def test_labels_before_the_summary_go() -> None:
    assert summary("**Summary:** Anna Weber built it.").document.text == "Anna Weber built it."


@pytest.mark.parametrize("answer", ["NONE", "None.", " **NONE** \n"])
def test_nothing_relevant_leaves_nothing(answer: str) -> None:
    found = summary(answer)
    assert found.document.text == ""
    assert not found.is_relevant
    assert found.reason == "nothing in it is relevant, says the model"


def test_an_answer_that_is_too_long_is_cut_after_a_sentence() -> None:
    found = summary("Anna Weber built it. " + "She was the daughter of a baker from the town. " * 9)
    assert found.document.text == (
        "Anna Weber built it. She was the daughter of a baker from the town."
    )
    endless = summary("Anna Weber built it. And then " + "she baked more bread and " * 30)
    assert endless.document.text == "Anna Weber built it."
    assert "did not fit into" in (endless.reason or "")


@pytest.mark.parametrize("answer", ["", " \n", "so " * 200, None])
def test_without_a_usable_answer_the_document_is_cut(answer: str | None) -> None:
    found = summary(answer)
    assert found.spans is not None
    assert found.document.text == "".join(MILL[a:b] for a, b in found.spans)
    assert "Anna Weber" in found.document.text
    assert not found.is_abstractive
    assert found.reason


def test_a_number_that_the_document_does_not_hold_is_not_passed_on() -> None:
    found = summary("Anna Weber built it in 1742. It cost 12,000 thalers.")
    assert found.document.text == "Anna Weber built it in 1742."
    assert "12,000" in (found.reason or "")


def test_documents_that_are_short_or_may_stay_are_not_asked_about() -> None:
    documents = [Document("Soup."), Document(""), Document(MILL)]
    tasks = ABSTRACTIVE.tasks(documents, Budget(rate=0.5), question=ASKED)
    assert [task.prompt is not None for task in tasks] == [False, False, True]
    assert MILL in (tasks[2].prompt or "")
    assert ASKED in (tasks[2].prompt or "")
    whole = ABSTRACTIVE.compress(documents, Budget(rate=1), _refuse, question=ASKED)
    assert [s.document for s in whole] == documents
    none = ABSTRACTIVE.compress(documents, Budget(rate=0), _refuse, question=ASKED)
    assert all(s.document.text == "" for s in none)


def _refuse(prompts: Sequence[str]) -> list[str]:
    raise AssertionError(prompts)


def test_without_a_question_the_prompt_asks_for_none() -> None:
    [task] = ABSTRACTIVE.tasks([Document(MILL)], Budget(rate=0.5))
    assert "question" not in (task.prompt or "").lower()
    assert summary("NONE", question=None).document.text  # then NONE is no answer


def test_braces_in_a_document_are_text() -> None:
    [task] = ABSTRACTIVE.tasks([Document("{words} " * 60)], Budget(rate=0.5), question="{x}?")
    assert "{words} {words}" in (task.prompt or "")


@given(st.text(max_size=300), st.floats(0, 1))
@settings(deadline=None)
def test_no_answer_breaks_the_budget(answer: str, rate: float) -> None:
    document = Document(MILL)
    [found] = ABSTRACTIVE.compress(
        [document], Budget(rate=rate), lambda prompts: [answer] * len(prompts), question=ASKED
    )
    assert COUNTER.count(found.document.text) <= int(rate * COUNTER.count(MILL) + 1e-9)


def test_wrong_options_are_refused() -> None:
    cutter = Compressor(Lexical(), COUNTER)
    with pytest.raises(InvalidRequest, match=r"needs \{document\}"):
        Abstractive(cutter, prompt="Summarise in {words}.")
    with pytest.raises(InvalidRequest, match="KeyError"):
        Abstractive(cutter, prompt="{document} {length}")
    with pytest.raises(InvalidRequest, match="needs a rate or target_tokens"):
        ABSTRACTIVE.tasks([], Budget(threshold=0.5))
    with pytest.raises(InvalidRequest, match="an answer a prompt, got 0 for 1"):
        ABSTRACTIVE.compress([Document(MILL)], Budget(rate=0.5), lambda _: [], question=ASKED)
