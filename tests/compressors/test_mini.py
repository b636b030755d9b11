from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from headrace.compressors import (
    BiEncoder,
    Budget,
    Compressor,
    Lexical,
    TokenClassifier,
    make_counter,
    split,
)
from headrace.compressors.mini import Mini, MiniReranker, export
from headrace.compressors.mini.engine import Engine, Passage, shared
from headrace.compressors.mini.mixing import together, unasked
from headrace.compressors.mini.weights import DATA
from headrace.middleware.errors import ModelUnavailable
from headrace.middleware.types import Document

model = pytest.mark.model

# SQuAD 1.1, article "Normans" (CC BY-SA 4.0), which was not trained on.
NORMANS = (
    "The Normans (Norman: Nourmands; French: Normands; Latin: Normanni) were the people who in the"
    " 10th and 11th centuries gave their name to Normandy, a region in France. They were descended"
    ' from Norse ("Norman" comes from "Norseman") raiders and pirates from Denmark, Iceland and'
    " Norway who, under their leader Rollo, agreed to swear fealty to King Charles III of West"
    " Francia. Through generations of assimilation and mixing with the native Frankish and"
    " Roman-Gaulish populations, their descendants would gradually merge with the"
    " Carolingian-based cultures of West Francia."
)
OTHERS = [
    "A prime number has no divisors but one and itself. Every other number is a product of primes.",
    "Steam drives the piston, the piston turns the wheel, and the wheel pulls the train uphill.",
    "The parliament meets in Edinburgh. Its members are elected for terms of four years.",
]


def compressor(scorer: Any) -> Compressor:
    return Compressor(scorer, make_counter(str(DATA)))


def test_the_files_are_those_that_were_measured() -> None:
    lines = (DATA / "SHA256SUMS").read_text("utf-8").splitlines()
    for line in lines:
        digest, name = line.split()
        assert hashlib.sha256((DATA / name).read_bytes()).hexdigest() == digest, name
    assert {line.split()[1] for line in lines} >= {"model.safetensors", "embedder.safetensors"}


def test_the_files_take_less_than_thirty_megabytes_and_hold_no_pickle() -> None:
    files = list(DATA.iterdir())
    assert sum(path.stat().st_size for path in files) < 30_000_000
    assert {path.suffix for path in files} <= {".json", ".safetensors", ""}


def test_importing_it_imports_no_torch() -> None:
    code = (
        "import sys, headrace.compressors.mini as m; m.Mini(); m.MiniReranker()\n"
        "assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@model
@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("In what country is Normandy located?", "France"),
        ("Who was the Norse leader?", "Rollo"),
        ("From which countries did the Norse originate?", "Denmark, Iceland and Norway"),
    ],
)
def test_a_question_keeps_its_answer_at_a_fifth_of_the_tokens(question: str, answer: str) -> None:
    [result] = compressor(Mini()).compress([NORMANS], Budget(rate=0.2), question=question)
    assert answer in result.text
    assert result.compressor == "mini"


@model
def test_without_a_question_names_and_numbers_stay() -> None:
    [result] = compressor(Mini()).compress([NORMANS], Budget(rate=0.5))
    assert all(name in result.text for name in ("10th and 11th", "Rollo", "Denmark"))


@model
def test_the_document_that_answers_comes_first_and_keeps_its_words() -> None:
    question = "Who was the leader of the Norse pirates?"
    documents = [Document(text) for text in [*OTHERS, NORMANS]]
    scores = MiniReranker().score(question, documents)
    assert max(range(4), key=lambda i: scores[i]) == 3
    results = compressor(Mini()).compress(
        [document.text for document in documents], Budget(rate=0.3), question=question, joint=True
    )
    assert "Rollo" in results[3].text
    assert results[3].rate > 2 * max(result.rate for result in results[:3])


@model
def test_ranking_and_cutting_read_each_document_once() -> None:
    question = f"Who led them? {time.time_ns()}"  # nothing remembered
    documents = [Document(text, title="A title") for text in [*OTHERS, NORMANS]]
    engine = shared()
    before = engine.passes
    MiniReranker().score(question, documents)
    assert engine.passes == before + 4
    Mini().score([replace(split(d.text), title=d.title) for d in documents], question)
    assert engine.passes == before + 4


