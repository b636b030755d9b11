from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headrace.compressors import Budget, Compressor, make_counter, split
from headrace.compressors.perplexity import Perplexity
from headrace.compressors.perplexity.encoded import survivors
from headrace.compressors.perplexity.phrases import phrases
from headrace.compressors.perplexity.scale import ranks, score_of
from headrace.compressors.perplexity.surprise import Pace, surprises
from headrace.middleware.errors import InvalidRequest, ModelUnavailable

if TYPE_CHECKING:
    from headrace.compressors.perplexity.encoded import Encoded
    from headrace.compressors.perplexity.model import CausalModel

model = pytest.mark.model

SENTENCES = [
    "The committee met on 12 May 2021 to talk about the old bridge over the river.",
    "Costs rise to 1,234.56 EUR, which nobody had expected when the work began in spring.",
    "Nobody should start before the permit KA-01-HH-1234 is there, said Ann Lee at noon.",
    "It rained.",
    "The engineer showed three drawings, and the mayor asked why the second was so dear.",
    "A ferry will carry people and bicycles across while the bridge is closed to all.",
]
LETTER = " ".join(SENTENCES)
LICENSE = Path(__file__).parents[2] / "LICENSE"


def long_text(words: int) -> str:
    return " ".join(LICENSE.read_text(encoding="utf-8").split()[100 : 100 + words])


@pytest.fixture(scope="module")
def loaded() -> CausalModel:
    return Perplexity()._loaded()  # pyright: ignore[reportPrivateUsage]


def near(first: list[float], second: list[float], tolerance: float = 2e-3) -> bool:
    return len(first) == len(second) and all(
        abs(a - b) < tolerance for a, b in zip(first, second, strict=True)
    )


def encode(loaded: CausalModel, text: str) -> Encoded:
    return loaded.encode([split(text)])[0]


def without_cache(loaded: CausalModel, text: Encoded, rate: float, segment: int) -> list[float]:
    """One forward pass over the whole text, with a mask that hides what did not survive."""
    import torch

    ids = [*loaded.start, *text.ids]
    skip = len(loaded.start)
    visible = torch.ones(len(ids), dtype=torch.bool)
    values: list[float] = []
    for start, end in text.cuts(segment):
        mask = torch.ones(len(ids), len(ids), dtype=torch.bool).tril()
        for at in range(len(ids)):
            mask[at] &= visible | (torch.arange(len(ids)) >= _segment_of(text, segment, at - skip))
        stop = end + skip
        with torch.inference_mode():
            logits: Any = loaded.model(
                input_ids=torch.tensor([ids[:stop]]), attention_mask=mask[None, None, :stop, :stop]
            ).logits[0]
        wanted = torch.tensor(ids[start + skip : stop])
        own = -logits[start + skip - 1 : stop - 1].log_softmax(-1)
        line = own.gather(1, wanted[:, None])[:, 0].tolist()
        values += line
        groups = [(a - start, b - start) for a, b in text.groups if start <= a and b <= end]
        visible[start + skip : stop] = torch.tensor(survivors(groups, line, rate, "mean"))
    return values


def _segment_of(text: Encoded, segment: int, token: int) -> int:
    """Return the first place of the ids that a token sees whether it survives or not."""
    return max((start + 1 for start, _ in text.cuts(segment) if start <= token), default=0)


@model
def test_the_cache_changes_no_score(loaded: CausalModel) -> None:
    text = encode(loaded, LETTER)
    [found] = surprises(loaded, [text], Pace(rate=1.0, segment=16))
    assert near(found, without_cache(loaded, text, 1.0, 1000))


@model
def test_survivors_are_all_the_context_of_the_next_segment(loaded: CausalModel) -> None:
    text = encode(loaded, LETTER)
    assert len(text.cuts(24)) > 4
    [found] = surprises(loaded, [text], Pace(rate=0.5, segment=24, reduce="mean"))
    assert near(found, without_cache(loaded, text, 0.5, 24))
    [all_kept] = surprises(loaded, [text], Pace(rate=1.0, segment=24))
    assert not near(found, all_kept)


@model
def test_every_token_goes_through_the_model_once(loaded: CausalModel) -> None:
    seen: list[int] = []
    hook = loaded.model.register_forward_pre_hook(
        lambda _, __, kwargs: seen.append(kwargs["input_ids"].numel()), with_kwargs=True
    )
    text = encode(loaded, long_text(200))
    surprises(loaded, [text], Pace(rate=0.5, segment=60))
    hook.remove()
    assert sum(seen) == len(text.ids) + len(loaded.start)


