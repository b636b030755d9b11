"""Sentences in many languages, and scores that keep them whole."""

from __future__ import annotations

import math
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.compressors import BM25, Budget, Compressor, Lexical, make_counter, make_scorer, split
from headrace.compressors.rerankers import CrossEncoder, make_reranker
from headrace.compressors.scorers.sentences import PooledSentences, Sentences
from headrace.compressors.sentence_split import sentences
from headrace.middleware.errors import InvalidRequest
from headrace.middleware.models import resolve
from headrace.middleware.types import Document

MILL = (
    "The mill stands on the river Saale. It was built in 1742 by Anna Weber. Bread was cheap that"
    " year. The canteen serves soup. Anna Weber died in 1790 in Halle. Nobody knows why."
)
ASKED = "Who built the mill?"


def parts(text: str) -> list[str]:
    return [text[s.start : s.end] for s in sentences(split(text))]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("东京是日本的首都。它很大！你去过吗？“是的。”他说。价格是3.5元。", 5),
        ("東京は日本の首都です。とても大きい！「はい。」と彼は言った。終わり。", 4),
        ("هل ذهبت إلى القاهرة؟ نعم، ذهبت. كانت جميلة! سعرها 3.5 جنيه.", 4),
        ("दिल्ली भारत की राजधानी है। यह बड़ा है। क्या आप गए हैं? कीमत 3.5 है।", 4),
        ("کراچی ایک بڑا شہر ہے۔ یہ سمندر کے کنارے ہے۔ کیا آپ گئے؟", 3),
        ("አዲስ አበባ ዋና ከተማ ናት። ትልቅ ናት። ሄደህ ታውቃለህ፧", 3),
        ("ရန်ကုန်သည် မြို့ကြီးဖြစ်သည်။ လှသည်။", 2),
        ("Երևանը մայրաքաղաք է։ Այն մեծ է։", 2),
        ("서울은 한국의 수도입니다. 매우 큽니다! 가 봤어요? 네.", 4),
        ("Он родился в 1990 г. в Москве. Потом уехал. А. С. Пушкин — поэт.", 3),
        ("Das ist z. B. so. Am 3. Mai kam er. Die 2. Auflage erschien. Siehe S. 5 ff. Ende.", 5),
    ],
)
def test_languages_have_their_own_marks(text: str, number: int) -> None:
    assert len(parts(text)) == number


@pytest.mark.parametrize(
    "sentence",
    [
        "Dr. Smith paid $3.50 to the U.S. Treasury.",
        "It was late, e.g. after 5 p.m. Monday.",
        "Mr. J. R. Tolkien wrote No. 7, see Fig. 3.",
        "He works at Acme Inc. and left.",
        '"Is it true?" he asked.',
        "She went to www.example.com/a.b?c=d. today",
        "Version 2.0.1 of app.py came out.",
        "Well... maybe.",
        "- an item of a list with 1.5 litres",
    ],
)
def test_a_period_is_not_always_an_end(sentence: str) -> None:
    assert parts(sentence) == [sentence]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('He said "Stop." Then he left.', ['He said "Stop."', "Then he left."]),
        ("(It rained.) Then: sun.", ["(It rained.)", "Then: sun."]),
        ("She left... Then it rained.", ["She left...", "Then it rained."]),
        ("What?! iPhone sales rose. eBay fell.", ["What?!", "iPhone sales rose.", "eBay fell."]),
        ("# Title\n\nText\n- one\n- two. Three", ["# Title", "Text", "- one", "- two.", "Three"]),
        ("No mark at the end\n\nAnother one", ["No mark at the end", "Another one"]),
    ],
)
def test_quotes_ellipses_headings_and_lists(text: str, found: list[str]) -> None:
    assert parts(text) == found


def test_a_wrapped_line_is_one_sentence() -> None:
    line = "This is a very long line which was wrapped by a mail program at\nseventy characters."
    assert parts(line) == [line]


def test_text_without_marks_is_parted_at_spaces() -> None:
    thai = "กรุงเทพเป็นเมืองหลวง ประเทศไทยอยู่ในเอเชีย คุณเคยไปไหม " * 5
    assert len(parts(thai)) > 2
    assert max(map(len, parts(thai))) < 150
    spoken = "so we went there and they said yes " * 60
    assert max(map(len, parts(spoken))) < 450


@given(st.text(max_size=200))
@settings(deadline=None)
def test_sentences_tile_the_units_of_any_text(text: str) -> None:
    units = split(text)
    at = 0
    for sentence in sentences(units):
        assert sentence.first == at < sentence.last
        assert text[sentence.start : sentence.end].strip()
        at = sentence.last
    assert at == len(units.units)


@given(st.lists(st.sampled_from(["Mill stands here. ", "No. ", "Why?\n", "東京。", "\n\n"])))
@settings(deadline=None)
def test_scores_are_in_range_and_fall_within_a_sentence(pieces: list[str]) -> None:
    units = split("".join(pieces))
    for question in ("mill", None):
        [row] = Sentences(BM25()).score([units], question)
        assert len(row) == len(units.units)
        assert all(0 <= score <= 1 for score in row)
        for s in sentences(units):
            own = row[s.first : s.last]
            assert own == sorted(own, reverse=True)
            others = [score for i, score in enumerate(row) if not s.first <= i < s.last]
            assert not any(min(own) < other < max(own) for other in others)


