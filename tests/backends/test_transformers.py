"""SmolLM2 through our own loop."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from headrace.backends import Job, TransformersBackend
from headrace.backends.local import LocalModel
from headrace.middleware.errors import (
    BackendError,
    HeadraceError,
    InvalidRequest,
    ModelUnavailable,
    UnsupportedConstraint,
)
from headrace.middleware.types import (
    Constraint,
    Finished,
    Message,
    Request,
    Sampling,
    TextDelta,
)

pytestmark = pytest.mark.model
Ask = Callable[..., Awaitable[list[Any]]]

PERSON = Constraint(
    "json_schema",
    json.dumps(
        {
            "type": "object",
            "properties": {
                "name": {"type": "string", "maxLength": 20},
                "age": {"type": "integer", "minimum": 0, "maximum": 150},
            },
            "required": ["name", "age"],
            "additionalProperties": False,
        }
    ),
)
CITIES = Constraint("choice", ("New", "New York City"))
QUESTIONS = [
    "What is the capital of France?",
    "Name three colours.",
    "Write one sentence about the sea, and one about the mountains, and one about a city at night.",
    "Hi",
    "Translate 'good morning' into Spanish. " * 8,
]


def of(prompt: str, constraint: Constraint | None = None, **sampling: Any) -> Request:
    return Request.of(prompt, constraint=constraint, sampling=Sampling(**sampling))


async def test_a_batch_writes_what_each_row_writes_alone(
    smollm2: TransformersBackend, ask: Ask
) -> None:
    requests = [of(q, max_tokens=6 + 3 * i) for i, q in enumerate(QUESTIONS)]
    together = [answer.finished for answer in await ask(smollm2, requests)]
    alone = [(await ask(smollm2, [request]))[0].finished for request in requests]
    assert [r.text for r in together] == [r.text for r in alone]
    for one, other in zip(together, alone, strict=True):
        assert one.usage.prompt_tokens == other.usage.prompt_tokens
        assert one.usage.completion_tokens == other.usage.completion_tokens
    assert "Paris" in together[0].text


async def test_greedy_is_what_transformers_generates(
    smollm2: TransformersBackend, ask: Ask, local: LocalModel
) -> None:
    [answer] = await ask(smollm2, [of(QUESTIONS[2], max_tokens=24)])
    chat = [{"role": "user", "content": QUESTIONS[2]}]
    prompt = local.tokenizer.apply_chat_template(
        chat, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    output = local.model.generate(**prompt, max_new_tokens=24, do_sample=False)
    expected = output[0, prompt["input_ids"].shape[1] :]
    assert answer.finished.text == local.tokenizer.decode(expected, skip_special_tokens=True)
    assert answer.finished.usage.prompt_tokens == prompt["input_ids"].shape[1]
    assert answer.finished.usage.completion_tokens == len(expected)


async def test_each_row_keeps_to_its_own_constraint_and_free_rows_stay_free(
    smollm2: TransformersBackend, ask: Ask
) -> None:
    requests = [
        of("Which city is called the Big Apple?", CITIES),
        of("Describe a person as JSON.", PERSON),
        of(QUESTIONS[0], max_tokens=16),
        of("How much is it?", Constraint("regex", r"[0-9]{1,3}(\.[0-9]{2})? EUR")),
        of("Write two Chinese characters.", Constraint("regex", "[一-龥]{2}")),
    ]
    answers = [answer.finished for answer in await ask(smollm2, requests)]
    assert answers[0].text == "New York City"
    assert set(json.loads(answers[1].text)) == {"name", "age"}
    assert "Paris" in answers[2].text
    assert float(answers[3].text.removesuffix(" EUR")) >= 0
    assert len(answers[4].text) == 2
    assert all("一" <= c <= "龥" for c in answers[4].text)
    assert {a.finish_reason for a in answers} == {"stop"}


async def test_constrained_rows_write_the_same_together_and_alone(
    smollm2: TransformersBackend, ask: Ask
) -> None:
    requests = [of("A person, as JSON.", PERSON), of("Big Apple?", CITIES), of("Hi", max_tokens=9)]
    together = [answer.finished.text for answer in await ask(smollm2, requests)]
    alone = [(await ask(smollm2, [request]))[0].finished.text for request in requests]
    assert together == alone


async def test_a_limit_of_tokens_ends_with_length_also_under_a_constraint(
    smollm2: TransformersBackend, ask: Ask
) -> None:
    requests = [of("A person, as JSON.", PERSON, max_tokens=4), of(QUESTIONS[2], max_tokens=4)]
    for answer in await ask(smollm2, requests):
        assert answer.finished.finish_reason == "length"
        assert answer.finished.usage.completion_tokens == 4


async def test_one_bad_row_ends_alone(smollm2: TransformersBackend, ask: Ask) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    requests = [
        of(QUESTIONS[0], Constraint("regex", "(?=a)b")),
        of("long " * 9000),
        Request((Message.from_dict({"role": "user", "content": [image]}),)),
        of(QUESTIONS[0], extra={"logit_bias": {"1": 2}}),
        of(QUESTIONS[0]),
        of(QUESTIONS[0], extra={"n": 1, "user": "me", "tools": None}),
    ]
    answers = await ask(smollm2, requests)
    kinds = [UnsupportedConstraint, BackendError, InvalidRequest, InvalidRequest]
    assert [type(answer.error) for answer in answers[:4]] == kinds
    assert "8192" in str(answers[1].error)
    assert "image_url" in str(answers[2].error)
    assert "logit_bias" in str(answers[3].error)
    assert "Paris" in answers[4].finished.text
    assert answers[5].finished.text == answers[4].finished.text


async def test_a_seed_gives_the_same_text_in_any_company(
    smollm2: TransformersBackend, ask: Ask
) -> None:
    sampled: dict[str, Any] = {"temperature": 0.9, "top_p": 0.9, "max_tokens": 16}
    request = of("Tell me a story.", seed=5, **sampled)
    alone = (await ask(smollm2, [request]))[0].finished.text
    other = of("Tell me a story.", seed=6, **sampled)
    company = [of("Hi", temperature=1.0, max_tokens=4), request, other, request]
    texts = [answer.finished.text for answer in await ask(smollm2, company)]
    assert texts[1] == texts[3] == alone
    assert texts[2] != alone


async def test_stop_strings_never_leak(smollm2: TransformersBackend, ask: Ask) -> None:
    free, stopped = await ask(
        smollm2, [of("Count: 1, 2, 3", max_tokens=24), of("Count: 1, 2, 3", max_tokens=24)]
    )
    text = free.finished.text
    assert free.finished.text == stopped.finished.text
    stop = text[len(text) // 2 : len(text) // 2 + 4]
    [answer] = await ask(smollm2, [of("Count: 1, 2, 3", max_tokens=24, stop=(stop, "never"))])
    assert answer.finished.text == text[: text.find(stop)]
    assert answer.finished.finish_reason == "stop"


async def test_an_assistant_message_at_the_end_is_continued(
    smollm2: TransformersBackend, ask: Ask
) -> None:
    start = "The capital of France is the city of "
    request = Request((Message.user(QUESTIONS[0]), Message.assistant(start)))
    [answer] = await ask(smollm2, [request])
    assert not answer.finished.text.startswith("The capital")
    assert "Paris" in answer.finished.text


async def test_text_comes_in_pieces_and_characters_whole(
    smollm2: TransformersBackend, ask: Ask
) -> None:
    [answer] = await ask(smollm2, [of("Smile.", Constraint("regex", "[😀-😏]{4}é漢"))])
    assert len(answer.finished.text) == 6
    assert len(answer.deltas) > 1
    assert not any("\ufffd" in delta for delta in answer.deltas)


async def test_more_jobs_than_fit_are_answered_in_turns(ask: Ask) -> None:
    backend = TransformersBackend(max_batch=2, max_tokens=3)
    answers = await ask(backend, [of(q) for q in QUESTIONS])
    assert {a.finished.usage.completion_tokens for a in answers} == {3}
    await backend.close()


async def test_a_cancelled_job_ends_silently_and_the_others_go_on(
    smollm2: TransformersBackend,
) -> None:
    jobs = [Job(of(QUESTIONS[2], max_tokens=200)), Job(of(QUESTIONS[1], max_tokens=12))]
    finished: list[int] = []
    deltas = 0
    async for index, event in smollm2.generate(jobs):
        jobs[0].cancelled = True
        deltas += index == 0 and isinstance(event, TextDelta)
        if isinstance(event, Finished):
            finished.append(index)
    assert finished == [1]
    assert deltas < 30


async def test_a_job_that_comes_late_joins_those_that_run(
    smollm2: TransformersBackend, ask: Ask
) -> None:
    order: list[str] = []
    first_text = asyncio.Event()

    async def answer(name: str, request: Request) -> str:
        async for _, event in smollm2.generate([Job(request)]):
            first_text.set()
            if isinstance(event, Finished):
                order.append(name)
                return event.response.text
        raise AssertionError

    long = of(QUESTIONS[2], max_tokens=60)
    short = of(QUESTIONS[0], max_tokens=8)
    running = asyncio.create_task(answer("long", long))
    await first_text.wait()
    late = await answer("short", short)
    text = await running
    assert order == ["short", "long"]
    alone = [(await ask(smollm2, [request]))[0].finished.text for request in (long, short)]
    assert [text, late] == alone


async def test_a_constraint_that_compiles_slowly_keeps_nobody_waiting(
    smollm2: TransformersBackend, ask: Ask, local: LocalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    await smollm2.capabilities()
    gate = threading.Event()
    theirs = smollm2._local  # pyright: ignore[reportPrivateUsage]
    assert theirs is not None
    compile_ = theirs.compiler.matcher

    def slow(constraint: Constraint) -> Any:
        if constraint.kind == "regex":
            gate.wait(60)
        return compile_(constraint)

    monkeypatch.setattr(theirs.compiler, "matcher", slow)
    finished: list[int] = []
    jobs = [Job(of("Hi", Constraint("regex", "ab?c"))), Job(of(QUESTIONS[0], max_tokens=4))]
    async for index, event in smollm2.generate(jobs):
        if isinstance(event, Finished):
            finished.append(index)
            gate.set()
    assert finished == [1, 0]


async def test_an_error_while_a_row_is_made_ends_that_row_only(
    smollm2: TransformersBackend, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    await smollm2.capabilities()
    answers = await ask(smollm2, [of("x\ud800y"), of(QUESTIONS[0], max_tokens=4)])
    assert isinstance(answers[0].error, BackendError)
    assert answers[1].finished.text


async def test_closing_the_backend_while_a_constraint_compiles_tells_everybody(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = TransformersBackend()
    await backend.capabilities()
    theirs = backend._local  # pyright: ignore[reportPrivateUsage]
    assert theirs is not None
    gate = threading.Event()
    monkeypatch.setattr(theirs.compiler, "matcher", lambda constraint: gate.wait(60))
    running = asyncio.ensure_future(ask(backend, [of("Hi", CITIES), of("Ho", CITIES)]))
    await asyncio.sleep(0.3)
    await backend.close()
    gate.set()
    answers = await asyncio.wait_for(running, 60)
    assert {type(answer.error) for answer in answers} == {BackendError}
    assert "closed" in str(answers[0].error)


async def test_closing_the_iterator_stops_the_work_soon(
    smollm2: TransformersBackend, ask: Ask
) -> None:
    events = smollm2.generate([Job(of(q, max_tokens=4000)) for q in QUESTIONS])
    await anext(events)
    await events.aclose()
    started = time.monotonic()
    await ask(smollm2, [of("Hi", max_tokens=1)])  # the one thread is free again
    assert time.monotonic() - started < 20


async def test_the_event_loop_is_never_blocked(smollm2: TransformersBackend, ask: Ask) -> None:
    gaps: list[float] = []

    async def watch() -> None:
        last = time.monotonic()
        while True:
            await asyncio.sleep(0.005)
            gaps.append(time.monotonic() - last)
            last = time.monotonic()

    watcher = asyncio.create_task(watch())
    await ask(smollm2, [of(q, max_tokens=10) for q in QUESTIONS])
    watcher.cancel()
    assert len(gaps) > 20
    assert sorted(gaps)[len(gaps) // 2] < 0.1


async def test_capabilities_name_a_tokenizer_that_counts(smollm2: TransformersBackend) -> None:
    capabilities = await smollm2.capabilities()
    assert capabilities.context_length == 8192
    assert capabilities.can_prefill
    assert capabilities.constraints == {"json_schema", "regex", "choice", "grammar", "template"}
    assert capabilities.is_continuous
    assert capabilities.tokenizer is not None
    assert (Path(capabilities.tokenizer) / "tokenizer.json").is_file()


async def test_a_model_that_is_nowhere_is_one_error_a_job(ask: Ask, tmp_path: Path) -> None:
    backend = TransformersBackend(str(tmp_path / "none"))
    answers = await ask(backend, [of("Hi"), of("Ho")])
    assert {type(answer.error) for answer in answers} == {ModelUnavailable}
    with pytest.raises(ModelUnavailable):
        await backend.capabilities()
    await backend.close()


async def test_a_closed_backend_says_so_and_its_thread_is_gone() -> None:
    backend = TransformersBackend()
    await backend.capabilities()
    await backend.close()
    await backend.close()
    with pytest.raises(BackendError, match="closed"):
        await anext(backend.generate([Job(of("Hi"))]))
    for _ in range(100):
        threads = [t for t in threading.enumerate() if t.name.startswith("headrace-transformers")]
        if len(threads) <= 1:  # the session's own backend
            break
        await asyncio.sleep(0.1)
    assert len(threads) <= 1


async def test_an_error_of_the_model_reaches_every_job(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = TransformersBackend()
    await backend.capabilities()
    local = backend._local  # pyright: ignore[reportPrivateUsage]
    assert local is not None

    def broken(**_: Any) -> None:
        raise RuntimeError("no kernel image\nmore lines")

    monkeypatch.setattr(local.model, "forward", broken)
    answers = await ask(backend, [of("Hi"), of("Ho")])
    errors = [answer.error for answer in answers]
    assert all(isinstance(error, BackendError) for error in errors)
    assert all("no kernel image" in str(e) and "\n" not in str(e) for e in errors)
    assert isinstance(errors[0], HeadraceError)
    await backend.close()