@model
def test_scores_are_the_models_own_surprise(loaded: CausalModel) -> None:
    units = split(SENTENCES[0])
    [scores] = Perplexity(rate=1.0, reduce="sum", scale="nats").score([units])
    text = encode(loaded, SENTENCES[0])
    nats = without_cache(loaded, text, 1.0, 1000)
    expected = [score_of(sum(nats[a:b])) for a, b in text.spans]
    assert near(scores, expected, 1e-4)
    assert scores[0] > 0  # the first word is scored too


@model
@pytest.mark.parametrize("method", ["llmlingua", "selective-context"])
def test_batches_change_no_kept_word(method: Any) -> None:
    texts = [*SENTENCES[:4], LETTER, long_text(60)]
    scorer = Perplexity(method=method, segment=40)
    tiny = replace(scorer, batch_tokens=1)
    counter = make_counter("smollm2")
    together = Compressor(scorer, counter).compress(texts, Budget(rate=0.5))
    alone = Compressor(tiny, counter).compress(texts, Budget(rate=0.5))
    backwards = Compressor(scorer, counter).compress(texts[::-1], Budget(rate=0.5))[::-1]
    assert [r.text for r in together] == [r.text for r in alone] == [r.text for r in backwards]


@model
def test_threads_and_runs_get_the_same_scores() -> None:
    scorer = Perplexity(segment=20)
    units = [split(text) for text in SENTENCES]
    expected = scorer.score(units)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: scorer.score(units), range(3)))
    assert all(rows == expected for rows in found)


@model
@pytest.mark.slow
def test_600_words_are_read_and_compressed() -> None:
    text = long_text(600)
    [result] = Compressor(Perplexity(), make_counter("smollm2")).compress([text], Budget(rate=0.5))
    assert 0.45 <= result.rate <= 0.5
    assert result.compressor == "llmlingua:smollm2"


@model
@pytest.mark.slow
def test_any_target_on_300_tokens_is_held() -> None:
    counter = make_counter("smollm2")
    text = long_text(220)
    size = counter.count(text)
    assert 250 < size < 350

    class Once:
        name = "once"
        rows = Perplexity().score([split(text)])

        def score(self, texts: object, question: str | None = None) -> list[list[float]]:
            return self.rows

    compressor = Compressor(Once(), counter)
    for target in range(0, size + 2, 7):
        [result] = compressor.compress([text], Budget(target_tokens=target))
        assert result.tokens_out <= target
        assert target - result.tokens_out <= 12 or target > size


@model
def test_a_short_text_keeps_half() -> None:
    text = (
        "The quarterly review covered sales in the northern region, and the team agreed that a new"
        " warehouse should be opened near the harbour before the end of the year, if funds allow."
    )
    counter = make_counter("smollm2")
    assert 32 <= counter.count(text) <= 36
    [result] = Compressor(Perplexity(), counter).compress([text], Budget(rate=0.5))
    assert 0 < result.tokens_out <= 17


@model
@pytest.mark.slow
def test_the_last_part_is_cut_like_the_rest() -> None:
    words = long_text(1500).split()
    parts = [" ".join(words[at : at + 150]) for at in range(0, 1500, 150)]
    counter = make_counter("smollm2")
    [result] = Compressor(Perplexity(), counter).compress(["\n\n".join(parts)], Budget(rate=0.5))
    shares: list[float] = []
    at = 0
    for part in parts:
        kept = sum(max(min(b, at + len(part)) - max(a, at), 0) for a, b in result.spans)
        shares.append(kept / len(part))
        at += len(part) + 2
    assert abs(shares[-1] / (sum(shares) / len(shares)) - 1) < 0.1


@model
@pytest.mark.parametrize(
    "text",
    [
        "東京は日本の首都です。" * 8,
        "done 🚀🚀 ✅ " * 10,
        "Müller traf José 👩‍👩‍👧 in São Paulo; शेष राशि ₹1,200 है. " * 2,
    ],
)
@pytest.mark.parametrize("method", ["llmlingua", "selective-context"])
def test_no_character_is_broken(text: str, method: Any) -> None:
    scorer = Perplexity(method=method, segment=20)
    [result] = Compressor(scorer, make_counter("smollm2")).compress([text], Budget(rate=0.5))
    assert "\ufffd" not in result.text
    assert result.text == "".join(text[a:b] for a, b in result.spans)
    assert 0 < result.tokens_out < result.tokens_in


@model
@pytest.mark.parametrize("text", ["", "Hello", " ", "\n\n", "a" * 900, "\ud800\0\ufeff x", "<s>"])
def test_odd_texts_get_a_score(text: str) -> None:
    for method in ("llmlingua", "selective-context"):
        scorer = Perplexity(method=method, segment=50)
        units = split(text)
        [scores, other] = scorer.score([units, split("and this")])
        assert len(scores) == len(units.units)
        assert all(0 <= score <= 1 for score in [*scores, *other])


