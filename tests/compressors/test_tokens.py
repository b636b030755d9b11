from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compressors import Budget, Compressor, make_counter, make_scorer, openai_tokens
from headrace.compressors.chat_tokens import count_messages, overhead
from headrace.middleware.errors import HeadraceError, InvalidRequest, ModelUnavailable

TEXT = (
    "The committee met on 12 May 2021 and agreed that the costs would rise to 1,234.56 EUR, which"
    " is more than anybody had expected. See https://example.com/plan for the whole story."
)


@given(st.text())
def test_no_text_counts_less_than_nothing(text: str) -> None:
    counter = make_counter()
    assert (counter.count(text) > 0) == bool(text)
    assert counter.count_many([text, text]) == [counter.count(text)] * 2


@given(st.text(), st.text())
def test_a_part_counts_no_more_than_the_whole(first: str, second: str) -> None:
    counter = make_counter()
    whole = counter.count(f"{first} {second}")
    assert whole >= max(counter.count(first), counter.count(second)) - 1


@pytest.mark.model
@pytest.mark.parametrize("name", ["minilm", "smollm2"])
def test_the_estimate_is_near_real_tokenizers_on_prose(name: str) -> None:
    real = make_counter(name).count(TEXT)
    assert abs(make_counter().count(TEXT) - real) <= 0.2 * real


@pytest.mark.model
@pytest.mark.parametrize("name", ["minilm", "smollm2"])
@pytest.mark.parametrize(
    "text", ["Tokens such as <|endoftext|> end.", "[SEP]", "\ud800", "\0", "🚀" * 40]
)
def test_real_tokenizers_take_any_text(name: str, text: str) -> None:
    assert make_counter(name).count(f"{text} end") > 0


@pytest.mark.model
def test_long_texts_are_not_truncated_and_specials_not_added() -> None:
    counter = make_counter("minilm")
    assert counter.count("a " * 5000) == 5000
    assert counter.count("") == 0


@pytest.mark.model
@pytest.mark.parametrize("name", ["minilm", "smollm2"])
@pytest.mark.parametrize("rate", [0.1, 0.35, 0.5, 0.8])
def test_budgets_hold_in_the_target_tokenizer(name: str, rate: float) -> None:
    counter = make_counter(name)
    [result] = Compressor(make_scorer("lexical"), counter).compress([TEXT * 20], Budget(rate=rate))
    assert result.tokens_out == counter.count(result.text)
    assert rate * result.tokens_in - 12 <= result.tokens_out <= rate * result.tokens_in


def test_a_missing_tokenizer_is_said(tmp_path: Path) -> None:
    with pytest.raises(HeadraceError, match="nowhere"):
        make_counter(str(tmp_path / "nowhere"))


def has(encoding: str) -> bool:
    try:
        return make_counter(encoding).count("a") == 1
    except ModelUnavailable:
        return False


needs_files = pytest.mark.skipif(
    not (has("cl100k_base") and has("o200k_base")),
    reason="tiktoken's files are not here: set TIKTOKEN_CACHE_DIR",
)


@needs_files
@pytest.mark.parametrize(
    ("name", "tokens"),
    [("cl100k_base", 12), ("gpt-4", 12), ("o200k_base", 12), ("gpt-4o-mini", 12), ("o3", 12)],
)
def test_openai_counts_special_tokens_as_text(name: str, tokens: int) -> None:
    counter = make_counter(name)
    assert abs(counter.count("Tokens such as <|endoftext|> end.") - tokens) <= 2
    assert counter.count("<|endoftext|>") > 1
    assert counter.count_many(["", "a", "a", "\ud800"])[:3] == [0, 1, 1]
    assert counter.name == name


@needs_files
@pytest.mark.parametrize("rate", [0.2, 0.5, 0.9])
def test_budgets_hold_in_openais_tokens(rate: float) -> None:
    counter = make_counter("gpt-4o")
    [result] = Compressor(make_scorer("lexical"), counter).compress([TEXT * 4], Budget(rate=rate))
    assert result.tokens_out == counter.count(result.text)
    assert rate * result.tokens_in - 12 <= result.tokens_out <= rate * result.tokens_in


def test_a_missing_file_is_said_and_never_fetched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("tiktoken")
    name, _ = openai_tokens.FILES["cl100k_base"]
    (tmp_path / name).write_bytes(b"damaged")
    monkeypatch.setattr(openai_tokens, "places", lambda: [tmp_path])
    monkeypatch.setattr("socket.socket.connect", None)
    openai_tokens._load.cache_clear()  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(ModelUnavailable, match="TIKTOKEN_CACHE_DIR"):
        make_counter("gpt-4")
    openai_tokens._load.cache_clear()  # pyright: ignore[reportPrivateUsage]
    assert (tmp_path / name).read_bytes() == b"damaged"


def test_places_are_those_of_tiktoken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert openai_tokens.places()[0] == tmp_path
    assert openai_tokens.encoding_of("gpt2") is None


CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Who built the bridge?"}]},
]


def test_a_chat_costs_openais_overhead() -> None:
    counter = make_counter()
    texts = counter.count_many(["system", "Be brief.", "user", "Who built the bridge?"])
    assert count_messages(CHAT, counter) == sum(texts) + 3 * 2 + 3
    named = [{**CHAT[0], "name": "ann"}]
    assert count_messages(named, counter) == count_messages(CHAT[:1], counter) + 2
    with pytest.raises(InvalidRequest, match="message 0 needs a role"):
        count_messages([{"content": "x"}], counter)


@pytest.mark.model
def test_a_chat_template_is_counted() -> None:
    counter = make_counter("smollm2")
    shown = (
        "<|im_start|>system\nBe brief.<|im_end|>\n"
        "<|im_start|>user\nWho built the bridge?<|im_end|>\n<|im_start|>assistant\n"
    )
    assert count_messages(CHAT, counter) == counter.count(shown)
    texts = counter.count_many(["Be brief.", "Who built the bridge?"])
    assert overhead(CHAT, counter) == counter.count(shown) - sum(texts)
    with pytest.raises(InvalidRequest, match="no chat template"):
        count_messages(CHAT, make_counter("minilm"))
