from __future__ import annotations

import json
import warnings
from typing import Any

import pytest

from headrace.backends.decoding.processor import ConstraintProcessor
from headrace.backends.local import LocalModel
from headrace.middleware.types import Constraint

pytestmark = pytest.mark.model
CITIES = Constraint("choice", ("New", "New York City"))
PROMPT = "The largest city of the USA is called"


@pytest.fixture(scope="module")
def model(local: LocalModel) -> Any:
    import outlines

    return outlines.from_transformers(local.model, local.tokenizer)


def generator(model: Any, local: LocalModel, constraint: Constraint) -> Any:
    import outlines

    processor: Any = ConstraintProcessor(local.compiler, constraint)
    return outlines.Generator(model, processor=processor)


def test_outlines_generates_with_our_automaton(model: Any, local: LocalModel) -> None:
    write = generator(model, local, CITIES)
    texts = [write(PROMPT, max_new_tokens=8, do_sample=False) for _ in range(2)]
    assert texts[0] in CITIES.spec
    assert texts[0] == texts[1]


def test_rows_of_a_batch_and_beams_keep_to_the_constraint(model: Any, local: LocalModel) -> None:
    spec = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 99}}}
    schema = {**spec, "required": ["n"], "additionalProperties": False}
    constraint = Constraint("json_schema", json.dumps(schema))
    write = generator(model, local, constraint)
    fields = {"max_new_tokens": 60, "do_sample": False, "pad_token_id": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # transformers speaks of generation flags here
        texts = write.batch(["Give JSON.", "Write a number, please, as JSON:"], **fields)
        texts.append(write("Give JSON.", num_beams=3, **fields))
    for text in texts:
        assert json.loads(text)["n"] <= 99
