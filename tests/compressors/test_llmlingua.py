"""The drop-in for llmlingua. Numbers are issues of microsoft/LLMLingua, or of COMPRESSION.md."""

from __future__ import annotations

import copy
import inspect
import json
import os
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from headrace.compressors import ApproximateCounter, openai_tokens
from headrace.compressors.llmlingua import PromptCompressor
from headrace.compressors.llmlingua.filtering import ordered
from headrace.compressors.llmlingua.ranking import METHODS
from headrace.middleware.errors import HeadraceError, InvalidRequest

RECORDED: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "parity" / "recorded.json").read_text("utf-8")
)
TEXT = (
    "The committee met on 12 May 2021 to talk about the bridge, and many people came to listen."
    " Costs rise to 1,234.56 EUR, said Ann Lee, whose plan KA-01-HH-1234 is at"
    " https://example.com/plan?x=1. Nobody should start before the permit is there."
)
DOCUMENTS = [
    "Bananas are yellow and grow in warm countries near the sea.",
    "The bridge was built in 1931 by Ann Lee and is still open today.",
    "Cats sleep for most of the day and hunt at night in the garden.",
    "A train leaves at noon for the coast every second day of the week.",
]


@pytest.fixture
def compressor() -> PromptCompressor:
    return PromptCompressor("lexical", use_llmlingua2=True, counter=ApproximateCounter())


@pytest.mark.parametrize(
    "method",
    [
        "__init__",
        "compress_prompt",
        "compress_prompt_llmlingua2",
        "structured_compress_prompt",
        "compress_json",
        "recover",
        "get_rank_results",
    ],
)
def test_signatures_are_the_references(method: str) -> None:
    # #34: a renamed argument broke an integration
    own = list(inspect.signature(getattr(PromptCompressor, method)).parameters.values())[1:]
    named = [p for p in own if p.kind is not inspect.Parameter.KEYWORD_ONLY]
    mutable: list[Any] = [{}, [], [".", "\n"]]
    for parameter, (name, *default) in zip(named, RECORDED["signatures"][method], strict=True):
        assert parameter.name == name
        expected = default[0] if default else inspect.Parameter.empty
        assert parameter.default == (None if expected in mutable else expected)


def test_the_dictionary_is_the_references(compressor: PromptCompressor) -> None:
    result = compressor.compress_prompt([TEXT], rate=0.5)
    assert result["ratio"].endswith("x")
    assert result["rate"].endswith("%")
    assert result["saving"] == ", Saving $0.0 in GPT-4."
    assert result["origin_tokens"] == ApproximateCounter().count(TEXT)
    assert result["compressed_prompt"] == "\n\n".join(result["compressed_prompt_list"])
    assert compressor(TEXT, rate=0.5) == result


@pytest.mark.parametrize("rate", [0.9, 0.75, 0.5, 0.33, 0.2, 0.1])
@pytest.mark.parametrize("repeats", [1, 8, 40])
def test_a_rate_is_never_exceeded(compressor: PromptCompressor, rate: float, repeats: int) -> None:
    # #195, #196: the reference kept 100 % of short prompts and 116 % at rate .9
    text = TEXT * repeats
    result = compressor.compress_prompt(text, rate=rate)
    assert result["compressed_tokens"] <= rate * result["origin_tokens"]
    assert result["compressed_tokens"] >= rate * result["origin_tokens"] - 20


def test_a_small_target_is_met(compressor: PromptCompressor) -> None:
    # #138: an 18-token text came back whole
    result = compressor.compress_prompt(TEXT, target_token=10)
    assert 0 < result["compressed_tokens"] <= 10


def test_rate_one_is_identity_and_rate_zero_is_empty(compressor: PromptCompressor) -> None:
    # 1.4: at rate 1 the reference's text grew; rate 0 crashed
    assert compressor.compress_prompt(TEXT, rate=1)["compressed_prompt"] == TEXT
    assert compressor.compress_prompt(TEXT, rate=0.0)["compressed_prompt"] == ""


@pytest.mark.parametrize("rate", [1.5, -1, float("nan"), "half", True])
def test_rates_that_make_no_sense_are_refused(compressor: PromptCompressor, rate: Any) -> None:
    with pytest.raises(InvalidRequest, match="rate must be"):
        compressor.compress_prompt(TEXT, rate=rate)


