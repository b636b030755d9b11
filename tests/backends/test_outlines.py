"""Our automaton inside Outlines' own loop, with the real package and a real model."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from typing import Any, Literal

import outlines.types as ot
import pytest
import torch
from pydantic import BaseModel

from headrace import InvalidRequest, UnsupportedConstraint, constraint, grammar, template
from headrace import outlines_processor as processor_for
from headrace.backends.decoding.processor import ConstraintProcessor
from headrace.backends.local import LocalModel
from headrace.middleware.outcome import broken
from headrace.middleware.types import Constraint

pytestmark = pytest.mark.model
CITIES = Constraint("choice", ("New", "New York City"))
PROMPT = "The largest city of the USA is called"


class Wheel(BaseModel):
    kind: Literal["overshot", "undershot"]
    percent: int


@pytest.fixture(scope="module")
def model(local: LocalModel) -> Any:
    import outlines

    return outlines.from_transformers(local.model, local.tokenizer)


@pytest.fixture(scope="module")
def like(model: Any) -> ConstraintProcessor:
    return processor_for(model, ["x"])


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # transformers speaks of generation flags here
        yield


def generator(model: Any, like: ConstraintProcessor, spec: Any) -> Any:
    import outlines

    processor: Any = processor_for(model, spec, like=like)
    return outlines.Generator(model, processor=processor)


GREEDY = {"max_new_tokens": 60, "do_sample": False, "pad_token_id": 2}


def test_outlines_generates_with_our_automaton(model: Any, like: ConstraintProcessor) -> None:
    write = generator(model, like, CITIES)
    texts = [write(PROMPT, **GREEDY) for _ in range(2)]
    assert texts[0] in CITIES.spec
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    "spec",
    [
        Wheel,
        ["red", "blue"],
        re.compile(r"[0-9]{2}(\.[0-9])?"),
        grammar('start: "yes" | "no" "!"+ "."'),
        template("A: {a:int}\nB: {b}.", b=["x", "y"]),
        template("{w}\nOf {year:int}.", w=Wheel),
        ot.either("New", "New York City"),
        ot.ipv4,
        ot.either(ot.json_schema(Wheel), "none"),
        int,
        Literal["overshot", "undershot"],
    ],
    ids=lambda spec: type(spec).__name__,
)
def test_every_kind_of_constraint_holds_in_outlines(
    model: Any, like: ConstraintProcessor, spec: Any
) -> None:
    text = generator(model, like, spec)("Describe a mill wheel.", **GREEDY)
    assert broken(text, constraint(spec)) is None, text


def test_fault_31_rows_end_early_and_beams_are_reordered(
    model: Any, like: ConstraintProcessor
) -> None:
    spec = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 99}}}
    schema = {**spec, "required": ["n"], "additionalProperties": False}
    write = generator(model, like, schema)
    texts = write.batch(["Give JSON.", "Write a number, please, as JSON:"], **GREEDY)
    texts.append(write("Give JSON.", num_beams=3, **GREEDY))
    torch.manual_seed(0)
    texts += write("Give JSON.", **{**GREEDY, "do_sample": True}, num_return_sequences=3)
    assert len(texts) == 6
    for text in texts:
        assert 0 <= json.loads(text)["n"] <= 99
    cities = generator(model, like, ["New", "New York City, in the state of New York"])
    assert len(set(cities.batch([PROMPT, "Old or new?"], **GREEDY))) <= 2


@pytest.mark.parametrize(
    ("pattern", "says"),
    [("(?=a)b", "look"), (r"(a)\1", "backreference"), (r"\bfoo", "look")],
)
def test_fault_5_what_no_automaton_holds_is_refused_at_once(
    model: Any, like: ConstraintProcessor, pattern: str, says: str
) -> None:
    with pytest.raises(UnsupportedConstraint, match=says) as caught:
        processor_for(model, re.compile(pattern), like=like)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("number", "pattern", "text"),
    [(3, "a+?", "aaa"), (4, "^ab$", "ab"), (4, "^a$|^b$", "b")],
)
def test_faults_3_and_4_patterns_mean_the_same_before_and_after(
    like: ConstraintProcessor, local: LocalModel, number: int, pattern: str, text: str
) -> None:
    made = constraint(re.compile(pattern))
    matcher = like.compiler.matcher(made)
    for token in local.tokenizer(text)["input_ids"]:
        matcher.advance(token)
    assert matcher.is_complete
    assert broken(text, made) is None


def test_a_model_that_is_none_of_transformers_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"outlines\.from_transformers"):
        processor_for(object(), ["a"])
