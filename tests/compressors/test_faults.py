"""What users of other compressors hit; docs/faults.md lists all of it and every test.

A test is named after the thread in its docstring; issues are of microsoft/LLMLingua where no
repository is named. The inputs were written for these tests.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from packaging.requirements import Requirement

from headrace.compressors import (
    ApproximateCounter,
    Budget,
    Compressor,
    Lexical,
    TokenClassifier,
    make_counter,
    make_scorer,
    split,
)
from headrace.compressors.llmlingua import PromptCompressor
from headrace.compressors.scorers.windows import even_windows
from headrace.middleware.models import resolve

ROOT = Path(__file__).resolve().parents[2]
COUNTER = ApproximateCounter()
SENTENCE = (
    "the mill stands on the river and Anna Weber built it in 1742 when bread was cheap but nobody"
    " knows why the buyer paid so much for flour that was not there"
)
WORDS = SENTENCE.split()
DOCUMENTS = [
    "Bananas are yellow and grow in warm countries near the sea.",
    "The bridge was built in 1931 by Ann Lee and is still open today.",
    "Cats sleep for most of the day and hunt at night in the garden.",
]
QUESTION = "Who built the bridge?"


@pytest.fixture(scope="module")
def xlm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small classifier of XLM-RoBERTa's family, drawn once."""
    from parity.checkpoints import xlm_roberta

    return xlm_roberta([SENTENCE, *DOCUMENTS], tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module", params=["xlm", pytest.param("bert", marks=pytest.mark.model)])
def checkpoint(
    request: pytest.FixtureRequest, xlm: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A classifier of each family."""
    from parity.checkpoints import bert

    if request.param == "xlm":
        return xlm
    return bert(resolve("minilm"), tmp_path_factory.mktemp("models"))


def batches(scorer: TokenClassifier, text: str) -> list[list[list[int]]]:
    """Score a text and return the ids of every batch that the model saw."""
    seen: list[list[list[int]]] = []

    def see(_: Any, __: Any, inputs: dict[str, Any]) -> None:
        seen.append(inputs["input_ids"].tolist())

    inner = scorer.load()._model  # pyright: ignore[reportPrivateUsage]
    hook = inner.register_forward_pre_hook(see, with_kwargs=True)
    [scores] = scorer.score([split(text)])
    hook.remove()
    assert len(scores) == len(split(text).units)
    return seen


@pytest.mark.parametrize("is_classifier", [True, False])
def test_18_tokens_become_10(is_classifier: bool) -> None:
    """#138: a text of 18 tokens came back whole at a target of 10."""
    text = "The old red fox ran over the green hill and then it slept all day in sun."
    assert COUNTER.count(text) == 18
    compressor = PromptCompressor("lexical", use_llmlingua2=is_classifier, counter=COUNTER)
    result = compressor.compress_prompt(text, target_token=10)
    assert 9 <= result["compressed_tokens"] <= 10


def test_34_tokens_become_17() -> None:
    """#196: prompts below 200 tokens were not compressed at all."""
    text = f"{SENTENCE} again, and so it stays."
    assert COUNTER.count(text) >= 34
    compressor = PromptCompressor("lexical", counter=COUNTER)
    result = compressor.compress_prompt(text, rate=0.5)
    assert 0.4 < result["compressed_tokens"] / result["origin_tokens"] <= 0.5


@pytest.mark.parametrize(("scorer", "most"), [("lexical", 1.1), ("mini", 1.4)])
def test_the_last_of_many_paragraphs_is_cut_like_the_rest(scorer: str, most: float) -> None:
    """#73: the last segment stayed uncompressed."""
    compressor = Compressor(make_scorer(scorer), COUNTER)
    shares: list[float] = []
    for count in (8, 10, 12, 13, 14, 16, 18, 20):
        text = "\n\n".join([" ".join(DOCUMENTS)] * count)
        [result] = compressor.compress([text], Budget(rate=0.5))
        sizes = [len(paragraph) for paragraph in result.text.split("\n\n")]
        assert len(sizes) == count
        shares.append(sizes[-1] / fmean(sizes))
    assert 0.7 < fmean(shares) <= most


@pytest.mark.parametrize(("length", "room", "overlap"), [(520, 254, 32), (90, 40, 8), (9, 40, 8)])
def test_the_last_window_is_as_long_as_the_others(length: int, room: int, overlap: int) -> None:
    """#73: what is read in a short window keeps more."""
    found = even_windows(length, room, overlap)
    sizes = [end - start for start, end in found]
    assert (found[0][0], found[-1][1]) == (0, length)
    assert max(sizes) <= room
    assert max(sizes) - min(sizes) <= len(sizes)
    assert all(a[1] - b[0] == overlap for a, b in pairwise(found))


def test_json_and_tags_with_a_real_tokenizer(checkpoint: Path) -> None:
    """#183, #114: tags went through the tokenizer and matched nothing: ZeroDivisionError."""
    compressor = PromptCompressor(str(checkpoint), use_llmlingua2=True, counter=COUNTER)
    kept = {"rate": 1, "compress": False, "value_type": "str", "pair_remove": False}
    config = {"id": kept, "bio": {**kept, "rate": 0.7, "compress": True}}
    data = {"id": 7, "bio": "Alice met Bob."}
    short = compressor.compress_json(data, config)["compressed_prompt"]
    assert short["id"] == 7
    assert set(short["bio"].strip(".").split()) <= {"Alice", "met", "Bob"}
    text = (
        f"<llmlingua, compress=False>ID  A-1</llmlingua><llmlingua, rate=0.2>{SENTENCE}</llmlingua>"
    )
    prompt = compressor.structured_compress_prompt([text])["compressed_prompt"]
    assert prompt.startswith("ID  A-1")
    assert 0 < COUNTER.count(prompt[7:]) <= 0.2 * COUNTER.count(SENTENCE)


def test_no_gpu_is_needed(xlm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """#55: "Torch not compiled with CUDA": the default device was a GPU."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    compressor = PromptCompressor(str(xlm), use_llmlingua2=True, counter=COUNTER)
    assert compressor.compress_prompt(DOCUMENTS, rate=0.5)["compressed_prompt"]


@pytest.mark.slow
def test_a_hidden_gpu_is_not_looked_for(xlm: Path) -> None:
    """#216: the same with CUDA_VISIBLE_DEVICES=-1."""
    code = (
        "from headrace.compressors.llmlingua import PromptCompressor\n"
        f"compressor = PromptCompressor({str(xlm)!r}, use_llmlingua2=True)\n"
        f"print(compressor.compress_prompt({DOCUMENTS!r})['compressed_prompt'])\n"
    )
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}
    result = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip()


@pytest.fixture
def told() -> Iterator[list[str]]:
    """Collect what transformers logs, which pytest does not see."""
    lines: list[str] = []

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    logger, handler = logging.getLogger("transformers"), Collect()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.WARNING)
    yield lines
    logger.removeHandler(handler)
    logger.setLevel(level)


def test_3000_tokens_warn_of_nothing(checkpoint: Path, told: list[str], capfd: Any) -> None:
    """#165: "longer than the specified maximum (614 > 512) ... indexing errors"."""
    compressor = Compressor(TokenClassifier(str(checkpoint)), make_counter(str(checkpoint)))
    [result] = compressor.compress([" ".join(WORDS * 110)], Budget(rate=0.5))
    assert result.tokens_in > 3000
    assert result.tokens_out <= 0.5 * result.tokens_in
    assert told == []
    assert capfd.readouterr() == ("", "")


def test_2000_words_without_a_full_stop(checkpoint: Path) -> None:
    """zjunlp/LightMem#71 and #181: the last special token was lost, words were cut at 512."""
    scorer = TokenClassifier(str(checkpoint), device="cpu")
    loaded = scorer.load()
    rows = [row for batch in batches(scorer, " ".join((WORDS * 70)[:2000])) for row in batch]
    assert len(rows) > 3
    for row in rows:
        ids = [i for i in row if i != loaded.pad]
        assert len(row) <= 512
        assert ids[: len(loaded.prefix)] == loaded.prefix
        assert ids[-len(loaded.suffix) :] == loaded.suffix
        assert sum(i in (loaded.prefix[0], loaded.suffix[0]) for i in ids) == 2


@pytest.mark.parametrize("limit", [None, 4096])
def test_27000_words_take_no_more_than_a_batch(xlm: Path, limit: int | None) -> None:
    """#147, RUC-NLPIR/FlashRAG#220: out of memory on long inputs and many documents."""
    scorer = TokenClassifier(str(xlm), device="cpu", batch_tokens=limit)
    sizes = [len(batch) * len(batch[0]) for batch in batches(scorer, " ".join(WORDS * 871))]
    assert max(sizes) <= (limit or 1024)
    assert sum(sizes) < 1.3 * 27_001


def test_20_words_are_not_padded_to_512(checkpoint: Path) -> None:
    """#64: short texts took as long as 512 tokens."""
    [[row]] = batches(TokenClassifier(str(checkpoint), device="cpu"), " ".join(WORDS[:20]))
    assert len(row) < 64


@pytest.mark.parametrize("rate", [x / 20 for x in range(21)])
@pytest.mark.parametrize(
    ("text", "wholes"),
    [
        (
            "Plate KA-01-HH-1234, order 7F3A-99B, IBAN DE44 5001",
            ["KA-01-HH-1234", "7F3A-99B", "DE44 5001"],
        ),
        (
            "The key is sk-proj-9aB_c-7Q12 and the picture aGVsbG8gd29ybGQhIQ== is what it opens.",
            ["sk-proj-9aB_c-7Q12", "aGVsbG8gd29ybGQhIQ=="],
        ),
    ],
    ids=["LLMLingua#93", "headroom#2257"],
)
def test_ids_and_secrets_are_whole_or_absent(text: str, wholes: list[str], rate: float) -> None:
    """#93, headroomlabs-ai/headroom PR #2257: licence plates, ids and keys were corrupted."""
    [result] = Compressor(make_scorer("lexical"), make_counter()).compress(
        [text], Budget(rate=rate)
    )
    rest = result.text
    for whole in wholes:
        rest = rest.replace(whole, "")
    words = {word.strip(".,") for word in text.split()} - {*" ".join(wholes).split()}
    assert {word.strip(".,") for word in rest.split()} - {""} <= words


@pytest.mark.parametrize("context", [[], "", ["", "  "]])
def test_a_prompt_without_contexts_is_said(context: Any) -> None:
    """#60: "does not compress": the text had been given as the instruction."""
    compressor = PromptCompressor("lexical", counter=COUNTER)
    result = compressor.compress_prompt(context, SENTENCE, QUESTION)
    assert result["compressed_prompt"] == f"{SENTENCE}\n\n{QUESTION}"
    assert any("nothing to compress" in note for note in result["notes"])
    assert not any("nothing" in n for n in compressor.compress_prompt(DOCUMENTS)["notes"])


@pytest.mark.parametrize("is_classifier", [True, False])
def test_llamaindex_gets_what_it_asks_for(is_classifier: bool, xlm: Path) -> None:
    """run-llama/llama_index#17492, PR #17531: the call that its postprocessor makes."""
    name = str(xlm) if is_classifier else "lexical"
    compressor = PromptCompressor(
        model_name=name,
        device_map="cuda",
        model_config={},
        open_api_config={},
        use_llmlingua2=is_classifier,
    )
    result = compressor.compress_prompt(
        "".join(DOCUMENTS),
        instruction="Given the context, please answer the final question",
        question=QUESTION,
        target_token=20,
        rank_method="longllmlingua",
        condition_compare=True,
        condition_in_question="after",
        context_budget="+100",
        reorder_context="sort",
        dynamic_context_compression_ratio=0.3,
    )
    first, body, last = result["compressed_prompt"].split("\n\n")
    assert (first, last) == ("Given the context, please answer the final question", QUESTION)
    assert 0 < compressor.counter.count(body) <= 20


@pytest.mark.parametrize("target", [20, 40, 60, 100])
def test_langchain_finds_its_marks_again(target: int) -> None:
    """langchain-ai/langchain PR #17711: metadata hang on marks like <#ref1#> in the text."""
    marked = [f"\n\n<#ref{i}#> {text} <#ref{i}#>\n\n" for i, text in enumerate(DOCUMENTS)]
    compressor = PromptCompressor("lexical", device_map="cuda", counter=COUNTER)
    result = compressor.compress_prompt(
        context=marked,
        instruction="Given these documents, answer the question",
        question=QUESTION,
        target_token=target,
        rank_method="longllmlingua",
        concate_question=False,
        add_instruction=True,
        condition_compare=True,
    )
    body = "\n\n".join(result["compressed_prompt"].split("\n\n")[1:])
    assert "Ann Lee" in body
    assert COUNTER.count(body) <= target
    assert not re.search(r"[<>#]|ref", re.sub(r"<#ref[0-2]#>", "", body))


def test_dependencies_have_floors_and_no_ceilings() -> None:
    """#46: KeyError 'llama' on an old transformers; langchain PR #17711: version conflicts."""
    project = tomllib.loads(ROOT.joinpath("pyproject.toml").read_text("utf-8"))["project"]
    core = [Requirement(line) for line in project["dependencies"]]
    assert {"torch", "transformers"} <= {one.name for one in core}
    for one in core:
        assert {spec.operator for spec in one.specifier} == {">="}, one
    assert {"vllm", "ray", "tiktoken"} & {one.name for one in core} == set()


def test_no_file_is_2000_lines() -> None:
    """#119: everything was in one file."""
    for path in ROOT.joinpath("compressors").rglob("*.py"):
        assert len(path.read_text("utf-8").splitlines()) <= 400, path


def test_every_benchmark_that_the_docs_name_is_there() -> None:
    """#123, #146, #155 and others: results could not be reproduced, settings were missing."""
    pages = [ROOT / "README.md", *ROOT.joinpath("docs").glob("*.md")]
    text = "\n".join(page.read_text("utf-8") for page in pages)
    named = set(re.findall(r"benchmarks/\w+\.py", text))
    assert len(named) >= 3
    assert all((ROOT / name).is_file() for name in named), named


def test_a_budget_for_nothing_is_said_and_a_word_is_whole() -> None:
    """0.2.2 (no thread): one word became "", a word of 3,000 letters vanished without a note."""
    compressor = Compressor(Lexical(), COUNTER)
    [one] = compressor.compress(["Hello"], Budget(rate=0.5))
    assert one.text == ""
    assert one.reason == "no word fits into 0 tokens"
    [long] = compressor.compress(["a" * 3000], Budget(rate=0.5))
    assert long.text == ""
    assert long.reason is not None


@pytest.mark.parametrize("rate", [0.9, 0.7, 0.5, 0.3])
def test_nul_and_byte_order_mark_go_with_their_word_only(rate: float) -> None:
    """0.2.2 (no thread): both were lost at any rate."""
    text = "\ufeffThe\0 plan of the old mill was good and all liked it, the new one was not."
    [result] = Compressor(Lexical(), COUNTER).compress([text], Budget(rate=rate))
    assert result.text == "".join(text[a:b] for a, b in result.spans)
    assert ("The" in result.text) == ("\ufeffThe\0" in result.text)
