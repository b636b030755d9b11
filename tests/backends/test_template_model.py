"""Templates and a real model: fixed text costs no passes, fields come back as values."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, Field

from headrace import Constrain, Pipeline, Request, Response, Sampling, Truncated, template
from headrace.backends import TransformersBackend
from headrace.backends.decoding.automaton import Compiler

pytestmark = pytest.mark.model


class Wheel(BaseModel):
    kind: str = Field(max_length=12)
    percent: int = Field(ge=0, le=100)


FORM = template(
    "# Report\n\nName of the mill: {name}\nYear it was built in: {year:int}\nThe wheel: {wheel}\n"
    "Is it still running? {running:bool}\n",
    wheel=Wheel,
)


def test_fixed_text_is_forced(compiler: Compiler, tokenizer: Any) -> None:
    text = (
        "# Report\n\nName of the mill: Old Mill\nYear it was built in: 1913\nThe wheel: "
        '{"kind": "overshot", "percent": 80}\nIs it still running? true\n'
    )
    matcher = compiler.matcher(FORM)
    rest: list[int] = tokenizer(text)["input_ids"]
    num_forced = 0
    while rest:
        forced = matcher.forced()
        assert rest[: len(forced)] == forced  # the tokenizer's own tokens, nothing else
        num_forced += len(forced)
        taken, rest = rest[: max(len(forced), 1)], rest[max(len(forced), 1) :]
        for token in taken:
            matcher.advance(token)
    assert matcher.is_complete
    fixed = ("# Report\n\nName of the mill:", "Year it was built in:")
    assert num_forced >= sum(len(tokenizer(one)["input_ids"]) for one in fixed)


async def test_a_form_is_filled_in_with_fewer_passes_than_tokens(
    smollm2: TransformersBackend,
) -> None:
    request = Request.of(
        "The Old Mill was built in 1913. Its overshot wheel turns 80 percent of the time.",
        constraint=FORM,
        sampling=Sampling(max_tokens=150),
    )
    response = await Pipeline([Constrain()], smollm2).run(request)
    assert set(response.parsed) == {"name", "year", "wheel", "running"}
    assert isinstance(response.parsed["year"], int)
    assert isinstance(response.parsed["wheel"], Wheel)
    assert response.text.startswith("# Report\n\nName of the mill: ")
    assert response.enforced is not None
    assert response.enforced.level == "full"
    assert response.usage.forced_tokens * 3 >= response.usage.completion_tokens


async def test_a_form_at_its_limit_is_closed_or_says_what_it_lacks(
    smollm2: TransformersBackend,
) -> None:
    made = template("A: {a:int}\nAn essay: {essay}\n\nEnd: {end:int}.")
    request = Request.of("Write.", constraint=made, sampling=Sampling(max_tokens=16))
    (outcome,) = await Pipeline([Constrain()], smollm2).map([request])
    if isinstance(outcome, Response):
        assert outcome.enforced is not None
        assert outcome.enforced.was_closed
        assert set(outcome.parsed) == {"a", "essay", "end"}
    else:
        assert isinstance(outcome, Truncated)
        assert outcome.text.startswith("A: ")
        assert "end" in str(outcome)