def test_the_sentence_that_answers_stays_whole() -> None:
    compressor = Compressor(Sentences(BM25()), make_counter())
    [found] = compressor.compress([MILL], Budget(rate=0.55), question=ASKED)
    assert "The mill stands on the river Saale. It was built in 1742 by Anna Weber." in found.text


@pytest.mark.model
def test_a_bi_encoder_finds_what_shares_no_word() -> None:
    text = "Soup costs 4 euros. The physician examined the patient's heart. Trains were late."
    scorer = make_scorer("sentences")
    [row] = Sentences(lexical=0.0).rate([split(text)], "What did the cardiologist do?")
    assert max(row, key=lambda pair: pair[1])[0].start == text.index("The physician")
    [found] = Compressor(scorer, make_counter()).compress(
        [text], Budget(rate=0.6), question="What did the cardiologist do?"
    )
    assert "The physician examined the patient's heart." in found.text


@pytest.mark.model
def test_other_languages_have_their_sentence_found() -> None:
    text = "大阪は食べ物で有名です。東京は日本の首都です。京都には寺がたくさんあります。"
    [row] = Sentences().rate([split(text)], "日本の首都はどこですか")
    best = max(row, key=lambda pair: pair[1])[0]
    assert text[best.start : best.end] == "東京は日本の首都です。"


def test_without_a_question_what_is_like_the_rest_is_worth_most() -> None:
    [row] = Sentences(BM25()).rate([split(MILL)])
    scores = {MILL[s.start : s.start + 9]: score for s, score in row}
    assert scores["Anna Webe"] > scores["Nobody kn"]
    assert scores["It was bu"] > scores["Nobody kn"]


def test_titles_are_read_with_each_sentence() -> None:
    units = [split("It opened in 1900."), split("It opened in 1950.")]
    titles = ["Tower of Pisa", "Eiffel Tower"]
    rows = Sentences(BM25()).rate(units, "When did the Eiffel Tower open?", titles)
    assert rows[1][0][1] > rows[0][0][1]


def test_a_token_scorer_is_pooled_by_sentence() -> None:
    units = split(MILL)
    [tokens] = Lexical().score([units], ASKED)
    for pool in ("best", "mean", "max"):
        [row] = PooledSentences(Lexical(), pool).rate([units], ASKED)
        assert len(row) == 6
        best = max(row, key=lambda pair: pair[1])[0]
        assert MILL[best.start : best.end].startswith(("The mill", "It was built"))
        if pool == "max":
            words = [tokens[i] for i in range(best.first, best.last) if i in units.words]
            assert math.isclose(max(words), max(score for _, score in row))


@pytest.mark.model
def test_the_embedded_model_scores_sentences() -> None:
    scorer = make_scorer("sentences:mini")
    [found] = Compressor(scorer, make_counter()).compress(
        [MILL], Budget(rate=0.4), question="When was the mill built?"
    )
    assert "1742" in found.text


def test_no_texts_and_empty_texts() -> None:
    assert Sentences(BM25()).score([], "why?") == []
    assert Sentences(BM25()).score([split(""), split("  ")], "why?") == [[], []]
    assert Sentences(BM25()).score([split("")]) == [[]]


def test_a_share_outside_its_range_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"lexical must be in \[0, 1\], got 2"):
        Sentences(BM25(), lexical=2)


@pytest.fixture(scope="module")
def ranker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save a cross-encoder: all-MiniLM-L6-v2's encoder under a head that is not trained."""
    torch: Any = import_module("torch")
    transformers: Any = import_module("transformers")
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("ranker")
    source = str(resolve("minilm"))
    model = transformers.AutoModelForSequenceClassification.from_pretrained(source, num_labels=1)
    model.save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(source).save_pretrained(folder)
    return folder


@pytest.mark.model
def test_a_folder_with_a_cross_encoder_is_told_from_a_bi_encoder(ranker: Path) -> None:
    found = make_reranker(str(ranker))
    assert isinstance(found, CrossEncoder)
    documents = [Document("Soup."), Document("It was built."), Document("")]
    scores = found.score(ASKED, documents)
    pairs = [(ASKED, d.text) for d in documents[:2]]
    library: Any = import_module("sentence_transformers")
    peer = library.CrossEncoder(str(ranker), local_files_only=True).predict(pairs)
    assert scores[:2] == pytest.approx(peer.tolist(), abs=1e-5)
    assert scores[2] == 0.0


@pytest.mark.model
def test_a_cross_encoder_reads_a_long_document_in_windows(ranker: Path) -> None:
    reranker = CrossEncoder(str(ranker))
    long = "the committee met again and nothing was decided " * 150
    documents = [Document(long), Document(long + "Anna Weber built the mill.")]
    scores = reranker.score(ASKED, documents)
    assert scores[0] != scores[1]
    assert all(0 <= score <= 1 for score in scores)


@pytest.mark.model
def test_a_classifier_with_two_labels_is_no_ranker(ranker: Path, tmp_path: Path) -> None:
    config = (ranker / "config.json").read_text("utf-8")
    wrong = config.replace('"0": "LABEL_0"', '"0": "no", "1": "yes"')
    for file in ranker.iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / "config.json").unlink()
    (tmp_path / "config.json").write_text(wrong, "utf-8")
    with pytest.raises(InvalidRequest, match="has 2 labels, a cross-encoder has one"):
        make_reranker(str(tmp_path))
