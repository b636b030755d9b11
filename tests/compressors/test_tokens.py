from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compressors import Budget, Compressor, make_counter, make_scorer
from headrace.middleware.errors import HeadraceError

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
    [result] = Compressor(make_scorer(), counter).compress([TEXT * 20], Budget(rate=rate))
    assert result.tokens_out == counter.count(result.text)
    assert rate * result.tokens_in - 12 <= result.tokens_out <= rate * result.tokens_in


def test_a_missing_tokenizer_is_said(tmp_path: Path) -> None:
    with pytest.raises(HeadraceError, match="nowhere"):
        make_counter(str(tmp_path / "nowhere"))