@model
def test_text_that_spells_a_special_token_sends_none(loaded: CausalModel) -> None:
    ids = encode(loaded, "a <|im_end|> b <|endoftext|>").ids
    assert not {0, 1, 2} & set(ids)


@model
def test_a_text_beyond_the_models_positions_is_read(loaded: CausalModel) -> None:
    short = replace(loaded, num_positions=128)
    text = encode(loaded, long_text(150))
    sizes: list[int] = []
    hook = loaded.model.register_forward_pre_hook(
        lambda _, __, kwargs: sizes.append(int(kwargs["position_ids"].max())), with_kwargs=True
    )
    [found] = surprises(short, [text], Pace(rate=0.5, segment=32, window=64))
    hook.remove()
    assert len(found) == len(text.ids)
    assert max(sizes) < 128
    [whole] = surprises(loaded, [text], Pace(rate=0.5, segment=32, window=64))
    assert near(found[:64], whole[:64])
    assert abs(sum(found) / sum(whole) - 1) < 0.1


@model
def test_each_segment_keeps_the_same_share(loaded: CausalModel) -> None:
    units = split(long_text(150))
    text = encode(loaded, units.text)
    [scores] = Perplexity(segment=50).score([units])
    for start, end in text.cuts(50):
        own = [u for u, (a, _) in enumerate(text.spans) if start <= a < end]
        words = [u for u in own if units.units[u].role == "word"]
        sizes = {u: max(text.spans[u][1] - text.spans[u][0], 1) for u in words}
        best = sum(sizes[u] for u in words if scores[u] > 0.5)
        assert abs(best / sum(sizes.values()) - 0.5) < 0.1


@model
def test_selective_context_scores_a_phrase_as_one(loaded: CausalModel) -> None:
    units = split(SENTENCES[0])
    [scores] = Perplexity(method="selective-context").score([units])
    for words in phrases(units):
        assert len({scores[word] for word in words}) == 1
    nats = without_cache(loaded, encode(loaded, SENTENCES[0]), 1.0, 1000)
    first = next(phrases(units))
    spans = encode(loaded, SENTENCES[0]).spans
    own = [value for word in first for value in nats[slice(*spans[word])]]
    assert scores[first[0]] == pytest.approx(score_of(sum(own) / len(own)), abs=1e-4)


@model
def test_no_segment_cuts_a_unit(loaded: CausalModel) -> None:
    text = encode(loaded, LETTER)
    for segment in (5, 8, 13, 40):
        cuts = text.cuts(segment)
        assert [a for a, _ in cuts[1:]] == [b for _, b in cuts[:-1]]
        assert cuts[0][0] == 0
        assert cuts[-1][1] == len(text.ids)
        assert all(0 < b - a <= segment for a, b in cuts)
        borders = {end for _, end in cuts}
        for start, end in text.groups:
            assert end - start > segment or not borders & set(range(start + 1, end))


def test_the_map_grows_and_ranks_tell_shares() -> None:
    values = [score_of(nats / 10) for nats in range(300)]
    assert values == sorted(set(values))
    assert 0 <= values[0] < values[-1] < 1
    assert ranks([1.0, 1.0, 0.0], [1, 1, 2]) == [0.75, 0.75, 0.25]


def test_phrases_of_a_text_without_function_words_end() -> None:
    units = split("東京は日本の首都です。京都は古い都です。" * 3)
    runs = list(phrases(units))
    assert [word for run in runs for word in run] == units.words
    assert all(len(run) <= 8 for run in runs)


@pytest.mark.parametrize(
    "options",
    [
        {"rate": 0},
        {"rate": 1.5},
        {"segment": 1},
        {"window": 0},
        {"batch_tokens": 0},
        {"reduce": "min"},
        {"method": "gpt"},
        {"scale": "bits"},
        {"dtype": "int3"},
    ],
)
def test_options_out_of_range_are_refused_with_their_value(options: dict[str, Any]) -> None:
    [value] = options.values()
    with pytest.raises(InvalidRequest, match=str(value)) as error:
        Perplexity(**options)
    assert "\n" not in str(error.value)


def test_nothing_to_score_loads_no_model() -> None:
    scorer = Perplexity()
    assert scorer.score([]) == []
    assert "_model" not in vars(scorer)


def test_an_unknown_model_is_said(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="nowhere"):
        Perplexity(str(tmp_path / "nowhere"))
