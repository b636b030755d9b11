"""What a constraint costs: compiling it, and a mask with its application for each token.

    python benchmarks/constraint_speed.py [--rounds 20]

Ten schemas of the kind that applications use (API objects, tool calls, forms), an instance of each,
SmolLM2's tokenizer (49,152 tokens), one thread, CPU time (``process_time``), medians. Each library
alone runs in the same process over the same tokens: llguidance with its numpy mask, xgrammar with
eager and dynamic compilation and its native kernel. (outlines_core needs seconds and gigabytes for
schemas like these, so it is left out.) Masks are timed by the clock, as they take microseconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any, cast

TEXT = {"type": "string"}
INTEGER = {"type": "integer"}


def record(**properties: Any) -> dict[str, Any]:
    """Return the schema of a closed object with these properties, all of them required."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def listed(items: Any, **bounds: int) -> dict[str, Any]:
    """Return the schema of a list."""
    return {"type": "array", "items": items, **bounds}


def tool(name: str, **parameters: Any) -> dict[str, Any]:
    """Return the schema of a call of a tool."""
    return record(name={"const": name}, arguments=record(**parameters))


LINE = record(
    sku={"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"},
    quantity={"type": "integer", "minimum": 1, "maximum": 99},
    price={"type": "number", "minimum": 0},
)
CASES: dict[str, tuple[Any, Any]] = {
    "person": (record(name=TEXT, age=INTEGER), {"name": "Ada Lovelace", "age": 36}),
    "order": (
        record(id=TEXT, status={"enum": ["new", "paid", "sent"]}, lines=listed(LINE, minItems=1)),
        {
            "id": "o-17",
            "status": "paid",
            "lines": [{"sku": "ABC-1234", "quantity": 2, "price": 9.99}],
        },
    ),
    "address": (
        record(
            street={"type": "string", "maxLength": 60},
            city={"type": "string", "maxLength": 60},
            zip={"type": "string", "pattern": "^[0-9]{5}$"},
            country={"type": "string", "minLength": 2, "maxLength": 2},
        ),
        {"street": "12 Mill Lane", "city": "Bath", "zip": "12345", "country": "GB"},
    ),
    "tools": (
        listed(
            {
                "anyOf": [
                    tool("search", query=TEXT, limit=INTEGER),
                    tool("open", url=TEXT),
                    tool("weather", city=TEXT, unit={"enum": ["C", "F"]}),
                    tool("mail", to=listed(TEXT), subject=TEXT, body=TEXT),
                ]
            },
            maxItems=4,
        ),
        [
            {"name": "search", "arguments": {"query": "water wheels", "limit": 5}},
            {"name": "weather", "arguments": {"city": "Bonn", "unit": "C"}},
        ],
    ),
    "event": (
        record(
            title=TEXT,
            start={"type": "string", "format": "date-time"},
            attendees=listed({"type": "string", "format": "email"}),
        ),
        {
            "title": "Stand-up",
            "start": "2024-05-01T09:30:00Z",
            "attendees": ["a@example.com", "b@example.com"],
        },
    ),
    "tree": (
        {
            "$defs": {"node": record(name=TEXT, children=listed({"$ref": "#/$defs/node"}))},
            "$ref": "#/$defs/node",
        },
        {"name": "a", "children": [{"name": "b", "children": []}, {"name": "c", "children": []}]},
    ),
    "form": (
        record(**{f"field_{at}": {"type": ["string", "null"]} for at in range(30)}),
        {f"field_{at}": None if at % 3 else "yes" for at in range(30)},
    ),
    "review": (
        record(
            stars={"type": "integer", "minimum": 1, "maximum": 5},
            summary={"type": "string", "minLength": 1, "maxLength": 200},
            topics=listed({"enum": ["price", "quality", "service", "delivery"]}, maxItems=4),
        ),
        {"stars": 4, "summary": "Good, but late.", "topics": ["quality", "delivery"]},
    ),
    "configuration": (
        {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}},
        {"debug": True, "level": 3, "name": "mill"},
    ),
    "measurement": (
        record(
            at={"type": "string", "format": "date"},
            values=listed({"type": "number"}, minItems=2, maxItems=8),
            unit={"enum": ["m", "s", "kg"]},
        ),
        {"at": "2024-02-29", "values": [1.5, -0.25, 12], "unit": "kg"},
    ),
}
Step = tuple[Callable[[], Any], Callable[[Any], Any], Callable[[int], Any]]  # mask, apply, take


