"""vLLM in process. Its package pins an older transformers: most environments do not have it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

from headrace import Constraint, InvalidRequest, Request, Sampling, constraint, template
from headrace.backends import Job
from headrace.backends.vllm import VLLMBackend, enforced, sampling_params, structured_outputs
from headrace.middleware.errors import BackendError, HeadraceError
from headrace.middleware.types import Finished, TextDelta

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "n": {"type": "integer"}},
    "required": ["name", "n"],
    "additionalProperties": False,
}
LONG = "The mill stands by the river. " * 60
needs_vllm = pytest.mark.skipif(
    importlib.util.find_spec("vllm") is None, reason="vllm is not installed"
)


def test_without_vllm_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(HeadraceError, match=r"pip install 'headrace\[vllm\]'") as caught:
        VLLMBackend("smollm2")
    assert "\n" not in str(caught.value)


def test_a_batch_is_a_whole_number() -> None:
    with pytest.raises(InvalidRequest, match="max_batch is a whole number"):
        VLLMBackend("smollm2", max_batch=0)


@pytest.mark.parametrize(
    ("asked", "automaton", "level", "residual"),
    [
        (constraint(SCHEMA), "guidance", "full", ()),
        (constraint({"type": "string", "pattern": "a+"}), "guidance", "partial", ("/pattern",)),
        (Constraint("regex", "a+"), "guidance", "full", ()),
        (Constraint("regex", "a+"), "auto", "partial", ("/",)),
    ],
)
def test_full_is_said_only_of_what_is_known(
    asked: Constraint, automaton: str, level: str, residual: tuple[str, ...]
) -> None:
    found = enforced(asked, automaton)
    assert found is not None
    assert (found.level, found.residual) == (level, residual)
    assert enforced(None, automaton) is None


@needs_vllm
def test_a_request_becomes_sampling_params() -> None:
    sampling = Sampling(temperature=0.7, top_p=0.9, seed=3, stop=("END",), extra={"top_k": 5})
    params = sampling_params(Request.of("x", sampling=sampling), 17)
    assert (params.max_tokens, params.temperature, params.top_p) == (17, 0.7, 0.9)
    assert (params.seed, params.stop, params.top_k) == (3, ["END"], 5)
    assert params.output_kind.name == "DELTA"
    assert sampling_params(Request.of("x"), 1).temperature == 0


@needs_vllm
@pytest.mark.parametrize(
    ("asked", "field"),
    [
        (constraint(SCHEMA), "json"),
        (constraint(["yes", "no"]), "choice"),
        (Constraint("regex", "a+"), "regex"),
        (Constraint("grammar", 'start: "a"'), "grammar"),
        (template("Wheel: {kind}\n"), "grammar"),
    ],
)
def test_a_constraint_fills_one_field(asked: Constraint, field: str) -> None:
    params = structured_outputs(asked)
    names = ("json", "regex", "choice", "grammar", "json_object", "structural_tag")
    assert [name for name in names if getattr(params, name) is not None] == [field]


@needs_vllm
@pytest.mark.parametrize("extra", [{"foo": 1}, {"top_k": -7}, {"n": 2}])
def test_what_vllm_refuses_is_said_in_one_line(extra: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        sampling_params(Request.of("x", sampling=Sampling(extra=extra)), 1)
    assert "\n" not in str(caught.value)


@pytest.fixture
async def engine() -> AsyncIterator[VLLMBackend]:
    backend = VLLMBackend(
        "smollm2", dtype="float32", max_model_len=1024, max_num_seqs=8, enforce_eager=True
    )
    yield backend
    await backend.close()


@needs_vllm
@pytest.mark.model
@pytest.mark.slow
async def test_the_engine_answers_holds_constraints_caches_and_aborts(engine: VLLMBackend) -> None:
    assert (await engine.capabilities()).is_continuous
    forms = [None, constraint(SCHEMA), constraint(["yes", "no"]), Constraint("regex", r"[ab]{3}")]
    sampling = Sampling(max_tokens=24)
    jobs = [Job(Request.of("Greet Ann.", constraint=c, sampling=sampling)) for c in forms]
    texts, answers = [""] * len(jobs), dict[int, Any]()
    async for index, event in engine.generate(jobs):
        assert not isinstance(event, HeadraceError), event
        if isinstance(event, TextDelta):
            texts[index] += event.text
        elif isinstance(event, Finished):
            answers[index] = event.response
    assert [answers[i].text for i in range(len(jobs))] == texts
    assert answers[2].text in ("yes", "no")
    assert set(answers[3].text) <= {"a", "b"}
    assert answers[1].enforced.level == "full"

    short = Sampling(max_tokens=4)
    for _ in range(2):
        job = Job(Request.of(LONG, sampling=short))
        last = [event async for _, event in engine.generate([job])][-1]
    assert isinstance(last, Finished)
    assert last.response.usage.cached_tokens >= 128

    story = Job(Request.of("Tell me a long story.", sampling=Sampling(max_tokens=600)))
    async for _, event in engine.generate([story]):
        story.cancelled = True
        assert not isinstance(event, Finished)

    (_, error) = [pair async for pair in engine.generate([Job(Request.of("x " * 3000))])][-1]
    assert isinstance(error, BackendError)