@model
def test_what_was_read_with_a_title_changes_nothing_without_one() -> None:
    question = f"Who repaired the wheel? {time.time_ns()}"
    units = split(OTHERS[1])
    [before] = Mini().score([units], question)
    MiniReranker().score(question, [Document(OTHERS[1], title="Repair of the wheel by Ann")])
    assert Mini().score([units], question) == [before]
    [titled] = Mini().score([replace(units, title="Repair of the wheel by Ann")], question)
    assert titled != before


@model
def test_the_embeddings_in_four_bits_are_the_published_ones() -> None:
    from headrace.compressors.mini.embedder import Embedder

    texts = [*OTHERS, NORMANS]
    question = "Who was the leader of the Norse pirates?"
    expected = BiEncoder("minilm").score(question, [Document(text) for text in texts])
    cosines = Embedder(Engine()).cosines(question, [Passage(text) for text in texts])
    assert cosines == pytest.approx(expected, abs=0.06)
    assert max(range(4), key=lambda i: cosines[i]) == 3


@model
@pytest.mark.parametrize("part", range(3), ids=["model", "embeddings", "lexical"])
def test_each_part_of_the_ranking_finds_the_document_alone(part: int) -> None:
    model, embeddings, lexical = (float(i == part) for i in range(3))
    reranker = MiniReranker(model=model, embeddings=embeddings, lexical=lexical)
    scores = reranker.score("Who was Rollo?", [Document(text) for text in [*OTHERS, NORMANS]])
    assert max(range(4), key=lambda i: scores[i]) == 3


@model
@pytest.mark.parametrize("text", ["", "😀", "word " * 2000])
def test_any_document_can_be_ranked(text: str) -> None:
    documents = [Document(text, title="Title " * 50), Document(NORMANS)]
    assert len(MiniReranker().score("Who was Rollo?", documents)) == 2


@model
def test_the_memory_forgets_the_oldest_first() -> None:
    engine = Engine(remembered=40)
    for text in OTHERS:
        engine.read("who", [Passage(text)])
    passes = engine.passes
    engine.read("who", [Passage(OTHERS[-1])])
    assert engine.passes == passes
    engine.read("who", [Passage(OTHERS[0])])
    assert engine.passes == passes + 1


@model
def test_neighbours_and_threads_change_no_score() -> None:
    texts = [NORMANS, *OTHERS, NORMANS + " " + " ".join(OTHERS * 8)]
    alone = [Engine().read("Who led?", [Passage(text)])[0] for text in texts]
    together = Engine().read("Who led?", [Passage(text) for text in texts])
    engine = Engine()
    with ThreadPoolExecutor(4) as pool:
        threads = list(pool.map(lambda t: engine.read("Who led?", [Passage(t)])[0], texts))
    for one, two, three in zip(alone, together, threads, strict=True):
        assert list(two.keep) == pytest.approx(list(one.keep), abs=1e-4)
        assert list(three.keep) == pytest.approx(list(one.keep), abs=1e-4)
        assert two.relevance == pytest.approx(one.relevance, abs=1e-3)


@model
@pytest.mark.parametrize(
    "text", ["", " \n", "😀" * 40, "a" * 5000, "[SEP] [CLS] [PAD]", "\ud800 x"]
)
@pytest.mark.parametrize("question", [None, "", "Who? " * 300, "\ud800"])
def test_any_text_and_question_get_scores_from_zero_to_one(text: str, question: str | None) -> None:
    units = split(text)
    [scores] = Mini().score([units], question)
    assert len(scores) == len(units.units)
    assert all(0.0 <= score <= 1.0 for score in scores)


@model
@pytest.mark.parametrize(
    "text",
    [
        "Der Ausschuss traf sich am Montag, um über die Brücke zu reden und nicht über das Geld.",
        "東京は日本の首都です。大阪は大きな都市です。",
        "for (i = 0; i < n; i++) { sum += x[i] * y[i]; } return sum / (n - 1); // done" * 3,
    ],
)
def test_what_it_cannot_read_is_scored_by_lexical(text: str) -> None:
    units = split(text)
    assert Mini().score([units], "Was?") == Lexical().score([units], "Was?")