@pytest.mark.parametrize(
    "context", [[], "", [""], ["", TEXT], "Hello", "🚀✅", "x" * 3000, "\0\ufeff"]
)
@pytest.mark.parametrize("target", [-1, 0, 10])
def test_no_text_breaks_it(compressor: PromptCompressor, context: Any, target: int) -> None:
    # #14, #144, PR #145, and one-word, emoji-only and empty documents
    result = compressor.compress_prompt(context, "Be brief.", "Who?", target_token=target)
    assert result["compressed_prompt"].startswith("Be brief.")
    assert result["compressed_prompt"].endswith("Who?")


@pytest.mark.parametrize("context", [[3], [None], [["a"]]])
def test_what_is_no_text_is_said(compressor: PromptCompressor, context: Any) -> None:
    with pytest.raises(InvalidRequest, match="context 0 must be a string"):
        compressor.compress_prompt(context)


def test_text_that_spells_a_special_token_passes(compressor: PromptCompressor) -> None:
    # langchain #923: <|endoftext|> raised ValueError
    result = compressor.compress_prompt("Tokens such as <|endoftext|> end.", rate=0.99)
    assert "<|endoftext|>" in result["compressed_prompt"]


def test_identifiers_and_links_are_whole_or_absent(compressor: PromptCompressor) -> None:
    # #93, #202, #149
    for rate in (0.2, 0.4, 0.6, 0.8):
        prompt = compressor.compress_prompt(TEXT, rate=rate)["compressed_prompt"]
        words = [word.strip(".,") for word in prompt.split()]
        assert set(words) <= {word.strip(".,") for word in TEXT.split()}
        assert ("1,234" in prompt) == ("1,234.56 EUR" in prompt)
        assert ("example.com" in prompt) == ("https://example.com/plan?x=1" in prompt)


def test_no_document_goes_without_a_question(compressor: PromptCompressor) -> None:
    # 1.3: the reference's context filter dropped documents with no question involved
    result = compressor.compress_prompt(DOCUMENTS, rate=0.6)
    assert result["kept_contexts"] == [0, 1, 2, 3]
    assert all(result["compressed_prompt_list"])


def test_a_question_chooses_documents_and_words_in_one_call(compressor: PromptCompressor) -> None:
    # #162, #203, and #80: which documents survived
    result = compressor.compress_prompt(
        DOCUMENTS, question="Who built the bridge?", target_context=1, rate=0.2
    )
    assert result["kept_contexts"] == [1]
    assert "Ann Lee" in result["compressed_prompt"]
    assert result["compressed_prompt"].endswith("Who built the bridge?")


def test_forced_contexts_stay_and_no_argument_changes(compressor: PromptCompressor) -> None:
    # 1.3: the caller's list was mutated; 1.6-3: mutable defaults; 1.6-4: a leak
    arguments: dict[str, Any] = {
        "context": list(DOCUMENTS),
        "force_context_ids": [2],
        "force_tokens": ["noon"],
        "chunk_end_tokens": ["."],
    }
    before = copy.deepcopy(arguments)
    result = compressor.compress_prompt(**arguments, question="Who built it?", target_context=2)
    assert arguments == before
    assert 2 in result["kept_contexts"]
    config: dict[str, Any] = {}
    PromptCompressor("lexical", model_config=config, counter=ApproximateCounter())
    assert config == {}
    with pytest.raises(InvalidRequest, match="force_context_ids has 9"):
        compressor.compress_prompt(DOCUMENTS, question="Who?", force_context_ids=[9])


@pytest.mark.parametrize("budget", ["+100", "*1.5", "-10", "/2"])
def test_a_context_budget_is_arithmetic(budget: str) -> None:
    plain = PromptCompressor("lexical", counter=ApproximateCounter())
    assert plain.compress_prompt(DOCUMENTS, question="Who?", context_budget=budget)


@pytest.mark.parametrize("budget", ["+__import__('os').getpid()", "**9**9**9", "+1e9", "", 7])
def test_a_context_budget_is_never_run(compressor: PromptCompressor, budget: Any) -> None:
    # 1.6-5: eval on an option
    with pytest.raises(InvalidRequest, match="context_budget"):
        compressor.compress_prompt(DOCUMENTS, question="Who?", context_budget=budget)


def test_nothing_global_changes() -> None:
    # 1.2: seed_everything(42) for the whole process
    import numpy as np

    before = random.getstate(), str(np.random.get_state()), os.environ.get("PYTHONHASHSEED")
    PromptCompressor("lexical", use_llmlingua2=True).compress_prompt(TEXT)
    after = random.getstate(), str(np.random.get_state()), os.environ.get("PYTHONHASHSEED")
    assert before == after


