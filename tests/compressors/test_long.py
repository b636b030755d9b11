from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.compressors import (
    Budget,
    Compressed,
    Compressor,
    Lexical,
    Units,
    long,
    make_counter,
    make_scorer,
    plans,
)
from headrace.compressors.long import chunks

COMPRESSOR = Compressor(make_scorer("lexical"), make_counter())
DULL = "Well, you know, it is what it is and so on, and then we would just go on with it. " * 6
DENSE = "Ann Lee signed contract KA-01-HH-1234 on 12 May 2021 for 1,234.56 EUR in Turin.\n" * 6
TEXT = "\n\n".join([DULL, DENSE] * 10 + ["```\nx = 1\n\ny = 2\n```"])


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "LONG", 2000)
    monkeypatch.setattr(long, "CHUNK", 700)


def squeeze(text: str, budget: Budget, **options: object) -> Compressed:
    [result] = COMPRESSOR.compress([text], budget, **options)  # type: ignore[arg-type]
    assert result.text == "".join(text[a:b] for a, b in result.spans)
    assert result.tokens_out == COMPRESSOR.counter.count(result.text)
    return result


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.5, 0.9])
def test_the_budget_is_that_of_the_whole_text(rate: float) -> None:
    result = squeeze(TEXT, Budget(rate=rate))
    assert 0.95 * rate * result.tokens_in <= result.tokens_out <= rate * result.tokens_in
    half = len(result.scores) // 2
    assert result.scores[half][0] > 0
    assert result.tokens_in == COMPRESSOR.counter.count(TEXT)


def test_a_dense_chunk_takes_tokens_from_a_dull_one() -> None:
    result = squeeze(TEXT, Budget(rate=0.5))
    kept = sum(b - a for a, b in result.spans)
    dense = sum(len(line) for line in result.text.splitlines() if "Ann" in line or "EUR" in line)
    assert dense > 0.7 * kept


def test_identity_and_nothing() -> None:
    assert squeeze(TEXT, Budget(rate=1)).text == TEXT
    assert squeeze(TEXT, Budget(quality=1)).text == TEXT
    assert squeeze(TEXT, Budget(rate=0)).text == ""
    assert "Well" not in squeeze(TEXT, Budget(rate=1), force_drop=["Well"]).text


def test_a_target_a_threshold_and_a_quality_floor() -> None:
    assert 95 <= squeeze(TEXT, Budget(target_tokens=100)).tokens_out <= 100
    result = squeeze(TEXT, Budget(threshold=0.6))
    kept = {i for a, b in result.spans for i in range(a, b)}
    assert all((start in kept) == (score >= 0.6) for start, _, score in result.scores)
    low, high = (squeeze(TEXT, Budget(quality=q)).tokens_out for q in (0.3, 0.8))
    assert low < high < COMPRESSOR.counter.count(TEXT)


def test_forced_words_of_every_chunk_stay_and_are_said_when_over() -> None:
    result = squeeze(TEXT, Budget(rate=0.01), force_keep=["Turin"])
    assert result.text.count("Turin") == TEXT.count("Turin")
    assert result.reason is not None


def test_a_question_is_asked_of_all_chunks_at_once() -> None:
    text = TEXT + "\n\nThe gate is green.\n\n" + TEXT
    found = squeeze(text, Budget(target_tokens=40), question="What colour is the gate?")
    assert "gate is green" in found.text


class Recording(Lexical):
    """Lexical, and what it was asked to score."""

    sizes: list[int] = []  # noqa: RUF012

    def score(self, texts: Sequence[Units], question: str | None = None) -> list[list[float]]:
        self.sizes.append(sum(len(units.text) for units in texts))
        return super().score(texts, question)


def test_no_more_than_a_chunk_is_held_as_units() -> None:
    Recording.sizes.clear()
    seen: list[tuple[int, int]] = []
    Compressor(Recording(), make_counter()).compress(
        [TEXT], Budget(rate=0.5), progress=lambda done, total: seen.append((done, total))
    )
    assert max(Recording.sizes) < 2000
    assert sum(Recording.sizes) == len(TEXT)
    assert len(seen) > 10
    assert seen == sorted(seen)
    assert seen[-1] == (len(TEXT), len(TEXT))


def test_a_fence_is_in_one_chunk() -> None:
    fence = "```\n" + "x = 1\n\n" * 300 + "```"
    text = f"{DULL}\n\n{fence}\n\n{DULL * 5}"
    assert any(fence in text[a:b] for a, b in chunks(text, 700))


@given(st.text(st.sampled_from("ab \n。é\u0301🚀\u200d`|"), max_size=400), st.integers(1, 50))
@settings(deadline=None)
def test_chunks_tile_any_text(text: str, size: int) -> None:
    assert "".join(text[a:b] for a, b in chunks(text, size)) == text
    assert all(a < b for a, b in chunks(text, size))


@given(st.lists(st.sampled_from([DULL, DENSE, "東京は日本の首都です。" * 9, "a\n"]), max_size=9))
@settings(deadline=None)
def test_any_long_text(pieces: list[str]) -> None:
    text = "\n".join(pieces)
    for rate in (0.1, 0.6):
        result = squeeze(text, Budget(rate=rate))
        assert result.tokens_out <= rate * result.tokens_in or result.reason
