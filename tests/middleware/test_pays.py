"""Compress(when="pays"): it compresses if that saves time, and says what it expected and got."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest

from headrace import Compress, Document, InvalidRequest, Message, Pipeline, Plan, Request
from headrace.backends import TransformersBackend
from headrace.middleware.cost import Hardware, Predictor, Roofline, predictor_of, shape_of
from headrace.middleware.cost.fit import Fit
from headrace.middleware.cost.pays import AGAIN, Judge, Outlook
from headrace.middleware.report import StageReport
from headrace.middleware.types import Event, Finished, Response, Sampling, Usage

NOTES = "\n".join(
    f"On day {day} the miller ground {day * 3} sacks of rye and nothing else of note happened."
    for day in range(1, 40)
)
REQUEST = Request.of("How many sacks on day 7?", documents=(Document(NOTES),))


def engine(speed: float) -> Predictor:
    """Return an engine whose prefill does so many operations/s."""
    device = Hardware("test", bandwidth=speed, fp16=speed, fp32=speed, memory=1e12)
    return Predictor(Roofline(shape_of("llama-2-7b"), device))


SLOW, FAST = 1e9, 1e18  # hours a prompt, and less than a microsecond


def outlook(fresh: int = 1000, *, cut: int = 500, runs: list[str] | None = None) -> Outlook:
    return Outlook(1000, cut, fresh, NOTES, lambda text: len(text) // 4, (runs or []).append)


async def test_a_slow_engine_makes_it_pay() -> None:
    after = await Compress(0.5, when="pays", cost=engine(SLOW)).transform(REQUEST)
    row = after.report.stages[-1]
    assert len(after.documents[0].text) < 0.7 * len(NOTES)
    assert "pays: " in row.decision
    assert row.details["pays"] is True
    assert row.predicted == row.details["predicted_spent"]


async def test_a_fast_engine_makes_it_not_pay_and_nothing_is_touched() -> None:
    after = await Compress(0.5, when="pays", cost=engine(FAST)).transform(REQUEST)
    row = after.report.stages[-1]
    assert replace(after, report=REQUEST.report) == REQUEST
    assert row.tokens_in == row.tokens_out
    assert "does not pay: " in row.decision
    assert row.details["pays"] is False


async def test_with_unknown_hardware_it_compresses_as_before_and_says_so() -> None:
    before = await Compress(0.5).transform(REQUEST)
    after = await Compress(0.5, when="pays").transform(REQUEST)
    assert after.documents == before.documents
    assert "not known: the engine's hardware is not" in after.report.stages[-1].decision
    assert "known" not in before.report.stages[-1].decision


@pytest.mark.parametrize("budget", [{"target_tokens": 100}, {"threshold": 0.5}, {"quality": 0.5}])
async def test_every_budget_has_an_outlook(budget: dict[str, float]) -> None:
    after = await Compress(**budget, when="pays", cost=engine(SLOW)).transform(REQUEST)  # type: ignore[arg-type]
    assert after.report.stages[-1].details["pays"] is True
    assert len(after.documents[0].text) < len(NOTES)


async def test_nothing_to_cut_is_still_said_as_such() -> None:
    after = await Compress(0.5, when="pays", cost=engine(SLOW)).transform(Request.of("Who?"))
    assert after.report.stages[-1].decision == "nothing that may be cut"


async def test_turns_that_are_known_already_cost_nothing() -> None:
    stage = Compress(0.5, when="pays", cost=engine(SLOW))
    chat = Request.of([Message.user(NOTES), Message.assistant("Yes."), Message.user("And now?")])
    first, again = await stage.transform(chat), await stage.transform(chat)
    assert first.messages == again.messages
    assert first.report.stages[-1].details["predicted_spent"] > 0
    assert again.report.stages[-1].details["predicted_spent"] == 0
    assert again.report.stages[-1].details["pays"] is True


async def test_the_report_has_the_prediction_next_to_what_the_engine_took() -> None:
    async def answer(request: Request) -> AsyncGenerator[Event, None]:
        times = {"first_event_seconds": 1.5, "queue_seconds": 0.5, "batch_size": 1}
        row = StageReport("dispatch", "", 3.5, details=times)
        usage = Usage(100, 11)
        yield Finished(Response("x", usage=usage, report=request.report.add(row)))

    cost = engine(SLOW)
    stage = Compress(0.5, when="pays", cost=cost)
    said: list[str] = []
    for _ in range(2):
        async for event in stage(REQUEST, answer):
            assert isinstance(event, Finished)
            said.append(event.response.report.stages[0].decision)
            details = event.response.report.stages[0].details["engine_seconds"]
    assert "took 3.00 s" in said[0]
    assert said[1].endswith("engine: predicted 3.00 s, took 3.00 s")
    assert details["roofline"] == "llama-2-7b on test"
    assert cost.predict(100, 11).seconds == pytest.approx(3.0)


def test_the_stage_is_timed_once_on_texts_that_it_has_not_read() -> None:
    runs: list[str] = []
    judge = Judge(engine(SLOW), "compress test")
    judge.decide(Outlook(1000, 500, 1000, NOTES, len, runs.append))
    judge.decide(Outlook(1000, 500, 1000, NOTES, len, runs.append))
    assert 1 < len(runs) < 8
    assert len(set(runs)) == len(runs)


def test_a_stage_that_was_slow_by_accident_gets_another_chance() -> None:
    cost = engine(FAST)
    judge = Judge(cost, "compress test")
    known = cost.stage("compress test")
    known.time.add(1000, 60.0)
    for _ in range(AGAIN):
        assert not judge.decide(outlook()).pays
    assert len(known.time) == 0


def test_what_was_cut_corrects_what_is_expected_to_be() -> None:
    cost = engine(SLOW)
    judge = Judge(cost, "compress test")
    first = judge.decide(outlook())
    first.learn(0.1, 250)
    assert judge.decide(outlook()).saved == pytest.approx(first.saved / 2, rel=0.2)


def test_wrong_options_are_told() -> None:
    with pytest.raises(InvalidRequest, match='"always" or "pays", got \'sometimes\''):
        Compress(0.5, when="sometimes")  # type: ignore[arg-type]


def test_stages_with_different_predictors_are_equal_and_hashable() -> None:
    one, two = Compress(0.5, cost=engine(SLOW)), Compress(0.5, cost=engine(FAST))
    assert one == two
    assert hash(one) == hash(two)


@pytest.mark.model
@pytest.mark.slow
def test_the_engine_in_process_is_learnt_from_answer_to_answer() -> None:
    with Pipeline((), TransformersBackend("smollm2", prefix_cache_mb=0)) as bare:
        capabilities = bare.blocking(bare.dispatcher.backend.capabilities())
        cost = predictor_of(capabilities, device="cpu:1")
        assert cost is not None
        stage = Compress(0.5, when="pays", cost=cost, tokenizer=capabilities.tokenizer)
        pipeline = Pipeline([stage, Plan("off")], bare.dispatcher, loop=bare.loop)
        request = replace(REQUEST, sampling=Sampling(max_tokens=4))
        rows = [pipeline.run_sync(request).report.stage("compress") for _ in range(2)]
    for row in rows:
        assert row is not None
        assert row.details["engine_seconds"]["prefill"] > 0
    assert cost.predict(1000, 4).num_observed == 2
    assert isinstance(cost.stage("compress auto").time, Fit)
