"""Which documents, sentences and words survive, with one budget over all."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.compressors import BM25, BiEncoder, Budget, Lexical, make_counter, make_scorer
from headrace.compressors.context import Context, through
from headrace.compressors.documents import compress_documents
from headrace.compressors.scorers.sentences import Sentences
from headrace.middleware.errors import InvalidRequest
from headrace.middleware.types import Document

MILL = (
    "The mill stands on the river Saale. It was built in 1742 by Anna Weber. Bread was cheap that"
    " year. Anna Weber died in 1790 in Halle. Nobody knows why."
)
CODE = "def f(x):\n    return x + 1\n\n\ndef g(x):\n    return f(x) * 2\n"
DOCUMENTS = [
    Document("The canteen serves soup. It opens at noon.", title="Canteen", id="c"),
    Document(MILL, title="The old mill", id="m", metadata={"page": 3}),
    Document(MILL.replace("why.", "why!"), title="The old mill", id="copy"),
    Document("", id="empty"),
    Document("Anna Weber sold the mill in 1780. The buyer paid 12,500 thalers.", id="s"),
    Document(CODE, title="a.py", id="code"),
]
ASKED = "Who built the mill?"
COUNTER = make_counter()


def chosen(
    documents: list[Document], budget: Budget, question: str = ASKED, **options: Any
) -> Context:
    own: dict[str, Any] = {"reranker": BM25(), "scorer": Lexical(), "sentences": Sentences(BM25())}
    own |= options
    return compress_documents(question, documents, budget, counter=COUNTER, **own)


def check(context: Context, documents: list[Document], limit: int) -> None:
    assert context.tokens_out == COUNTER.count(context.text)
    assert context.tokens_out <= limit or context.reason
    indices = [k.index for k in context.kept] + [d.index for d in context.dropped]
    assert sorted(indices) == list(range(len(documents)))
    for kept in context.kept:
        original = documents[kept.index]
        assert kept.original == original
        assert kept.document.text == "".join(original.text[a:b] for a, b in kept.spans)
        assert kept.document.text.strip()
        assert (kept.document.id, kept.document.title) == (original.id, original.title)
        assert kept.document.metadata == original.metadata
        assert kept.document.score is not None
        for sentence in kept.sentences:
            meets = any(a < sentence.end and sentence.start < b for a, b in kept.spans)
            assert sentence.is_kept == meets
    assert all(d.reason and d.original == documents[d.index] for d in context.dropped)


def test_the_answer_survives_and_the_result_says_what_else_did() -> None:
    context = chosen(DOCUMENTS, Budget(rate=0.3))
    first = context.kept[0]
    assert (first.document.id, first.document.metadata) == ("m", {"page": 3})
    assert "It was built in 1742 by Anna Weber." in first.document.text
    assert max(first.sentences, key=lambda s: s.score).is_kept
    reasons = {d.original.id: d.reason for d in context.dropped}
    assert reasons["copy"] == "nearly the same as document 1"
    assert reasons["empty"] == "it has no text"
    assert context.compressor == "lexical"
    assert context.reranker == "bm25"
    check(context, DOCUMENTS, int(0.3 * context.tokens_in))


@pytest.mark.parametrize("rate", [0, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 1])
def test_the_budget_is_held_titles_and_all(rate: float) -> None:
    context = chosen(DOCUMENTS, Budget(rate=rate))
    assert context.reason is None
    check(context, DOCUMENTS, int(rate * context.tokens_in))


@pytest.mark.parametrize("tokens", [1, 5, 17, 40, 80])
def test_a_target_is_held(tokens: int) -> None:
    check(chosen(DOCUMENTS, Budget(target_tokens=tokens)), DOCUMENTS, tokens)


def test_the_budget_is_used() -> None:
    documents = [Document(MILL, id="1"), Document("Soup is served at noon. " * 20, id="2")]
    context = chosen(documents, Budget(target_tokens=60))
    assert 54 <= context.tokens_out <= 60


def test_with_room_for_everything_every_word_stays() -> None:
    documents = [d for d in DOCUMENTS if d.id not in ("copy", "empty")]
    context = chosen(documents, Budget(rate=1))
    assert {k.document.id for k in context.kept} == {"c", "m", "s", "code"}
    assert all(k.document.text == k.original.text and k.rate == 1 for k in context.kept)
    assert context.rate == 1
    assert all(s.is_kept for k in context.kept for s in k.sentences)


def test_better_documents_keep_more() -> None:
    noise = "The canteen serves soup at noon. Trains were late again on Monday. It rained a lot."
    context = chosen([Document(noise), Document(MILL)], Budget(rate=0.6))
    rates = {k.index: k.rate for k in context.kept}
    assert rates[1] > rates.get(0, 0)


def test_orders() -> None:
    texts = [
        "The mill was built.",
        "Who built the old mill? Anna built the mill.",
        "A mill.",
        "Soup for everyone.",
    ]
    documents = [Document(text, id=str(i)) for i, text in enumerate(texts)]
    best = [k.index for k in chosen(documents, Budget(rate=1)).kept]
    assert best[0] == 1
    ends = [k.index for k in chosen(documents, Budget(rate=1), order="both ends").kept]
    assert (ends[0], ends[-1]) == (best[0], best[1])
    assert sorted(best) == [
        k.index for k in chosen(documents, Budget(rate=1), order="original").kept
    ]


def test_top_k_and_copies() -> None:
    context = chosen(DOCUMENTS, Budget(rate=1), top_k=1)
    assert [k.document.id for k in context.kept] == ["m"]
    assert {d.reason for d in context.dropped} >= {"not among the best 1"}
    both = chosen(DOCUMENTS, Budget(rate=1), copies=None)
    assert {"m", "copy"} <= {k.document.id for k in both.kept}


def test_invoices_of_one_form_are_no_copies() -> None:
    form = "Invoice of the mill for flour and bread, please pay {} euros until the end of the month"
    documents = [Document(form.format(amount)) for amount in (12, 13)]
    assert len(chosen(documents, Budget(rate=1)).kept) == 2


def test_what_must_be_kept_stays_and_the_result_says_that_it_is_too_much() -> None:
    context = chosen(DOCUMENTS, Budget(target_tokens=30), keep=[r"12,500 thalers"])
    assert "12,500 thalers" in context.text
    check(context, DOCUMENTS, 30)
    over = chosen(DOCUMENTS, Budget(target_tokens=2), keep=[r"12,500 thalers"])
    assert "12,500 thalers" in over.text
    assert over.reason
    assert "the budget is 2" in over.reason


@pytest.mark.parametrize("rate", [0, 0.1, 0.3, 0.5, 0.8])
def test_without_a_scorer_sentences_stay_whole(rate: float) -> None:
    context = chosen(DOCUMENTS, Budget(rate=rate), scorer=None)
    check(context, DOCUMENTS, int(rate * context.tokens_in))
    assert context.compressor == "sentences"
    for kept in context.kept:
        for s in kept.sentences:
            if s.is_kept:
                assert kept.original.text[s.start : s.end] in kept.document.text
    if rate > 0.2:
        assert "It was built in 1742 by Anna Weber." in context.text


def test_code_stays_or_goes_as_one() -> None:
    for tokens in (10, 30, 60, 90, 120):
        context = chosen(DOCUMENTS, Budget(target_tokens=tokens), question="What does g return?")
        assert all(k.document.text == CODE for k in context.kept if k.document.id == "code")
        check(context, DOCUMENTS, tokens)
    code = DOCUMENTS[5]
    [gone] = chosen([code], Budget(target_tokens=10), question="What does g return?").dropped
    assert "there is room for" in gone.reason


def test_no_documents_one_document_and_empty_ones() -> None:
    assert chosen([], Budget(rate=0.5)).kept == ()
    assert chosen([Document(""), Document(" ")], Budget(rate=0.5)).text == ""
    [one] = chosen([Document(MILL)], Budget(rate=0.5)).kept
    assert 0 < one.tokens_out <= 0.5 * one.tokens_in


def test_two_hundred_documents() -> None:
    documents = [
        Document(
            f"Entry {i}: the canteen of house {i} serves soup number {i}. It is warm.", id=str(i)
        )
        for i in range(199)
    ]
    documents.insert(150, Document(MILL, id="m"))
    context = chosen(documents, Budget(target_tokens=200))
    assert context.kept[0].document.id == "m"
    assert "Anna Weber" in context.text
    check(context, documents, 200)


@pytest.mark.parametrize(
    ("question", "text", "answer"),
    [
        (
            "日本の首都はどこですか",
            "大阪は食べ物で有名です。東京は日本の首都です。雨が降ります。",
            "東京",
        ),
        ("ما هي عاصمة مصر؟", "الطقس جميل اليوم. القاهرة هي عاصمة مصر. القطار متأخر.", "القاهرة"),
        ("भारत की राजधानी क्या है?", "मौसम अच्छा है। दिल्ली भारत की राजधानी है। ट्रेन देर से है।", "दिल्ली"),
        (
            "Wer baute die Mühle?",
            "Es regnet. Anna Weber baute die Mühle. Suppe gibt es mittags.",
            "Anna",
        ),
    ],
)
def test_documents_in_other_languages(question: str, text: str, answer: str) -> None:
    documents = [Document("Soup is served at noon. Trains were late."), Document(text)]
    context = chosen(documents, Budget(rate=0.4), question=question)
    assert answer in context.text
    assert "\ufffd" not in context.text
    check(context, documents, int(0.4 * context.tokens_in))


TEXTS = st.lists(
    st.one_of(
        st.text(max_size=80),
        st.sampled_from([MILL, CODE, "", " \n", "Soup. " * 9, '{"id": 7, "who": "Anna Weber"}']),
    ),
    max_size=6,
)


@given(TEXTS, st.integers(0, 120), st.sampled_from(["best first", "both ends", "original"]))
@settings(deadline=None, max_examples=60)
def test_any_documents_any_budget(texts: list[str], tokens: int, order: str) -> None:
    documents = [Document(t, title="ab"[i % 2], id=str(i)) for i, t in enumerate(texts)]
    context = chosen(documents, Budget(target_tokens=tokens), order=order)
    assert context.reason is None
    check(context, documents, tokens)
    again = chosen(documents, Budget(target_tokens=tokens), order=order)
    assert again.kept == context.kept


@given(st.lists(st.booleans(), max_size=30), st.data())
def test_spans_of_spans(flags: list[bool], data: st.DataObject) -> None:
    text = "".join(chr(97 + i % 26) for i in range(len(flags)))
    outer = [(i, i + 1) for i, flag in enumerate(flags) if flag]
    left = "".join(text[a:b] for a, b in outer)
    inner = [(i, i + 1) for i in range(len(left)) if data.draw(st.booleans())]
    found = through(outer, inner)
    assert "".join(text[a:b] for a, b in found) == "".join(left[a:b] for a, b in inner)
    assert all(a[1] < b[0] for a, b in pairwise(found))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"question": " "}, "needs a question, got ' '"),
        ({"budget": Budget(threshold=0.5)}, "got a threshold or quality"),
        ({"top_k": 0}, "top_k must be a whole number from 1 on, got 0"),
        ({"order": "worst"}, "order must be one of best first, both ends, original, got 'worst'"),
        ({"formats": ["json"]}, "one entry a document"),
        ({"documents": ["text"]}, "must be Documents, got str"),
        ({"scorer": None, "sentences": None}, "nothing can be cut"),
        ({"copies": 2}, r"threshold must be in \(0, 1\], got 2"),
    ],
)
def test_nonsense_is_refused(options: dict[str, Any], message: str) -> None:
    all_options: dict[str, Any] = {"documents": DOCUMENTS, "budget": Budget(rate=0.5)} | options
    with pytest.raises(InvalidRequest, match=message):
        chosen(**all_options)


@pytest.mark.model
def test_with_the_models_that_are_here() -> None:
    encoder = BiEncoder()
    documents = [
        *DOCUMENTS,
        Document("The physician examined the heart of the patient on Monday.", id="doctor"),
    ]
    context = chosen(
        documents,
        Budget(rate=0.25),
        question="Which doctor looked at somebody's heart?",
        reranker=encoder,
        scorer=make_scorer("mini"),
        sentences=Sentences(encoder),
    )
    assert context.kept[0].document.id == "doctor"
    assert "physician" in context.text
    check(context, documents, int(0.25 * context.tokens_in))
