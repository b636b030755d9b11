"""The OpenAI backend against a real llama-server with SmolLM2."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any

import pytest

from headrace import grammar
from headrace.backends import Job, OpenAIBackend
from headrace.backends.engines import find, running
from headrace.middleware.check import violation
from headrace.middleware.constrain import Constrain
from headrace.middleware.pipeline import Pipeline
from headrace.middleware.types import Constraint, Enforcement, Finished, Request, Sampling

pytestmark = [pytest.mark.engine, pytest.mark.model, pytest.mark.slow]

PROMPT = "Tell me about Ann Abernathy, who is 41 years old and has 12 cats and 7 dogs."
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    if find("llama") is None:
        reason = "llama-server is not installed; run: make engines"
        if os.environ.get("HEADRACE_REQUIRE_ENGINES"):
            pytest.fail(reason)
        pytest.skip(reason)
    with running("llama") as url:
        yield url


def asked(constraint: Constraint, **sampling: Any) -> Request:
    fields = {"max_tokens": 64, "temperature": 0, **sampling}
    return Request.of(PROMPT, constraint=constraint, sampling=Sampling(**fields))


def schema(**keywords: Any) -> Constraint:
    return Constraint("json_schema", json.dumps(keywords))


async def test_the_server_says_what_it_is_and_a_schema_is_enforced(
    url: str, make: Any, ask: Any
) -> None:
    backend = make(url)
    [answer] = await ask(backend, [asked(schema(**PERSON))])
    assert json.loads(answer.finished.text)["age"] == 41
    by = "llama.cpp response_format.json_schema"
    assert answer.finished.enforced == Enforcement("full", (), by)
    assert len(answer.deltas) > 5  # streamed as it came
    capabilities = await backend.capabilities()
    assert capabilities.engine.startswith("llama.cpp b")
    assert (capabilities.model, capabilities.context_length) == ("smollm2", 2048)


@pytest.mark.parametrize(
    "constraint",
    [
        schema(type="string", maxLength=6),
        schema(type="string", minLength=40, maxLength=45),
        schema(type="array", items={"type": "integer", "enum": [3, 5]}, minItems=2, maxItems=3),
        schema(anyOf=[{"const": "cats"}, {"type": "boolean"}]),
        schema(**{"$ref": "#/$defs/a", "$defs": {"a": {"enum": ["x y", "é\"\\"]}}}),
        schema(type="object", properties={"a b": {"const": 1}}, additionalProperties=False),
        schema(type=["boolean", "null"]),
    ],
    ids=["maxLength", "minLength", "items", "anyOf", "$ref", "key", "types"],
)  # fmt: skip
async def test_what_is_called_full_is_enforced(
    constraint: Constraint, url: str, make: Any, ask: Any
) -> None:
    [answer] = await ask(make(url), [asked(constraint)])
    assert answer.finished.enforced.level == "full"
    assert violation(answer.finished.text, constraint) is None


@pytest.mark.parametrize(
    ("constraint", "level"),
    [
        (Constraint("choice", ("dogs", "no cats", 'say "hi"\n[x] é漢🙂')), "full"),
        (Constraint("choice", ("New", "New York City")), "full"),
        (Constraint("regex", r"[A-C]{2}-\d{3,4}(\.\d{1,2})?(é|漢)\]\\\"\^-"), "full"),
        (Constraint("regex", r"(Ann|Bob) has [^\d\n]{5,20}\."), "full"),
    ],
    ids=["choice", "fault_1_prefix_choice", "regex", "negated_class"],
)
async def test_gbnf_is_read_as_it_was_meant(
    constraint: Constraint, level: str, url: str, make: Any, ask: Any
) -> None:
    [answer] = await ask(make(url), [asked(constraint)])
    assert answer.finished.enforced == Enforcement(level, (), "llama.cpp grammar")  # type: ignore[arg-type]
    assert violation(answer.finished.text, constraint) is None


@pytest.mark.parametrize(
    "text",
    [
        'start: name " is " AGE ("." | "!"){2}\nname: /[A-Z][a-z]{1,8}/\nAGE: "1".."9" /[0-9]/?',
        'root ::= "\\"" word{2,3} "\\" (\u6f22)" [^a-zA-Z ]\nword ::= [a-z]{1,6} " "?',
    ],
    ids=["lark", "gbnf"],
)
async def test_a_grammar_is_held(text: str, url: str, make: Any, ask: Any) -> None:
    constraint = grammar(text)
    [answer] = await ask(make(url), [asked(constraint)])
    assert answer.finished.enforced == Enforcement("partial", ("/",), "llama.cpp grammar")
    assert violation(answer.finished.text, constraint) is None


async def test_a_template_is_filled_in(url: str, make: Any, ask: Any) -> None:
    name = {"name": "name", "kind": "regex", "spec": "[A-Z][a-z]+"}
    age = {"name": "age", "kind": "regex", "spec": "[0-9]{1,3}"}
    template = Constraint("template", json.dumps(["Name: ", name, "\nAge: ", age, " (years)"]))
    [answer] = await ask(make(url), [asked(template)])
    assert re.fullmatch(r"Name: [A-Z][a-z]+\nAge: \d{1,3} \(years\)", answer.finished.text)
    assert answer.finished.enforced.level == "full"


@pytest.mark.parametrize(
    ("inner", "left"),
    [
        ({"type": "string", "pattern": "b!"}, ("/properties/a/pattern",)),
        (
            {"type": "array", "prefixItems": [{"const": 1}], "items": {"const": 2}, "minItems": 2},
            ("/properties/a/prefixItems",),
        ),
    ],
    ids=["pattern", "prefixItems"],
)
async def test_fault_38_a_keyword_that_this_server_drops_is_left_to_the_check(
    inner: dict[str, Any], left: tuple[str, ...], url: str, make: Any, ask: Any
) -> None:
    constraint = schema(type="object", properties={"a": inner}, required=["a"])
    [answer] = await ask(make(url), [asked(constraint)])
    assert (answer.finished.enforced.level, answer.finished.enforced.residual) == ("partial", left)
    assert violation(answer.finished.text, constraint) is not None  # dropped without a word


async def test_fault_38_another_engines_field_is_found_to_be_ignored(
    url: str, make: Any, ask: Any
) -> None:
    backend = make(url, constraints="vllm")
    [code] = await ask(backend, [asked(Constraint("regex", "[0-9]{2}"))])
    assert code.finished.enforced == Enforcement("none", by="words")
    [person] = await ask(backend, [asked(schema(**PERSON))])  # the second field is known here, too
    assert person.finished.enforced.by == "vllm response_format.json_schema"


async def test_a_lark_grammar_needs_a_build_that_reads_it(url: str, make: Any, ask: Any) -> None:
    [answer] = await ask(make(url), [asked(Constraint("grammar", 'start: "abc" | "def"'))])
    if answer.finished.enforced.level == "none":
        assert answer.finished.enforced.by == "words"
    else:  # built with LLAMA_LLGUIDANCE
        assert answer.finished.text in ("abc", "def")


async def test_words_and_extraction_where_nothing_else_goes(url: str, make: Any, ask: Any) -> None:
    lookahead = Constraint("regex", "(?=c)cats|dogs")
    [answer] = await ask(make(url), [asked(lookahead)])
    assert answer.finished.enforced == Enforcement("none", by="words")


async def test_rows_with_different_constraints_do_not_mix(url: str, make: Any, ask: Any) -> None:
    constraints = [
        schema(**PERSON),
        Constraint("choice", ("dogs", "cats")),
        Constraint("regex", "[0-9]{4}"),
        schema(type="array", items={"type": "boolean"}, minItems=1, maxItems=2),
    ]
    answers = await ask(make(url), [asked(one) for one in constraints] + [Request.of("Hi")])
    for answer, constraint in zip(answers, constraints, strict=False):
        assert violation(answer.finished.text, constraint) is None
    assert answers[-1].finished.enforced is None


async def test_the_pipeline_gives_the_value(url: str) -> None:
    constraint = Constraint("json_schema", json.dumps(PERSON), parse=json.loads)
    async with Pipeline([Constrain(constraint)], OpenAIBackend(url)) as pipeline:
        response = await pipeline.run(Request.of(PROMPT, sampling=Sampling(max_tokens=64)))
    assert response.parsed.keys() == {"name", "age"}
    assert response.enforced is not None
    assert response.enforced.level == "full"


async def test_a_prefix_that_the_server_has_is_counted(url: str, make: Any) -> None:
    backend = make(url)
    usages = []
    for _ in range(2):
        async for _, event in backend.generate([Job(asked(Constraint("choice", ("a", "b"))))]):
            if isinstance(event, Finished):
                usages.append(event.response.usage)
    assert usages[1].cached_tokens > 10
    assert usages[1].prompt_tokens == usages[0].prompt_tokens