class Libraries:
    """Each library over one tokenizer: compile a schema; then mask, apply and take a token."""

    def __init__(self) -> None:
        import transformers
        import xgrammar as xgr

        from headrace.backends.decoding.automaton import Compiler
        from headrace.middleware.models import resolve

        folder = resolve("smollm2", kind="decoder")
        tokenizer: Any = cast("Any", transformers).AutoTokenizer.from_pretrained(folder)
        self.compiler = Compiler(tokenizer, len(tokenizer), [tokenizer.eos_token_id])
        self.width = self.compiler.width
        self.ll = self.compiler._vocabulary.ll
        info = xgr.TokenizerInfo.from_huggingface(tokenizer, vocab_size=self.width)
        self.eager = xgr.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self.dynamic = xgr.GrammarCompiler(
            info, max_threads=1, cache_enabled=False, enable_dynamic_compilation=True
        )
        self.opened: dict[str, Callable[[str], Callable[[], Step]]] = {
            "headrace": self.headrace,
            "llguidance alone": self.llguidance,
            "xgrammar alone, eager": lambda spec: self.xgrammar(self.eager, spec),
            "xgrammar alone, dynamic": lambda spec: self.xgrammar(self.dynamic, spec),
        }

    def headrace(self, spec: str) -> Callable[[], Step]:
        """Compile as a request does; nothing is remembered from before."""
        from headrace.backends.decoding.automaton import apply_mask
        from headrace.middleware.types import Constraint

        fresh = self.compiler.with_engine("auto")
        constraint = Constraint("json_schema", spec)
        fresh.matcher(constraint)

        def start() -> Step:
            import torch

            matcher, logits = fresh.matcher(constraint), torch.zeros(self.width)
            return matcher.mask, lambda mask: apply_mask(mask, logits), matcher.advance

        return start

    def llguidance(self, spec: str) -> Callable[[], Step]:
        """Compile and use it as its documentation shows for numpy."""
        import llguidance.numpy as lln
        import numpy as np
        from llguidance import LLMatcher

        grammar = LLMatcher.grammar_from_json_schema(spec)
        template = LLMatcher(self.ll, grammar, log_level=0)
        if template.is_error():
            raise ValueError(template.get_error())

        def start() -> Step:
            matcher = template.deep_copy()
            bitmask = lln.allocate_token_bitmask(1, self.width)
            logits = np.zeros((1, self.width), dtype=np.float32)

            def mask() -> Any:
                lln.fill_next_token_bitmask(matcher, bitmask)
                return bitmask

            return mask, lambda m: lln.apply_token_bitmask_inplace(logits, m), matcher.consume_token

        return start

    def xgrammar(self, compiler: Any, spec: str) -> Callable[[], Step]:
        """Compile and use it as its documentation shows, on a CPU."""
        import xgrammar as xgr

        compiled = compiler.compile_json_schema(spec, strict_mode=False)

        def start() -> Step:
            import torch

            matcher = xgr.GrammarMatcher(compiled)
            bitmask = xgr.allocate_token_bitmask(1, self.width)
            logits = torch.zeros(1, self.width)

            def mask() -> Any:
                matcher.fill_next_token_bitmask(bitmask)
                return bitmask

            return mask, lambda m: xgr.apply_token_bitmask_inplace(logits, m), matcher.accept_token

        return start


def measure(
    libraries: Libraries, name: str, rounds: int
) -> tuple[list[float], list[float], list[float], int]:
    """Return compile times by schema, mask and apply times by token (ms), and schemas refused."""
    compiled: list[float] = []
    masks: list[float] = []
    applied: list[float] = []
    refused = 0
    for schema, instance in CASES.values():
        spec = json.dumps(schema)
        tokens = libraries.ll.tokenize_str(json.dumps(instance))
        try:
            start = libraries.opened[name](spec)
        except (ValueError, RuntimeError):
            refused += 1
            continue
        times: list[float] = []
        for _ in range(rounds):
            began = time.process_time()
            libraries.opened[name](spec)
            times.append(1000 * (time.process_time() - began))
        compiled.append(statistics.median(times))
        by_token: list[list[tuple[float, float]]] = [[] for _ in tokens]
        for _ in range(rounds):
            mask, apply, take = start()
            for at, token in enumerate(tokens):
                first = time.perf_counter_ns()
                found = mask()
                second = time.perf_counter_ns()
                apply(found)
                third = time.perf_counter_ns()
                by_token[at].append(((second - first) / 1e6, (third - second) / 1e6))
                take(token)
        masks += [statistics.median(pair[0] for pair in pairs) for pairs in by_token]
        applied += [statistics.median(pair[1] for pair in pairs) for pairs in by_token]
    return compiled, masks, applied, refused


def main() -> None:
    """Print the table."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    torch.set_num_threads(1)
    libraries = Libraries()
    print(
        f"{len(CASES)} schemas, 49,152 tokens, one thread, medians of {options.rounds} rounds\n\n"
        "| engine | compile p50 ms | worst | mask p50 ms | p99 | apply p50 ms"
        " | mask + apply mean ms | refused |\n|---|---|---|---|---|---|---|---|"
    )
    for name in libraries.opened:
        compiled, masks, applied, refused = measure(libraries, name, options.rounds)
        both = statistics.mean(a + b for a, b in zip(masks, applied, strict=True))
        p99 = statistics.quantiles(masks, n=100)[98]
        print(
            f"| {name} | {statistics.median(compiled):.2f} | {max(compiled):.1f}"
            f" | {statistics.median(masks):.3f} | {p99:.3f} | {statistics.median(applied):.3f}"
            f" | {both:.3f} | {refused} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
