"""How long planned answers take, by the way in which their parts are scheduled.

    python benchmarks/plan_schedules.py [--graphs 1000] [--width 16] [--line TOKENS]

Runs on the simulated engine of the tests, whose clock is virtual: every number is exact and the
same on every machine. A step takes 10 ms and 0.05 ms a row, a call 60 ms, an unread prompt token
0.1 ms; the engine has a prefix cache. Graphs have 4 to 10 parts of lognormal length (median 80
tokens); what the plan says of a length is off by a factor of lognormal 0.3. Five families: flat,
sparse (35 % of the parts need one other), mixed (0 to 2 needs), fan (a last part needs all) and
chain.

- sequential: one call for everything.
- SoT: a list (8 tokens a line), then all points at once. It knows no dependencies; where there are
  any, what it writes is another, incoherent answer, so its times count for flat graphs alone. With
  its router (SoT-R) such questions are answered sequentially.
- SGD: a graph (16 tokens a line), then wave after wave: a part starts when all parts of the wave
  before have ended.
- Plato: the same graph; a part starts when its line is there and what it needs has ended.
- ours: ``Plan("graph")`` (13 tokens a line), or ``Plan("skeleton")`` (8) where all is flat, which
  is what ``auto`` takes for lists, behind a dispatcher, which says that the engine is one's own:
  from the second answer on, a graph is raced by a plain answer. "race" has ``race=True``, "no
  race" ``race=False``, which is what a billed engine gets.

``--line`` gives every plan lines of that many tokens. The visible gap is between two pieces of text
that the reader sees, in the order of the parts: the longest of an answer, on average. "cut" counts
answers with a part that did not get as many tokens as it has; only ours limits parts.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import random
import re
import statistics
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from headrace import Message, Request
from headrace.middleware.dispatcher import Dispatcher
from headrace.middleware.plan import Plan
from headrace.middleware.types import Finished, TextDelta

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from engine import Cost, Reply, SimulatedEngine, handler, run_virtual

COST = Cost(step=0.010, row=0.00005, prefill=0.0001)
CALL = 0.060
FAMILIES = ("flat", "sparse", "mixed", "fan", "chain")
RACES = {"ours": None, "ours, race": True, "ours, no race": False}
METHODS = ("SoT", "SGD", "Plato", *RACES)
LINE = {"SoT": 8, "SGD": 16, "Plato": 16} | dict.fromkeys(RACES, 13)
QUESTION = "How would you compare these things with each other in general terms? " * 3


@dataclass(frozen=True)
class Graph:
    """Lengths in tokens, what each part needs, and what a plan says of the lengths."""

    lengths: tuple[int, ...]
    needs: tuple[tuple[int, ...], ...]
    said: tuple[int, ...]


@dataclass(frozen=True)
class Times:
    """Seconds: the whole answer, its first token, and the longest wait between two pieces.

    ``is_cut``: a part did not get as many tokens as it has.
    """

    wall: float
    first: float
    gap: float
    is_cut: bool = False


def graph(family: str, chance: random.Random) -> Graph:
    """Draw a graph."""
    number = chance.randint(4, 10)
    lengths = [max(round(80 * chance.lognormvariate(0, 0.5)), 10) for _ in range(number)]
    needs: list[tuple[int, ...]] = [()]
    for i in range(2, number + 1):
        before = range(1, i)
        if family == "chain":
            needs.append((i - 1,))
        elif family == "fan" and i == number:
            needs.append(tuple(before))
        elif family == "sparse" and chance.random() < 0.35:
            needs.append((chance.choice(before),))
        elif family == "mixed":
            needs.append(tuple(sorted(chance.sample(before, min(chance.randint(0, 2), i - 1)))))
        else:
            needs.append(())
    said = [max(round(n * chance.lognormvariate(0, 0.3) / 13), 1) for n in lengths]
    return Graph(tuple(lengths), tuple(needs), tuple(min(n, 99) for n in said))


def part_text(found: Graph, part: int) -> str:
    """Return a part's text: words that no other part has."""
    return " ".join(f"p{part}w{k}" for k in range(found.lengths[part - 1]))


def plan_text(found: Graph, line: int, *, is_list: bool = False) -> str:
    """Return a plan in our language whose lines have so many tokens (words)."""
    if is_list:
        titles = (" ".join(f"t{i}x{k}" for k in range(line - 1)) for i in range(len(found.lengths)))
        return "\n".join(f"{i}. {title}" for i, title in enumerate(titles, 1))
    lines = ["@plan"]
    for i, (needs, said) in enumerate(zip(found.needs, found.said, strict=True), 1):
        title = " ".join(f"t{i}x{k}" for k in range(line))
        edges = f"|<{','.join(map(str, needs))}" if needs else ""
        lines.append(f"{i}|{title}{edges}|~{said}")
    return "\n".join(lines) + "\n@end"


def reply(found: Graph, line: int, request: Request) -> Reply:
    """Say what the last message asks for."""
    last = request.messages[-1].text
    parts = range(1, len(found.lengths) + 1)
    if "Do not answer yet" in last or last.endswith("PLAN"):
        text = plan_text(found, line, is_list="numbered list" in last)
    elif asked := re.search(r'about point (\d+), "|PART (\d+)$', last):
        text = part_text(found, int(asked[1] or asked[2]))
    else:
        rest = re.search(r"Write points? (\d+)", last)
        first = int(rest[1]) if rest else 1
        text = "\n\n".join(part_text(found, i) for i in parts if i >= first)
    return Reply(text, delay=CALL)


