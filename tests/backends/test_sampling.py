from __future__ import annotations

from collections import Counter

import pytest
import torch

from headrace.backends.decoding.sampling import Sampler
from headrace.middleware.types import Sampling

LOGITS = torch.log(torch.tensor([0.5, 0.3, 0.15, 0.05]))


def draws(sampling: Sampling, n: int = 2000) -> Counter[int]:
    sampler = Sampler(sampling)
    return Counter(sampler.pick(LOGITS) for _ in range(n))


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=0, top_p=0.5, seed=3)])
def test_greedy_takes_the_most_probable(sampling: Sampling) -> None:
    assert draws(sampling, 20) == {0: 20}


def test_temperature_one_follows_the_distribution() -> None:
    counts = draws(Sampling(temperature=1, seed=1))
    assert [counts[i] / 2000 for i in range(4)] == pytest.approx([0.5, 0.3, 0.15, 0.05], abs=0.04)


def test_a_high_temperature_flattens_and_a_low_one_sharpens() -> None:
    assert draws(Sampling(temperature=5, seed=1))[3] > 300
    assert draws(Sampling(temperature=0.05, seed=1)) == {0: 2000}


@pytest.mark.parametrize(
    ("top_p", "kept"), [(0.01, {0}), (0.5, {0}), (0.6, {0, 1}), (0.9, {0, 1, 2})]
)
def test_the_nucleus_is_the_fewest_tokens_that_reach_top_p(top_p: float, kept: set[int]) -> None:
    assert set(draws(Sampling(temperature=1, top_p=top_p, seed=1))) == kept


def test_forbidden_tokens_are_never_drawn() -> None:
    logits = LOGITS.clone()
    logits[[0, 3]] = float("-inf")
    sampler = Sampler(Sampling(temperature=100, seed=2))
    assert {sampler.pick(logits) for _ in range(500)} == {1, 2}


def test_the_same_seed_draws_the_same_and_another_does_not() -> None:
    def sequence(seed: int) -> list[int]:
        sampler = Sampler(Sampling(temperature=2, seed=seed))
        return [sampler.pick(LOGITS) for _ in range(50)]

    assert sequence(7) == sequence(7)
    assert sequence(7) != sequence(8)
    assert sequence(-1) == sequence(-1)
