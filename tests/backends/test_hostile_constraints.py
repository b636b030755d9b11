"""Schemas and patterns that are made to hurt: one clear error or a matcher, and the process lives.

Each runs in a process of its own with a limit on its memory and its CPU time.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from headrace.middleware.models import resolve

pytestmark = [pytest.mark.model, pytest.mark.slow]

MEGABYTES = 3_000
CPU_SECONDS = 60

SCRIPT = """
import json, resource, sys
case = json.load(sys.stdin)
import transformers
from headrace.backends.decoding.automaton import Compiler
from headrace.middleware.errors import HeadraceError
from headrace.middleware.types import Constraint
tokenizer = transformers.AutoTokenizer.from_pretrained(case["folder"])
compiler = Compiler(tokenizer, len(tokenizer), [2], engine=case["engine"])
resource.setrlimit(resource.RLIMIT_AS, (case["megabytes"] << 20,) * 2)
resource.setrlimit(resource.RLIMIT_CPU, (case["seconds"],) * 2)
found = {}
for name, kind, spec in case["constraints"]:
    spec = tuple(spec) if isinstance(spec, list) else spec
    try:
        matcher = compiler.matcher(Constraint(kind, spec))
        for _ in range(40):
            mask = int.from_bytes(matcher.mask(), "little")
            if matcher.is_finished:
                break
            matcher.advance((mask & -mask).bit_length() - 1)
        found[name] = matcher.enforcement.level
    except HeadraceError as error:
        found[name] = f"{type(error).__name__}: {error}"
print(json.dumps(found))
"""


def nested(depth: int) -> str:
    return '{"items":' * depth + "{}" + "}" * depth


def wide(properties: int) -> dict[str, Any]:
    return {"properties": {f"p{at}": {"type": "string"} for at in range(properties)}}


def chain(length: int, link: Callable[[dict[str, str]], Any]) -> Any:
    names = [link({"$ref": f"#/$defs/r{at + 1}"}) for at in range(length)]
    defs = {f"r{at}": one for at, one in enumerate([*names, {"type": "null"}])}
    return {"$defs": defs, "$ref": "#/$defs/r0"}


def rules(length: int) -> str:
    """Write a grammar whose rules lead one into the next."""
    lines = [f'r{at}: r{at + 1} | "{at}"' for at in range(length)]
    return "\n".join(["start: r0", *lines, f'r{length}: "z"'])


RECURSION = {
    "$defs": {
        f"n{i}": {"properties": {f"c{j}": {"$ref": f"#/$defs/n{j}"} for j in range(8)}}
        for i in range(8)
    },
    "$ref": "#/$defs/n0",
}
PRODUCT = {
    "allOf": [
        {"anyOf": [{"properties": {f"a{i}{j}": {"type": "string"}}} for j in range(8)]}
        for i in range(6)
    ]
}
SCHEMAS: dict[str, Any] = {
    "items": {"type": "array", "maxItems": 2**64 - 1},
    "items-twice": {"type": "array", "maxItems": 10**5, "items": {"maxItems": 10**5}},
    "length": {"type": "string", "maxLength": 5000},
    "enum": {"enum": [f"value {n * 7919 % 5000} of many" for n in range(5000)]},
    "huge-enum": {"enum": [f"{n}" for n in range(60_000)]},
    "recursion": RECURSION,
    "self": {"$ref": "#"},
    "conflict": {"patternProperties": {"score": {"type": "integer"}, "^score$": {"type": "null"}}},
    "regex": {"type": "string", "pattern": "^[ab]*a[ab]{20}$"},
    "counts": {"type": "string", "pattern": "^((a{1000}){1000}){1000}$"},
    "counts-below": {"type": "string", "pattern": "^(a{0,140}b){0,140}$"},
    "wide": wide(1900),
    "too-wide": wide(5000),
    "product": PRODUCT,
    "references": {
        "$defs": {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
        | {"d40": {"type": "null"}},
        "$ref": "#/$defs/d0",
    },
    "chain": chain(1500, lambda ref: {"properties": {"a": ref}, "required": ["a"]}),
    "chain-alone": chain(3000, lambda ref: ref),
    "chain-short": chain(300, lambda ref: {"properties": {"a": ref}, "required": ["a"]}),
}
CONSTRAINTS: list[tuple[str, str, Any]] = [
    *((name, "json_schema", json.dumps(given)) for name, given in SCHEMAS.items()),
    ("depth", "json_schema", nested(500)),
    ("depth-5000", "json_schema", nested(5000)),
    ("pattern", "regex", "[ab]*a[ab]{20}"),
    ("pattern-counts", "regex", "((a{1000}){1000}){1000}"),
    ("pattern-length", "regex", ".{5000}"),
    ("pattern-nested", "regex", "(" * 5000 + "a" + ")" * 5000),
    ("choices", "choice", [f"number {n}" for n in range(5000)]),
    ("grammar", "grammar", "start: a{1,100000}\na: /x{1,1000}/"),
    ("rules", "grammar", rules(3000)),
]


def run(engine: str, constraints: list[tuple[str, str, Any]]) -> dict[str, str]:
    case = {
        "folder": str(resolve("smollm2", kind="decoder")),
        "engine": engine,
        "megabytes": MEGABYTES,
        "seconds": CPU_SECONDS,
        "constraints": constraints,
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=json.dumps(case),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_hostile_constraints_end_in_one_line_and_within_the_limits() -> None:
    found = run("auto", CONSTRAINTS)
    assert set(found) == {name for name, _, _ in CONSTRAINTS}
    assert all("\n" not in outcome and len(outcome) < 500 for outcome in found.values())
    refused = {
        "huge-enum": "more than 50000 values",
        "self": "no finite value",
        "too-wide": "5000 properties",
        "depth": "nested deeper",
        "depth-5000": "nested deeper",
        "counts": "counts of repeats that multiply to 1000000000",
        "pattern-counts": "too complex",
        "grammar": "repeats something 100000 times",
    }
    for name, reason in refused.items():
        assert reason in found[name], (name, found[name])
    for name in ("items", "enum", "recursion", "length", "regex", "choices", "wide", "pattern"):
        assert found[name] == "full", (name, found[name])
    assert found["conflict"] == "partial"


def test_outlines_core_is_stopped_where_it_would_go_on_for_ever() -> None:
    hostile: list[tuple[str, str, Any]] = [
        ("fine", "regex", "[0-9]{1,3}"),
        ("states", "regex", "[ab]*a[ab]{20}"),
        ("length", "regex", ".{5000}"),
    ]
    found = run("outlines_core", hostile)
    assert found["fine"] == "full"
    for name in ("states", "length"):
        assert "compiling the constraint" in found[name]
