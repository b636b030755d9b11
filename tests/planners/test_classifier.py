from __future__ import annotations

import json
import os
import re
import time
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.planners.classifier import NUM_FEATURES, Weights, features, questions, weights
from headrace.planners.training import train

DATA = Path(os.environ.get("HEADRACE_PLANNING_DATA", "data/planning"))


def test_the_labels_are_many_varied_and_none_twice() -> None:
    texts = [text for text, _ in questions()]
    assert 500 <= len(texts) <= 700
    assert len({re.sub(r"\W+", " ", text.casefold()).strip() for text in texts}) == len(texts)
    share = sum(label for _, label in questions()) / len(texts)
    assert 0.3 < share < 0.6


def test_the_weights_are_small_and_plain() -> None:
    raw = files("headrace.planners").joinpath("data", "router.json").read_bytes()
    assert len(raw) < 100_000
    assert set(json.loads(raw)) == {"bias", "unit", "weights"}
    assert len(weights().steps) == NUM_FEATURES
    assert Weights.from_json(weights().to_json()) == weights()


@pytest.mark.slow
def test_the_shipped_weights_are_what_training_makes_of_the_labels() -> None:
    made, facts = train()
    pairs = zip(made.steps, weights().steps, strict=True)
    assert max(abs(one - other) for one, other in pairs) <= 1  # another machine may round otherwise
    assert made.unit == pytest.approx(weights().unit, rel=1e-4)
    assert facts["accuracy"] > 0.85  # of questions that the weights have not seen


@given(st.text(max_size=300))
def test_any_text_has_a_probability(text: str) -> None:
    assert 0 <= weights().share(text) <= 1
    assert all(0 <= at < NUM_FEATURES for at in features(text))


def test_a_question_costs_less_than_a_millisecond() -> None:
    text = "What are the main differences between the tides of the North Sea and of the Baltic?"
    weights().share(text)
    best = min(_seconds(text) for _ in range(20))
    assert best < 0.001


def _seconds(text: str) -> float:
    start = time.process_time()
    for _ in range(10):
        weights().share(text)
    return (time.process_time() - start) / 10


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


@pytest.mark.skipif(not DATA.is_dir(), reason="set HEADRACE_PLANNING_DATA to the test questions")
def test_no_question_of_the_benchmarks_is_among_the_labels() -> None:
    asked: list[set[str]] = []
    for path in DATA.glob("*question.jsonl"):
        lines = path.read_text("utf-8").splitlines()
        asked += [_words(turn) for line in lines for turn in json.loads(line)["turns"]]
    assert len(asked) >= 160
    for text, _ in questions():
        own = _words(text)
        near = [len(own & other) / len(own | other) for other in asked]
        assert max(near) < 0.7, text
