"""Does a server keep what we say that it keeps? llama-server with SmolLM2 on real schemas.

python benchmarks/remote_constraints.py --data DIR [--num 150] [--seed 1]

DIR holds jsonschemabench/schemas.jsonl.gz (a line a schema: id, schema). Each schema is asked for
through the OpenAI backend; what comes back whole is validated against the original schema. The
claim is the first row: of the answers marked "full", none is wrong. Needs `make engines`.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

from headrace.backends import Job, OpenAIBackend
from headrace.backends.engines import running
from headrace.middleware.check import violation
from headrace.middleware.errors import HeadraceError
from headrace.middleware.types import Constraint, Finished, Request, Sampling

PROMPT = "Write a short example of such a record about Ann from Oslo, as JSON."
MAX_SCHEMA = 4000  # characters; longer ones do not fit into a slot when they are said in words


async def outcome(backend: OpenAIBackend, schema: dict[str, Any]) -> tuple[str, str]:
    """Return the rung that ran, with its level, and what became of the answer."""
    constraint = Constraint("json_schema", json.dumps(schema))
    request = Request.of(
        PROMPT, constraint=constraint, sampling=Sampling(max_tokens=160, temperature=0)
    )
    async for _, event in backend.generate([Job(request)]):
        if isinstance(event, HeadraceError):
            return "error", f"{type(event).__name__}: {event}"
        if isinstance(event, Finished):
            enforced = event.response.enforced
            assert enforced is not None
            rung = f"{enforced.level}: {enforced.by}"
            if event.response.finish_reason != "stop":
                return rung, "cut"
            wrong = violation(event.response.text, constraint)
            return rung, f"wrong: {wrong}" if wrong else "valid"
    raise AssertionError("no answer")


async def main(schemas: list[tuple[str, dict[str, Any]]]) -> None:
    """Ask for each schema and print a row a rung."""
    counts: dict[str, Counter[str]] = {}
    notes: list[str] = []
    with running(slots=2) as url:
        backend = OpenAIBackend(url)
        for name, schema in schemas:
            rung, result = await outcome(backend, schema)
            kind = result.partition(":")[0]
            counts.setdefault(rung, Counter())[kind] += 1
            if kind not in ("valid", "cut"):
                notes.append(f"{name}: {rung}: {result:.160}")
        await backend.close()
    print("| rung | valid | cut by max_tokens | wrong | error |\n|---|---|---|---|---|")
    for rung, one in sorted(counts.items()):
        errors = sum(n for kind, n in one.items() if kind not in ("valid", "cut", "wrong"))
        print(f"| {rung} | {one['valid']} | {one['cut']} | {one['wrong']} | {errors} |")
    print("\n" + "\n".join(notes))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--num", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with gzip.open(options.data / "jsonschemabench" / "schemas.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for line in lines]
    usable = [(r["id"], r["schema"]) for r in rows if len(json.dumps(r["schema"])) < MAX_SCHEMA]
    random.Random(options.seed).shuffle(usable)
    asyncio.run(main(usable[: options.num]))