def test_names_stay_together_and_what_the_question_says_waits() -> None:
    units = split("Kenya joined the East African Community in 2000, it said.")
    words = [units.content(i) for i in range(len(units.units))]
    scores = [0.1] * len(words)
    scores[words.index("African")] = 0.9
    near = together(scores, units, 0.5)
    assert near[words.index("Community")] == pytest.approx(0.5)
    assert near[words.index("the")] == near[words.index("Kenya")] == pytest.approx(0.1)
    lower = unasked(scores, units, "Which African body did Kenya join?", 0.4)
    assert lower[words.index("African")] == scores[words.index("African")]
    assert lower[words.index("joined")] == pytest.approx(0.06)
    assert lower[words.index("Community")] == scores[words.index("Community")]


@model
def test_numpy_and_torch_read_the_same() -> None:
    from headrace.compressors.mini.runners import ArrayRunner, TorchRunner

    plain, torch = ArrayRunner(DATA), TorchRunner(DATA, "cpu", "float32")
    engine = Engine()
    rows = [[101, *engine.tokenizer.encode(t, add_special_tokens=False).ids, 102] for t in OTHERS]
    for passage in (None, 5):
        ours, theirs = (runner.score(rows, [passage] * len(rows)) for runner in (plain, torch))
        for one, two in zip(ours[0], theirs[0], strict=True):
            assert one == pytest.approx(two, abs=1e-4)
        assert ours[1] == pytest.approx(theirs[1], abs=1e-4)
    assert plain.embed(rows) == pytest.approx(torch.embed(rows), abs=1e-4)


def test_a_short_text_is_cut_without_torch_and_a_long_one_with_it() -> None:
    code = (
        "import sys\n"
        "from headrace.compressors.mini.engine import NUMPY_TOKENS, Engine, Passage\n"
        "engine = Engine()\n"
        "engine.read('Who?', [Passage('Ann met Bob on Monday in Rome.')])\n"
        "assert not {'torch', 'transformers'} & set(sys.modules)\n"
        "engine.runner(NUMPY_TOKENS)\n"
        "assert 'torch' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@model
def test_the_exported_folder_is_a_token_classifier_with_the_same_scores(tmp_path: Path) -> None:
    folder = export(tmp_path / "mini")
    [expected] = TokenClassifier(str(folder)).score([split(NORMANS)])
    [scores] = Mini(phrase=0.0, closing=0.0).score([split(NORMANS)])
    assert scores == pytest.approx(expected, abs=1e-3)
    assert (folder / "relevance.safetensors").is_file()


@model
def test_the_network_computes_what_transformers_computes() -> None:
    import torch
    from transformers import AutoModel

    from headrace.compressors.training.start import base_network
    from headrace.middleware.models import resolve

    ids = torch.randint(1000, 20000, (2, 50), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids, dtype=torch.bool)
    mask[1, 30:] = False
    theirs: Any = cast("Any", AutoModel).from_pretrained(str(resolve("minilm"))).eval()
    with torch.inference_mode():
        ours = base_network(0).eval().bert(ids, torch.zeros_like(ids), mask)
        wanted = theirs(input_ids=ids, attention_mask=mask).last_hidden_state
    assert torch.allclose(ours[mask], wanted[mask], atol=1e-4)


@model
def test_a_folder_without_weights_says_so(tmp_path: Path) -> None:
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).write_bytes((DATA / name).read_bytes())
    with pytest.raises(ModelUnavailable, match="cannot load headrace-mini"):
        Mini(tmp_path).score([split("A text.")])


@model
def test_it_agrees_with_the_bi_encoder_on_what_is_plain() -> None:
    documents = [Document(text) for text in [*OTHERS, NORMANS]]
    question = "what does the steam do in the engine"
    for reranker in (MiniReranker(), BiEncoder("minilm")):
        scores = reranker.score(question, documents)
        assert max(range(4), key=lambda i: scores[i]) == 1


@model
def test_the_result_says_which_scorer_read_a_text_and_why() -> None:
    german = (
        "Der Ausschuss traf sich am Montag, um über die Brücke zu reden und nicht über das Geld,"
        " denn das Geld war schon ausgegeben, und die Brücke war noch nicht gebaut."
    )
    results = compressor(Mini()).compress([NORMANS, german], Budget(rate=0.5), question="Wer?")
    assert [result.compressor for result in results] == ["mini", "lexical"]
    assert results[0].because is None
    assert results[1].because == "the text is not in English (de)"
    [alone] = compressor(Mini()).compress([german], Budget(rate=0.5), question="Wer?")
    assert alone.text == results[1].text