def test_it_starts_without_tiktokens_file(monkeypatch: pytest.MonkeyPatch) -> None:
    # tiktoken #369, #281, #232: offline start failed
    openai_tokens._load.cache_clear()  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(openai_tokens, "places", list)
    result = PromptCompressor("lexical").compress_prompt(TEXT)
    openai_tokens._load.cache_clear()  # pyright: ignore[reportPrivateUsage]
    assert any("estimated" in note for note in result["notes"])


def test_the_default_model_is_not_fetched() -> None:
    # #42: nothing leaves the machine, and it says what scores
    result = PromptCompressor(counter=ApproximateCounter()).compress_prompt(TEXT)
    assert any("lexical scores" in note for note in result["notes"])


def test_flags_exclude_one_another() -> None:
    # #235: the SecurityLingua flag alone ran the wrong path
    with pytest.raises(InvalidRequest, match="exclude"):
        PromptCompressor("lexical", use_llmlingua2=True, use_slingua=True)
    slingua = PromptCompressor("lexical", use_slingua=True, counter=ApproximateCounter())
    low, high = (slingua.compress_prompt(TEXT, rate=rate) for rate in (0.1, 0.9))
    assert low["compressed_prompt"] == high["compressed_prompt"]
    with pytest.raises(InvalidRequest, match="reproduces LLMLingua-2 only"):
        PromptCompressor("lexical", reference=True, counter=ApproximateCounter())


def test_parameters_without_effect_are_said(compressor: PromptCompressor) -> None:
    result = compressor.compress_prompt(TEXT, force_context_number=3, keep_split=True)
    told = " ".join(result["notes"])
    assert "force_context_number is not used" in told
    assert "keep_split is not used" in told
    strange = PromptCompressor(
        "lexical",
        model_config={"trust_remote_code": True, "revision": "x"},
        open_api_config={"api_key": "k"},
        counter=ApproximateCounter(),
    )
    told = " ".join(strange.compress_prompt(TEXT)["notes"])
    assert all(word in told for word in ("trust_remote_code", "'revision'", "open_api_config"))


def test_word_labels_say_what_stayed(compressor: PromptCompressor) -> None:
    result = compressor.compress_prompt(
        DOCUMENTS, rate=0.5, return_word_label=True, word_sep="\n", label_sep="\t"
    )
    pairs = [line.split("\t") for line in result["fn_labeled_original_prompt"].split("\n")]
    kept = [word for word, label in pairs if label == "1"]
    assert kept == [word.strip(".") for word in result["compressed_prompt"].split()]
    assert 0 < len(kept) < len(pairs)


def test_forced_tokens_and_digits_stay(compressor: PromptCompressor) -> None:
    prompt = compressor.compress_prompt(TEXT, rate=0.3, force_tokens=["listen"])
    assert "listen" in prompt["compressed_prompt"]
    prompt = compressor.compress_prompt(TEXT, rate=0.3, force_reserve_digit=True)
    assert all(part in prompt["compressed_prompt"] for part in ("12 May 2021", "1,234.56 EUR"))
    with pytest.raises(InvalidRequest, match="non-empty"):
        compressor.compress_prompt(TEXT, force_tokens=[""])


def test_structured_parts_keep_their_rates(compressor: PromptCompressor) -> None:
    # #114, #183, 1.6-6, 1.6-7: "<" or text outside tags was dropped, kept parts were touched
    whole = "ID  A-1, a < b and <b>bold</b>\n"
    context = f"{TEXT} <llmlingua, compress=False>{whole}</llmlingua><llmlingua, rate=0.3>{TEXT}"
    result = compressor.structured_compress_prompt([f"{context}</llmlingua>"], rate=0.6)
    before, after = result["compressed_prompt"].split(whole)
    count = ApproximateCounter().count
    assert 0.3 * count(TEXT) < count(before) <= 0.6 * count(TEXT)
    assert 0 < count(after) <= 0.3 * count(TEXT)


@pytest.mark.parametrize(
    "text",
    [
        "<llmlingua>a",
        "</llmlingua>",
        "<llmlingua, rate=2>a</llmlingua>",
        "<llmlingua, x=1>a</llmlingua>",
    ],
)
def test_tags_that_make_no_sense_are_said(compressor: PromptCompressor, text: str) -> None:
    with pytest.raises(InvalidRequest, match="llmlingua"):
        compressor.structured_compress_prompt([text])


