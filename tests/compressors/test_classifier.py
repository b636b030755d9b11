from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest

from headrace.compressors import (
    Budget,
    Compressor,
    TokenClassifier,
    Units,
    make_counter,
    make_scorer,
    split,
)
from headrace.compressors.scorers.windows import Window, owners, stretches, windows
from headrace.middleware.errors import HeadraceError, InvalidRequest
from headrace.middleware.models import resolve

SENTENCES = [
    "The committee met on 12 May 2021 to talk about the bridge.",
    "Costs rise to 1,234.56 EUR.",
    "Nobody should start before the permit KA-01-HH-1234 is there, said Ann Lee at noon.",
    "It rained.",
]

model = pytest.mark.model


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MiniLM's encoder with a two-label head whose weights are drawn once."""
    import torch
    from transformers import AutoTokenizer, BertForTokenClassification

    source = str(resolve("minilm"))
    loaded: Any = cast("Any", BertForTokenClassification).from_pretrained(source, num_labels=2)
    generator = torch.Generator().manual_seed(7)
    loaded.classifier.weight.data = torch.randn(2, 384, generator=generator)
    loaded.classifier.bias.data.zero_()
    folder = tmp_path_factory.mktemp("models") / "m1"
    loaded.save_pretrained(folder)
    cast("Any", AutoTokenizer).from_pretrained(source).save_pretrained(folder)
    return folder


def near(first: list[float], second: list[float], tolerance: float = 1e-4) -> bool:
    return len(first) == len(second) and all(
        abs(a - b) < tolerance for a, b in zip(first, second, strict=True)
    )


@model
def test_batch_and_padding_change_no_score(checkpoint: Path) -> None:
    scorer = TokenClassifier(str(checkpoint))
    together = scorer.score([split(s) for s in SENTENCES])
    alone = [scorer.score([split(s)])[0] for s in SENTENCES]
    tiny = TokenClassifier(str(checkpoint), batch_tokens=1).score([split(s) for s in SENTENCES])
    assert all(map(near, together, alone))
    assert all(map(near, together, tiny))
    assert len({round(score, 3) for row in alone for score in row}) > 20


@model
def test_scores_are_the_models_own(checkpoint: Path) -> None:
    import torch
    from transformers import AutoTokenizer, BertForTokenClassification

    tokenizer: Any = cast("Any", AutoTokenizer).from_pretrained(str(checkpoint))
    loaded: Any = cast("Any", BertForTokenClassification).from_pretrained(str(checkpoint)).eval()
    text = SENTENCES[2]
    encoded = tokenizer(text, return_tensors="pt", return_offsets_mapping=True)
    offsets = encoded.pop("offset_mapping")[0].tolist()
    with torch.inference_mode():
        keep = loaded(**encoded).logits.softmax(-1)[0, :, 1].tolist()
    units = split(text)
    expected: list[float] = []
    for unit in units.units:
        own = [k for k, (a, b) in zip(keep, offsets, strict=True) if a < unit.end and b > unit.body]
        expected.append(sum(own) / len(own))
    assert near(TokenClassifier(str(checkpoint)).score([units])[0], expected)


