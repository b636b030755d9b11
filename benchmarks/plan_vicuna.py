"""Planned answers to Vicuna's questions on a real engine, beside a real sequential run.

    python benchmarks/plan_vicuna.py --data DIR [--url URL] [--model NAME] [--questions 80]
        [--max-tokens 400] [--strategies skeleton,graph,sot] [--when pays] [--minutes M] [--leader]

DIR holds vicuna_bench__question.jsonl (FastChat, Apache-2.0). Only the four categories in which
Skeleton-of-Thought found planning to help are asked: generic, knowledge, common-sense and
counterfactual (arXiv 2307.15337, section 4.3). Without --url the model runs in this process; with
it, a server that speaks OpenAI's API is asked. Every strategy answers all questions with one stage,
which learns the engine's speed as it does in use; the first question is asked twice before to warm
up. The strategies take turns at every question, in another order each time, so that what else the
machine does meets all of them. Greedy.

- speed-up: seconds of the sequential answer over those of the planned one, geometric mean.
- same length: the same, with the sequential run's time per token for as many tokens as the planned
  answer has (planned answers may be longer or shorter, so that the first figure alone flatters).
- TTFT: median seconds to the first visible text. tokens: completion tokens of all calls, over those
  of the sequential answer. cached: share of the prompt tokens that the engine had read before.
- divided: answers whose parts were written at the same time; the others were collapsed or plain.

--leader compares the share of cached tokens with and without a leading call, where no planner's
call has read the prompt: a given outline behind 500 tokens of context.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import statistics
import time
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from headrace import Message, Request, Sampling
from headrace.backends import Backend, make_backend
from headrace.middleware.dispatcher import Dispatcher
from headrace.middleware.plan import Plan
from headrace.middleware.queueing import Order
from headrace.middleware.types import Finished, Handler, Response, TextDelta
from headrace.planners.known import KnownEngine
from headrace.planners.outline import OutlineWords
from headrace.planners.parser import parse_plan
from headrace.planners.run import PlannedAnswer

CATEGORIES = ("generic", "knowledge", "common-sense", "counterfactual")
OUTLINE = "1. Background\n2. Benefits\n3. Drawbacks\n4. Examples\n5. Outlook\n"


@dataclass(frozen=True)
class Run:
    """One answer as a reader sees it; times in seconds."""

    wall: float
    first: float
    response: Response

    @property
    def is_divided(self) -> bool:
        """Whether its parts were written at the same time."""
        row = self.response.report.stage("plan")
        return row is not None and "at the same time" in row.decision

    @property
    def answer_tokens(self) -> int:
        """Tokens of the answer itself, without the plan and what was given up."""
        row, spent = self.response.report.stage("plan"), self.response.usage.completion_tokens
        if row is None or not row.details.get("nodes"):
            return spent
        parts: int = sum(node["tokens"] for node in row.details["nodes"])
        if row.decision.startswith(("no plan", "one plain")):
            return max(spent - int(row.details["plan_tokens"]) - parts, 1)
        return max(parts, 1)


def questions(folder: Path, most: int) -> list[tuple[str, str]]:
    """Return category and text, spread evenly over the categories."""
    lines = (folder / "vicuna_bench__question.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    by = {c: [r["turns"][0] for r in rows if r["category"] == c] for c in CATEGORIES}
    found = [
        (c, by[c][i])
        for i in range(max(map(len, by.values())))
        for c in CATEGORIES
        if i < len(by[c])
    ]
    return found[:most]


async def answer(stage: Plan, handler: Handler, question: str, limit: int) -> Run:
    """Ask once."""
    request = Request.of(question, sampling=Sampling(max_tokens=limit, temperature=0))
    started, first = time.perf_counter(), None
    async with aclosing(stage(request, handler)) as events:
        async for event in events:
            if isinstance(event, TextDelta) and first is None and event.text.strip():
                first = time.perf_counter() - started
            if isinstance(event, Finished):
                wall = time.perf_counter() - started
                return Run(wall, wall if first is None else first, event.response)
    raise SystemExit("an answer had no end")


def geomean(values: Sequence[float]) -> float:
    """Return the geometric mean."""
    return math.exp(statistics.fmean(map(math.log, values)))


def share(runs: Sequence[Run]) -> float:
    """Return the share of prompt tokens that were cached."""
    prompt = sum(run.response.usage.prompt_tokens for run in runs)
    return sum(run.response.usage.cached_tokens for run in runs) / max(prompt, 1)


def row(name: str, runs: Sequence[Run], base: Sequence[Run]) -> None:
    """Print one line of the table."""
    pairs = list(zip(runs, base, strict=True))
    up = geomean([other.wall / one.wall for one, other in pairs])
    same = geomean(
        [
            (
                other.first
                + (other.wall - other.first) * one.answer_tokens / max(other.answer_tokens, 1)
            )
            / one.wall
            for one, other in pairs
        ]
    )
    tokens = sum(one.response.usage.completion_tokens for one in runs) / max(
        sum(one.response.usage.completion_tokens for one in base), 1
    )
    first = statistics.median(one.first for one in runs)
    print(
        f"| {name} | {up:.2f} | {same:.2f} | {min(o.wall / r.wall for r, o in pairs):.2f} "
        f"| {first:.2f} | {tokens:.2f} | {share(runs):.0%} "
        f"| {sum(one.is_divided for one in runs)} of {len(runs)} |",
        flush=True,
    )


async def compare(backend: Backend, options: argparse.Namespace) -> None:
    """Answer all questions with every strategy and print the table."""
    dispatcher = Dispatcher(backend, coalesce=False)
    asked = questions(options.data, options.questions)
    stages = {"sequential": Plan("off")}
    for name in options.strategies.split(","):
        strategy, _, extra = name.partition("+")
        stages[name] = Plan(strategy, when=options.when, race=extra == "race")
    for stage in stages.values():
        for _ in range(2):  # what the engine costs is not known before
            await answer(stage, dispatcher, asked[0][1], 200)
    runs: dict[str, list[Run]] = {name: [] for name in stages}
    until, names = time.monotonic() + 60 * options.minutes, list(stages)
    for i, (_, text) in enumerate(asked):
        if time.monotonic() > until:
            break
        for name in names[i % len(names) :] + names[: i % len(names)]:
            runs[name].append(await answer(stages[name], dispatcher, text, options.max_tokens))
    await dispatcher.close()
    print("| strategy | speed-up | same length | worst | TTFT, s | tokens | cached | divided |")
    print("|---|---|---|---|---|---|---|---|")
    for name in names:
        row(name, runs[name], runs["sequential"])


async def lead(backend: Backend, options: argparse.Namespace) -> None:
    """Print the share of cached tokens with and without a leader."""
    asked = questions(options.data, options.questions)
    plan = parse_plan(OUTLINE)
    titles = tuple(node.title for node in plan.nodes)
    print("| first call leads | cached | seconds |\n|---|---|---|")
    for leads in (False, True):
        dispatcher = Dispatcher(backend, coalesce=False, order=Order(leader=False))
        cached = prompt = 0
        started = time.perf_counter()
        for i, (_, text) in enumerate(asked):
            context = f"{i} {leads} " + " ".join(one for _, one in asked) * 9
            messages = (Message.system(context[:2000]), Message.user(text))
            run = PlannedAnswer(
                Request(messages, sampling=Sampling(max_tokens=120, temperature=0)),
                dispatcher,
                mode="skeleton",
                max_nodes=8,
                width=8,
                plan=plan,
                wording=OutlineWords(titles),
                engine=KnownEngine(has_prefix_cache=None if leads else False),
            )
            async with aclosing(run.stream()) as pieces:
                async for _ in pieces:
                    pass
            cached += run.usage.cached_tokens
            prompt += run.usage.prompt_tokens
        seconds = time.perf_counter() - started
        print(
            f"| {'yes' if leads else 'no'} | {cached / max(prompt, 1):.0%} | {seconds:.1f} |",
            flush=True,
        )


async def main() -> None:
    """Run what the options ask for."""
    parser = argparse.ArgumentParser(description="Planned answers on a real engine.")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--url")
    parser.add_argument("--model")
    parser.add_argument("--questions", type=int, default=80)
    parser.add_argument("--max-tokens", type=int, default=400)
    parser.add_argument("--strategies", default="skeleton,graph,graph+race,sot")
    parser.add_argument("--minutes", type=float, default=1e9, help="report what is done by then")
    parser.add_argument("--when", default="pays", choices=("pays", "always"))
    parser.add_argument("--leader", action="store_true")
    options = parser.parse_args()
    backend = make_backend(options.url, options.model)
    try:
        await (lead if options.leader else compare)(backend, options)
    finally:
        await backend.close()


if __name__ == "__main__":
    asyncio.run(main())
