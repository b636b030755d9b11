"""Predictions are corrected by what an engine took, and a few odd answers do not move them."""

from __future__ import annotations

import random

import pytest
from engine import Cost, SimulatedEngine, run_virtual

from headrace import InvalidRequest, Request, Response, Usage
from headrace.backends import Capabilities
from headrace.middleware.cost import (
    Precision,
    Predictor,
    Roofline,
    generic_cpu,
    hardware,
    predictor_of,
    shape_of,
)
from headrace.middleware.cost.fit import KEPT, Fit
from headrace.middleware.pipeline import Pipeline
from headrace.middleware.report import Report, StageReport

LLAMA = Roofline(shape_of("llama-2-7b"), hardware("A6000"))


@pytest.mark.parametrize("seed", range(20))
def test_a_fit_finds_the_line_behind_noise_and_wild_values(seed: int) -> None:
    rng = random.Random(seed)
    fixed, slope = rng.uniform(0.1, 1), rng.uniform(0.5, 20)
    fit = Fit()
    for i in range(KEPT):
        x = rng.uniform(1, 20)
        y = (fixed + slope * x) * rng.uniform(0.97, 1.03)
        fit.add(x, y * (rng.choice([0.1, 30]) if i % 5 == 0 else 1))
    for x in (2, 5, 15):
        assert fit.at(x) == pytest.approx(fixed + slope * x, rel=0.15)


def test_a_fit_is_never_negative_and_starts_with_its_prior() -> None:
    fit = Fit(prior=2.0)
    assert (fit.at(3.0), fit.at(0.0)) == (6.0, 0.0)
    for x, y in ((1.0, 9.0), (5.0, 2.0), (9.0, 1.0), (0.0, 1.0), (1.0, -1.0)):
        fit.add(x, y)
    assert len(fit) == 3
    assert all(fit.at(x) > 0 for x in (0.1, 1, 10, 1000))


def test_a_cold_start_is_forgotten_with_the_second_answer() -> None:
    fit = Fit()
    fit.add(1.0, 8.0)
    fit.add(1.1, 1.1)
    assert fit.at(2.0) == 2.0


def test_a_fit_forgets_what_is_long_ago() -> None:
    fit = Fit()
    for _ in range(KEPT):
        fit.add(1.0, 100.0)
    for _ in range(KEPT):
        fit.add(1.0, 3.0)
    assert fit.at(1.0) == 3.0


def test_without_answers_the_prediction_is_the_roofline() -> None:
    found = Predictor(LLAMA).predict(2048, 256, 4)
    assert found.prefill == LLAMA.prefill(2048, 4).seconds
    assert found.decode == LLAMA.decode_seconds(2048, 256, 4)
    assert found.seconds == found.prefill + found.decode
    assert found.num_observed == 0


def test_answers_correct_it_and_it_generalises_to_other_lengths() -> None:
    predictor = Predictor(LLAMA)
    for prompt in (200, 400, 800, 1600):
        prefill = 0.05 + 3 * LLAMA.prefill(prompt).seconds
        predictor.observe(prompt, 100, prefill, 2 * LLAMA.decode_seconds(prompt, 100))
    found = predictor.predict(6400, 300)
    assert found.prefill == pytest.approx(0.05 + 3 * LLAMA.prefill(6400).seconds, rel=1e-3)
    assert found.decode == pytest.approx(2 * LLAMA.decode_seconds(6400, 300), rel=1e-3)
    assert found.num_observed == 4


def test_it_learns_from_the_reports_of_an_engine_whose_times_are_known() -> None:
    engine = SimulatedEngine(lambda _: "one two three four five", cost=Cost(0.02, prefill=0.001))
    predictor = Predictor(LLAMA)

    async def main() -> None:
        async with Pipeline((), engine) as pipeline:
            for size in (50, 100, 200, 400):
                response = await pipeline.run(Request.of("word " * size))
                seen = predictor.learn(response)
                assert seen is not None
                assert seen.output_tokens == 5
                assert seen.decode == pytest.approx(4 * 0.02)

    run_virtual(main())
    # The engine is linear in tokens; the roofline is flat at first, then grows with their square.
    assert predictor.predict(2000, 5).prefill == pytest.approx(0.02 + 2.0, rel=0.15)
    assert predictor.predict(2000, 5).decode == pytest.approx(0.08, rel=0.1)


def response(**details: object) -> Response:
    row = StageReport(
        "dispatch", "", 2.0, details={"first_event_seconds": 1.0, "queue_seconds": 0.25, **details}
    )
    return Response("x", usage=Usage(100, 10), report=Report((row,)))


def test_the_time_in_the_queue_is_not_the_engines() -> None:
    seen = Predictor(LLAMA).learn(response(batch_size=3))
    assert seen is not None
    assert (seen.prefill, seen.decode, seen.batch) == (0.75, 1.0, 3)


@pytest.mark.parametrize(
    "answer",
    [
        Response("x", usage=Usage(100, 10)),
        Response("x", usage=Usage(100, 10, num_calls=3), report=response().report),
        Response("x", usage=Usage(100, 10, cached_tokens=100), report=response().report),
        response(retries=1),
        response(first_event_seconds=None),
    ],
    ids=["no report", "many calls", "nothing read", "tried again", "no times"],
)
def test_what_says_nothing_about_the_engine_is_left_out(answer: Response) -> None:
    predictor = Predictor(LLAMA)
    assert predictor.learn(answer) is None
    assert predictor.predict(100, 1).num_observed == 0


def test_wrong_numbers_are_told() -> None:
    predictor = Predictor(LLAMA)
    for prompt, output, batch in ((0, 1, 1), (1, -1, 1), (1, 1, 0)):
        with pytest.raises(InvalidRequest, match="got"):
            predictor.predict(prompt, output, batch)


def test_a_server_is_unknown_until_its_hardware_is_said() -> None:
    server = Capabilities("openai", model="llama")
    assert predictor_of(server) is None
    assert predictor_of(server, device="A100") is None
    found = predictor_of(server, device="A100", model="llama-2-7b")
    assert found is not None
    assert found.name == "llama-2-7b on A100"
    with pytest.raises(InvalidRequest, match="no hardware"):
        predictor_of(server, device="A1000", model="llama-2-7b")


def test_the_engine_in_this_process_is_known() -> None:
    found = predictor_of(Capabilities("transformers"), device=generic_cpu(2), model="smollm2")
    assert found is not None
    assert found.roofline.precision == Precision(32, 32, 32)
    assert found.predict(1000, 0).prefill == pytest.approx(2 * 134.5e6 * 1000 / 192e9, rel=0.35)