def test_json_keeps_records_types_and_escapes(compressor: PromptCompressor) -> None:
    # #183, 1.6-8, headroom #3673, PR #1536
    data = {
        "id": 7,
        "bio": f'{TEXT} He said "yes, no", and a < b\n twice.',
        "tags": ["a, b", TEXT, 'quoted "word"', None],
        "nested": {"deep": [{"text": TEXT, "n": 1.5}], "ok": True},
        "secret": "sk-a,  b",
    }
    keep = {"rate": 1, "compress": False, "value_type": "str", "pair_remove": False}
    config = {key: {**keep, "rate": 0.4, "compress": key not in ("id", "secret")} for key in data}
    result = compressor.compress_json(data, config)
    short = result["compressed_prompt"]
    assert list(short) == list(data)
    assert (short["id"], short["secret"]) == (7, "sk-a,  b")
    assert len(short["tags"]) == 4
    assert short["tags"][3] is None
    assert short["nested"]["deep"][0]["n"] == 1.5
    assert short["nested"]["ok"] is True
    assert 0 < len(short["bio"]) < 0.7 * len(data["bio"])  # type: ignore[arg-type]
    assert len(short["nested"]["deep"][0]["text"]) < len(TEXT)
    with pytest.raises(InvalidRequest, match="differ in the keys"):
        compressor.compress_json(data, {"id": keep})


def test_json_pairs_go_only_where_they_may(compressor: PromptCompressor, tmp_path: Path) -> None:
    data = {f"k{n}": document for n, document in enumerate(DOCUMENTS)}
    lines = [
        f"{key}: {{rate: 1, compress: false, value_type: str, pair_remove: {key != 'k0'}}}"
        for key in data
    ]
    path = tmp_path / "config.yaml"
    path.write_text("\n".join(lines), "utf-8")
    options: dict[str, Any] = {"question": "Who built the bridge?", "rate": 0.4}
    whole = compressor.compress_json(data, str(path), **options)
    assert whole["compressed_prompt"] == data
    fewer = compressor.compress_json(
        data, str(path), **options, use_keyvalue_level_filter=True, context_budget="-5"
    )
    assert list(fewer["compressed_prompt"]) == ["k0", "k1"]


def test_answers_are_recovered(compressor: PromptCompressor) -> None:
    # 1.6-10: IndexError on an empty response
    assert compressor.recover("", "...", "") == ""
    original = "The bridge, built in 1931 by Ann Lee, is open."
    assert compressor.recover(original, "built by Ann", "It was built by Ann.") == (
        "It was built in 1931 by Ann."
    )


@pytest.mark.parametrize("method", METHODS)
def test_every_ranking_method_ranks(compressor: PromptCompressor, method: str) -> None:
    # 1.5: dead APIs, absent packages, documents lost
    order = compressor.get_rank_results(DOCUMENTS, "Who built the bridge?", method, "none", [])
    assert sorted(i for i, _ in order) == [0, 1, 2, 3]
    if method not in ("llmlingua", "gzip"):
        assert order[0][0] == 1
    with pytest.raises(InvalidRequest, match="rank_method must be one of"):
        compressor.get_rank_results(DOCUMENTS, "Who?", "bm26", "none", [])


def test_orders_are_the_references() -> None:
    assert ordered([3, 1, 0, 2, 4], "two_stage") == [3, 0, 4, 2, 1]
    assert ordered([3, 1, 0], "sort") == [3, 1, 0]
    with pytest.raises(InvalidRequest, match="reorder_context"):
        ordered([1], "sorted")


def test_threads_get_the_same(compressor: PromptCompressor) -> None:
    expected = compressor.compress_prompt(DOCUMENTS, rate=0.5)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: compressor.compress_prompt(DOCUMENTS, rate=0.5), range(8)))
    assert all(result == expected for result in found)


def test_no_model_is_said() -> None:
    with pytest.raises(HeadraceError, match="nowhere"):
        PromptCompressor("./nowhere", use_llmlingua2=True, counter=ApproximateCounter())


def test_a_compressed_prompt_of_other_words_recovers_nothing(compressor: PromptCompressor) -> None:
    with pytest.warns(UserWarning, match="recover leaves the response"):
        assert compressor.recover("One two.", "three", "It is three.") == "It is three."