@model
def test_a_long_text_scores_like_its_windows_alone(checkpoint: Path) -> None:
    counter = make_counter(str(checkpoint))
    head, overlap = " ".join(SENTENCES[:3]), 8
    size = counter.count(head)
    text = " ".join(SENTENCES * 3)
    assert len(windows(counter.count(text), size, overlap)) > 2
    [scores] = TokenClassifier(str(checkpoint), window=size + 2, overlap=overlap).score(
        [split(text)]
    )
    [alone] = TokenClassifier(str(checkpoint)).score([split(head)])
    owned = [u for u in split(head).units if counter.count(head[: u.end]) <= size - overlap // 2]
    assert len(owned) > 20
    assert near(scores[: len(owned)], alone[: len(owned)])


@model
def test_special_ids_come_from_the_tokenizer(checkpoint: Path) -> None:
    seen: list[list[int]] = []
    scorer = TokenClassifier(str(checkpoint))
    loaded = scorer.load()
    assert (loaded.prefix, loaded.suffix) == ([101], [102])
    inner = loaded._model  # pyright: ignore[reportPrivateUsage]
    hook = inner.register_forward_pre_hook(
        lambda _, args, kwargs: seen.extend(kwargs["input_ids"].tolist()), with_kwargs=True
    )
    scorer.score([split(" ".join(SENTENCES * 30))])
    hook.remove()
    assert len(seen) > 2
    assert all(row[0] == 101 and row.count(102) == 1 and row.count(101) == 1 for row in seen)
    assert max(map(len, seen)) <= 512


@model
def test_text_that_spells_a_special_token_sends_none(checkpoint: Path) -> None:
    loaded = TokenClassifier(str(checkpoint)).load()
    [(ids, _)] = loaded.encode(["a [SEP] b [PAD] [CLS]"])
    assert not {0, 101, 102} & set(ids.tolist())


@model
def test_the_folders_name_does_not_matter(checkpoint: Path, tmp_path: Path) -> None:
    other = tmp_path / "xlm-roberta-not-really"
    shutil.copytree(checkpoint, other)
    units = [split(s) for s in SENTENCES]
    assert TokenClassifier(str(other)).score(units) == TokenClassifier(str(checkpoint)).score(units)


@model
@pytest.mark.parametrize("text", ["", "𓀀𓀁 𓀂", "a" * 3000, "\ud800\0\ufeff", "🚀✅"])
def test_unknown_words_get_a_score_and_nothing_breaks(checkpoint: Path, text: str) -> None:
    [scores] = TokenClassifier(str(checkpoint)).score([split(f"{text} and words")])
    assert all(0 <= score <= 1 for score in scores)
    assert max(scores[0], scores[-1]) > 0


@model
def test_threads_get_the_same_scores(checkpoint: Path) -> None:
    scorer = TokenClassifier(str(checkpoint))
    units: list[Units] = [split(s) for s in SENTENCES] * 3
    expected = scorer.score(units)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: scorer.score(units), range(8)))
    assert all(all(map(near, rows, expected)) for rows in found)


@model
def test_a_compressor_runs_on_it_within_its_budget(checkpoint: Path) -> None:
    compressor = Compressor(make_scorer(str(checkpoint)), make_counter("minilm"))
    texts = [" ".join(SENTENCES * n) for n in (1, 3, 9)]
    for result in compressor.compress(texts, Budget(rate=0.5)):
        assert result.tokens_out <= 0.5 * result.tokens_in
        assert result.tokens_out >= 0.5 * result.tokens_in - 12
        assert result.compressor == str(checkpoint)


@model
def test_scoring_leaves_the_random_state_alone(checkpoint: Path) -> None:
    import torch

    torch.manual_seed(3)
    before = torch.get_rng_state()
    TokenClassifier(str(checkpoint)).score([split(SENTENCES[0])])
    assert torch.equal(before, torch.get_rng_state())


@model
def test_a_model_without_the_head_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="no token classifier"):
        make_scorer("minilm")
    nine = tmp_path / "ner"
    shutil.copytree(checkpoint, nine)
    config = json.loads((nine / "config.json").read_text())
    config["id2label"] = {str(i): f"L{i}" for i in range(9)}
    (nine / "config.json").write_text(json.dumps(config))
    with pytest.raises(InvalidRequest, match="9 labels"):
        make_scorer(str(nine))


