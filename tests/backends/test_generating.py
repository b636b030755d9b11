"""transformers' own generation behind TransformersBackend: options, limits, and what rows keep."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from headrace import (
    Constraint,
    Finished,
    HeadraceError,
    Request,
    Response,
    Sampling,
    TextDelta,
    Usage,
)
from headrace.backends import TransformersBackend
from headrace.backends.base import Job
from headrace.backends.generate_options import GenerateOptions, check_load
from headrace.backends.local import LocalModel
from headrace.middleware.errors import InvalidRequest, ModelUnavailable, UnsupportedConstraint

PROMPTS = (
    "What is a weir?",
    "Repeat this sentence: The canal was dug by hand in 1832 and carried coal.",
)
Load = Callable[..., LocalModel]


@pytest.fixture(scope="module")
def shared() -> Load:
    """Return a loader that loads the model once for all tests."""
    loaded: dict[tuple[str, str | None], LocalModel] = {}
    lock = threading.Lock()
    real = LocalModel.load

    def load(name: str, device: Any, dtype: str | None, options: Any = None) -> LocalModel:
        with lock:
            if (name, dtype) not in loaded:
                loaded[name, dtype] = real(name, device, dtype, options)
            return loaded[name, dtype]

    return load


@pytest.fixture
def make(shared: Load, monkeypatch: pytest.MonkeyPatch) -> Callable[..., TransformersBackend]:
    monkeypatch.setattr(LocalModel, "load", shared)
    return lambda **generate: TransformersBackend(
        "smollm2", max_tokens=12, generate=generate or None
    )


def _requests(**fields: Any) -> list[Request]:
    return [Request.of(prompt, **fields) for prompt in PROMPTS]


async def _answers(
    backend: TransformersBackend, requests: Sequence[Request]
) -> list[Response | HeadraceError]:
    """Return the answers, which the deltas must add up to."""
    most = (await backend.capabilities()).max_batch
    found: dict[int, Response | HeadraceError] = {}
    texts = dict.fromkeys(range(len(requests)), "")
    for at in range(0, len(requests), most):
        async for index, event in backend.generate([Job(r) for r in requests[at : at + most]]):
            if isinstance(event, TextDelta):
                texts[at + index] += event.text
            elif isinstance(event, Finished):
                found[at + index] = event.response
                assert event.response.text == texts[at + index]
            elif isinstance(event, HeadraceError):
                found[at + index] = event
    await backend.close()
    return [found[i] for i in range(len(requests))]


def _told(answer: Response | HeadraceError) -> tuple[str, str, Usage]:
    assert isinstance(answer, Response), answer
    return answer.text, answer.finish_reason, answer.usage


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.parametrize(
    "generate",
    [
        {"cache_implementation": "dynamic"},
        {"cache_implementation": "static"},
        {"prompt_lookup_num_tokens": 4},
        {"assistant_model": "smollm2", "num_assistant_tokens": 3},
        {"assistant_early_exit": 4, "num_assistant_tokens": 2},
        {"continuous": {"page_size": 32, "num_blocks": 16, "max_batch_tokens": 128}},
    ],
    ids=lambda generate: next(iter(generate.values()), "").__str__()[:12],
)
async def test_the_answer_is_the_one_of_our_own_loop(
    make: Callable[..., TransformersBackend], generate: dict[str, Any]
) -> None:
    requests = _requests()
    expected = [_told(answer) for answer in await _answers(make(), requests)]
    backend = make(**generate)
    capabilities = await backend.capabilities()
    assert not capabilities.is_continuous
    assert not capabilities.has_prefix_cache
    assert [_told(answer) for answer in await _answers(backend, requests)] == expected
    assert all(usage.completion_tokens == 12 for _, _, usage in expected)


@pytest.mark.model
async def test_rows_of_a_batch_keep_to_their_own_constraint_stop_string_and_limit(
    make: Callable[..., TransformersBackend],
) -> None:
    requests = [
        Request.of("Is water wet?", constraint=Constraint("choice", ("yes", "no"))),
        Request.of(PROMPTS[1], sampling=Sampling(stop=("1832",))),
        Request.of(PROMPTS[0], sampling=Sampling(max_tokens=3)),
        Request.of(PROMPTS[0], sampling=Sampling(temperature=0.8, top_p=0.9, seed=7)),
    ]
    expected = [_told(answer) for answer in await _answers(make(), requests)]
    found = [
        _told(answer) for answer in await _answers(make(cache_implementation="dynamic"), requests)
    ]
    assert [text for text, _, _ in found] == [text for text, _, _ in expected]
    assert found[0][0] in ("yes", "no")
    assert "dug by hand" in found[1][0]
    assert "1832" not in found[1][0]
    assert (found[2][1], found[2][2].completion_tokens) == ("length", 3)


@pytest.mark.model
async def test_drafts_keep_to_a_constraint(make: Callable[..., TransformersBackend]) -> None:
    schema = {
        "type": "object",
        "properties": {"word": {"enum": ["weir", "dam"]}, "n": {"type": "integer", "maximum": 99}},
        "required": ["word", "n"],
        "additionalProperties": False,
    }
    requests = _requests(
        constraint=Constraint("json_schema", json.dumps(schema)), sampling=Sampling(max_tokens=40)
    )
    found = await _answers(make(prompt_lookup_num_tokens=4), requests)
    for answer in found:
        assert isinstance(answer, Response)
        assert answer.finish_reason == "stop"
        assert answer.text.startswith("{")
        assert answer.text.endswith("}")


@pytest.mark.model
async def test_a_cancelled_row_ends_and_the_others_go_on(
    make: Callable[..., TransformersBackend],
) -> None:
    backend = make(cache_implementation="dynamic")
    jobs = [Job(request) for request in _requests(sampling=Sampling(max_tokens=24))]
    finished: list[int] = []
    async for index, event in backend.generate(jobs):
        jobs[0].cancelled = True
        if isinstance(event, Finished):
            finished.append(index)
    assert finished == [1]
    await backend.close()


@pytest.mark.model
async def test_a_row_that_is_cancelled_before_its_turn_is_not_read(
    make: Callable[..., TransformersBackend], shared: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, calls = shared("smollm2", None, None).model, list[Any]()
    generate = model.generate

    def counted(**options: Any) -> Any:
        calls.append(options)
        return generate(**options)

    monkeypatch.setattr(model, "generate", counted, raising=False)
    backend = make(prompt_lookup_num_tokens=2)
    jobs = [Job(request) for request in _requests()]
    finished: list[int] = []
    async for index, event in backend.generate(jobs):
        jobs[1].cancelled = True
        if isinstance(event, Finished):
            finished.append(index)
    assert finished == [0]
    assert len(calls) == 1
    await backend.close()


@pytest.mark.model
async def test_an_answer_of_nothing_is_an_error(
    make: Callable[..., TransformersBackend], shared: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = shared("smollm2", None, None).model
    monkeypatch.setattr(model, "generate", lambda input_ids, **_: input_ids, raising=False)
    [answer] = await _answers(make(cache_implementation="dynamic"), _requests()[:1])
    assert isinstance(answer, HeadraceError)
    assert "stopped after 0 tokens" in str(answer)
    assert "cache_implementation='dynamic'" in str(answer)


@pytest.mark.model
@pytest.mark.parametrize(
    "option", [{"cache_implementation": "offloaded_static"}, {"cache_implementation": "quantized"}]
)
async def test_what_this_machine_cannot_do_is_said_to_everybody_in_the_batch(
    make: Callable[..., TransformersBackend], option: dict[str, Any]
) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("offloading works with CUDA")
    answers = await _answers(make(**option), _requests())
    assert all(isinstance(answer, HeadraceError) for answer in answers)
    assert "\n" not in str(answers[0])


@pytest.mark.model
@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"constraint": Constraint("choice", ("yes", "no"))}, UnsupportedConstraint),
        ({"sampling": Sampling(temperature=0.7)}, InvalidRequest),
    ],
)
async def test_paged_batching_refuses_what_it_cannot_do(
    make: Callable[..., TransformersBackend], fields: dict[str, Any], kind: type[HeadraceError]
) -> None:
    backend = make(continuous=True)
    assert not (await backend.capabilities()).constraints
    [answer] = await _answers(backend, [Request.of("Is water wet?", **fields)])
    assert isinstance(answer, kind)
    assert "leave out generate=" in str(answer)


@pytest.mark.model
async def test_drafts_are_for_one_row_at_a_time(make: Callable[..., TransformersBackend]) -> None:
    backend = make(assistant_early_exit=4)
    assert (await backend.capabilities()).max_batch == 1
    await backend.close()


@pytest.mark.parametrize(
    ("generate", "said"),
    [
        ({"beams": 4}, "no option 'beams'"),
        ({"temperature": 1.0}, "belong to the request"),
        ({"cache_implementation": "paged"}, "answers nothing; use generate={'continuous': True}"),
        ({"cache_implementation": "sink"}, "no SinkCache any more"),
        ({"cache_implementation": "warm"}, "choose among dynamic"),
        ({"num_assistant_tokens": 3}, "needs a source of drafts"),
        ({"assistant_model": "a", "assistant_early_exit": 3}, "one source of drafts at a time"),
        ({"assistant_early_exit": 3, "cache_implementation": "static"}, "can be cut back"),
        ({"compile": True}, "add cache_implementation='static'"),
        ({"continuous": True, "cache_config": {}}, "leave out cache_config"),
    ],
)
def test_an_option_that_there_is_not_is_said_in_one_line(
    generate: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidRequest) as raised:
        TransformersBackend(generate=generate)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("load", "said"),
    [
        ({"trust_remote_code": True}, "never run"),
        ({"use_safetensors": False}, "only safetensors"),
        ({"torch_dtype": "auto"}, "give dtype="),
        ({"load_in_4bit": True}, "choose among attn_implementation"),
    ],
)
def test_loading_takes_no_code_and_no_pickles(load: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        TransformersBackend(load=load)
    assert check_load({"device_map": "auto"}) == {"device_map": "auto"}


@pytest.mark.model
@pytest.mark.parametrize(
    "load",
    [
        {"quantization_config": {"quant_method": "gptq", "bits": 4}},
        {"attn_implementation": "no_such_attention"},
    ],
)
async def test_a_load_that_fails_says_why_in_one_line(load: dict[str, Any]) -> None:
    backend = TransformersBackend(load=load)
    with pytest.raises(ModelUnavailable, match="cannot load 'smollm2'") as raised:
        await backend.capabilities()
    assert "\n" not in str(raised.value)
    await backend.close()


def test_no_options_are_our_own_loop() -> None:
    assert GenerateOptions.of({}) == GenerateOptions()
    assert not GenerateOptions.of({"cache_implementation": "static"}).drafts
    assert GenerateOptions.of({"prompt_lookup_num_tokens": 3}).drafts