def engine_of(found: Graph, line: int) -> SimulatedEngine:
    """Return an engine that plans and writes this graph."""
    return SimulatedEngine(
        lambda request: reply(found, line, request), cost=COST, prefix_cache=True
    )


def times(stream: Sequence[float]) -> Times:
    """Return what a reader's pieces, which came at these seconds, say."""
    gaps = [after - before for before, after in pairwise(stream)]
    return Times(stream[-1], stream[0], max(gaps, default=0.0))


def ours(found: Graph, line: int, stage: Plan) -> Times:
    """Answer with the real stage, as a reader sees it."""

    async def main() -> Times:
        loop, seen, is_cut = asyncio.get_running_loop(), list[float](), False
        engine = Dispatcher(engine_of(found, line), window=0.0)
        async with aclosing(stage(Request.of(QUESTION), engine)) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    seen.append(loop.time())
                elif isinstance(event, Finished):
                    is_cut = event.response.finish_reason != "stop"
        return replace(times(seen), is_cut=is_cut)

    seen_times: Times = run_virtual(main())
    return seen_times


def theirs(found: Graph, line: int, rule: str) -> Times:
    """Plan and write by another rule; what is read of it comes in the order of the parts."""

    async def main() -> Times:
        loop = asyncio.get_running_loop()
        call = handler(engine_of(found, line))
        seen: dict[int, list[float]] = {}
        ended = {i: asyncio.Event() for i in range(1, len(found.lengths) + 1)}
        there = {i: asyncio.Event() for i in ended}
        plan = plan_text(found, line)

        async def ask(*messages: Message) -> AsyncGenerator[str, None]:
            async for event in call(Request(messages)):
                if isinstance(event, TextDelta):
                    yield event.text

        async def planner() -> None:
            text = ""
            async for piece in ask(Message.user(QUESTION + "PLAN")):
                text += piece
                if rule == "Plato":
                    for i in range(1, text.count("\n")):
                        there[i].set()
            for event in there.values():
                event.set()

        async def write(part: int) -> None:
            await there[part].wait()
            if rule == "SGD":
                for other, level in levels(found).items():
                    if level < levels(found)[part]:
                        await ended[other].wait()
            elif rule == "Plato":
                for other in found.needs[part - 1]:
                    await ended[other].wait()
            needed = (
                ""
                if rule == "SoT"
                else "".join(part_text(found, other) + " " for other in found.needs[part - 1])
            )
            prefix = Message.user(QUESTION + "PLAN"), Message.assistant(plan)
            last = Message.user(f"{needed}{'Continue this one point. ' * 12}PART {part}")
            seen[part] = [loop.time() async for _ in ask(*prefix, last)]
            ended[part].set()

        await asyncio.gather(planner(), *(write(part) for part in ended))
        visible: list[float] = []
        for part in sorted(seen):
            floor = visible[-1] if visible else 0.0
            visible += [max(at, floor) for at in seen[part]]
        return times(visible)

    seen_times: Times = run_virtual(main())
    return seen_times


def levels(found: Graph) -> dict[int, int]:
    """Return the wave of each part."""
    result: dict[int, int] = {}
    for i, needs in enumerate(found.needs, 1):
        result[i] = 1 + max((result[other] for other in needs), default=0)
    return result


def sequential(found: Graph) -> Times:
    """Answer in one call."""
    return ours(found, 0, Plan("off"))


def geomean(values: Sequence[float]) -> float:
    """Return the geometric mean."""
    return math.exp(statistics.fmean(map(math.log, values)))


def main() -> None:
    """Print a Markdown table a family."""
    parser = argparse.ArgumentParser(description="Schedules of planned answers, simulated.")
    parser.add_argument("--graphs", type=int, default=1000)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--line", type=int)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    line = {name: options.line or own for name, own in LINE.items()}
    chance = random.Random(options.seed)
    stages = {
        (name, kind): Plan(kind, max_nodes=10, width=options.width, race=race)
        for name, race in RACES.items()
        for kind in ("graph", "skeleton")
    }
    print("| graph | schedule | speed-up | worst | TTFT, s | gap, s | cut |")
    print("|---|---|---|---|---|---|---|")
    for family in FAMILIES:
        graphs = [graph(family, chance) for _ in range(options.graphs // len(FAMILIES))]
        base = [sequential(found) for found in graphs]
        row(family, "sequential", base, base)
        for name in METHODS:
            if name.startswith("ours"):
                kind = "skeleton" if family == "flat" else "graph"
                size = options.line or (8 if family == "flat" else LINE[name])
                found = [ours(one, size, stages[name, kind]) for one in graphs]
            else:
                found = [theirs(one, line[name], name) for one in graphs]
            row(family, name, found, base)


def row(family: str, name: str, found: Sequence[Times], base: Sequence[Times]) -> None:
    """Print one line of the table."""
    ups = [one.wall / other.wall for one, other in zip(base, found, strict=True)]
    mark = " (without what it needs)" if name == "SoT" and family != "flat" else ""
    first, gap = (
        statistics.fmean(values) for values in ((t.first for t in found), (t.gap for t in found))
    )
    print(
        f"| {family} | {name}{mark} | {geomean(ups):.2f} | {min(ups):.2f} | {first:.2f} "
        f"| {gap:.2f} | {sum(one.is_cut for one in found)} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