def test_an_unknown_model_is_said(tmp_path: Path) -> None:
    with pytest.raises(HeadraceError, match="nowhere"):
        make_scorer(str(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    ("length", "room", "overlap"), [(1, 8, 2), (8, 8, 2), (9, 8, 2), (100, 8, 3)]
)
def test_each_token_has_one_owner(length: int, room: int, overlap: int) -> None:
    owned: list[int] = []
    for start, end in windows(length, room, overlap):
        assert end - start <= room
        owned += range(*owners(Window(0, start, end), length, overlap))
    assert owned == list(range(length))


@pytest.fixture(scope="module")
def xlm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny XLM-RoBERTa with a Unigram tokenizer, in a folder whose name says nothing."""
    from parity.checkpoints import xlm_roberta

    return xlm_roberta(SENTENCES, tmp_path_factory.mktemp("xlm")).rename(
        tmp_path_factory.mktemp("named") / "m2"
    )


def test_xlm_roberta_gets_its_own_special_tokens_and_positions(xlm: Path) -> None:
    # #181: BERT's special tokens, all of them unknown
    loaded = TokenClassifier(str(xlm), device="cpu").load()
    assert (loaded.prefix, loaded.suffix, loaded.pad, loaded.unknown) == ([0], [2], 1, 3)
    assert loaded.room(4096) == 510
    [(ids, offsets)] = loaded.encode(["Costs rise to </s> 🚀."])
    assert not {0, 1, 2} & set(ids.tolist())
    assert offsets[0].tolist() == [0, 5]


def test_xlm_roberta_scores_are_the_models_own(xlm: Path) -> None:
    import torch
    from transformers import AutoTokenizer, XLMRobertaForTokenClassification

    tokenizer: Any = cast("Any", AutoTokenizer).from_pretrained(str(xlm))
    kind = cast("Any", XLMRobertaForTokenClassification)
    loaded: Any = kind.from_pretrained(str(xlm)).eval()
    expected: list[list[float]] = []
    for text in SENTENCES:
        encoded = tokenizer(text, return_tensors="pt", return_offsets_mapping=True)
        offsets = encoded.pop("offset_mapping")[0].tolist()
        encoded.pop("token_type_ids", None)
        with torch.inference_mode():
            keep = loaded(**encoded).logits.softmax(-1)[0, :, 1].tolist()
        pairs = [(k, a, b) for k, (a, b) in zip(keep, offsets, strict=True) if b > a]
        row: list[float] = []
        for unit in split(text).units:
            own = [k for k, a, b in pairs if a < unit.end and b > unit.body]
            row.append(sum(own) / len(own))
        expected.append(row)
    units = [split(text) for text in SENTENCES]
    assert all(map(near, TokenClassifier(str(xlm), device="cpu").score(units), expected))


def test_a_long_xlm_roberta_text_fills_its_positions(xlm: Path) -> None:
    [scores] = TokenClassifier(str(xlm), device="cpu").score([split("word " * 1200)])
    assert len(scores) == 1200


def test_first_takes_the_first_token(xlm: Path) -> None:
    units = [split("Committeeship unheardof rises.")]
    mean = TokenClassifier(str(xlm), device="cpu")
    first = mean.reducing("first")
    assert first.load() is mean.load()
    assert mean.reducing("mean") is mean
    assert not near(first.score(units)[0], mean.score(units)[0])


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_other_precisions_keep_nearly_the_same(xlm: Path, precision: Any) -> None:
    units = [split(" ".join(SENTENCES) * 4)]
    [plain] = TokenClassifier(str(xlm), device="cpu").score(units)
    [other] = TokenClassifier(str(xlm), device="cpu", precision=precision).score(units)
    assert other != plain
    assert sum(abs(a - b) for a, b in zip(plain, other, strict=True)) / len(plain) < 0.05


def test_options_that_make_no_sense_are_refused(xlm: Path) -> None:
    with pytest.raises(InvalidRequest, match="precision must be"):
        TokenClassifier(str(xlm), precision=cast("Any", "float16"))
    with pytest.raises(InvalidRequest, match="int8 runs on the CPU only"):
        TokenClassifier(str(xlm), precision="int8", device="cuda").load()


def test_windows_end_where_sentences_do() -> None:
    found = stretches(30, 12, 4, [5, 10, 19, 29])
    assert [(s.start, s.end) for s in found] == [(0, 10), (10, 22), (18, 30)]
    owned = [i for s in found for i in range(s.first, s.last)]
    assert owned == list(range(30))
