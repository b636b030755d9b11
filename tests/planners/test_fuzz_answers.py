"""Random plans with random faults: every run ends, nothing is lost, doubled or left open."""

from __future__ import annotations

import asyncio
import random
import re
from contextlib import aclosing
from dataclasses import dataclass, field

import pytest
from engine import Cost, Reply, SimulatedEngine, handler, run_virtual

from headrace.middleware.dispatcher import Dispatcher
from headrace.middleware.errors import BackendError, HeadraceError
from headrace.middleware.plan import Plan
from headrace.middleware.types import Finished, Handler, Request, Response, Sampling, TextDelta

LIST = "What are the benefits of regular exercise?"
_WORD = re.compile(r"\bn(\d+)w(\d+)\b")
_POINT = re.compile(r'What can you say about point (\d+), "')
_REST = re.compile(r"Write (?:the whole answer now: all points|points? (\d+)(?: to (\d+))? now)")


@dataclass
class Script:
    """What the engine says and how it fails, from one seed.

    Each part is made of words of its own, numbered, so that a lost or doubled one is seen.
    """

    chance: random.Random
    faults: float
    num_parts: int = 0
    lengths: dict[int, int] = field(default_factory=dict[int, int])
    plan: str = ""

    def __post_init__(self) -> None:
        self.num_parts = self.chance.choice([0, 1, 2, 3, 4, 5, 8, 12])
        lines: list[str] = []
        for i in range(1, self.num_parts + 1):
            self.lengths[i] = self.chance.choice([0, 1, 5, 30, 80, 300])
            needs = [k for k in range(1, self.num_parts + 2) if self.chance.random() < 0.2]
            soft = [k for k in range(1, i) if self.chance.random() < 0.1]
            line = f"{i}|Title{i}"
            line += f"|<{','.join(map(str, needs))}" if needs else ""
            line += f"|%{','.join(map(str, soft))}" if soft else ""
            line += f"|~{self.chance.randint(1, 40)}" if self.chance.random() < 0.8 else ""
            line += f"|h{self.chance.randint(1, 3)}" if self.chance.random() < 0.3 else ""
            lines.append(line)
        if self.chance.random() < 0.1:
            lines.insert(0, "Sure! Here is the plan:")
        self.plan = "@plan\n" + "\n".join(lines) + self.chance.choice(["\n@end", "\n", ""])

    def text(self, part: int) -> str:
        return " ".join(f"n{part}w{k}" for k in range(self.lengths.get(part, 20)))

    def reply(self, request: Request) -> Reply:
        last = request.messages[-1].text
        if "Do not answer yet" in last:
            said = self.plan
        elif "leads from the one to the other" in last:
            said = '{"2": "And then.", "3": "So much for that."}'
        else:
            said = self._text(request)
        return self._faulty(said)

    def _text(self, request: Request) -> str:
        asked = [m.text for m in request.messages if m.role == "user"]
        is_cut = "Your text was cut off" in asked[-1]
        whole = self._whole(asked[-2] if is_cut else asked[-1])
        if not is_cut or not (written := _WORD.findall(request.messages[-2].text)):
            return whole
        pieces = re.findall(r"\s*\S+", whole)
        last = "n{}w{}".format(*written[-1])
        done = next((i for i, piece in enumerate(pieces, 1) if piece.strip() == last), 0)
        start = max(done - self.chance.choice([0, 0, 4]), 0)  # some repeat the last words
        return "".join(pieces[start:])

    def _whole(self, asked: str) -> str:
        if found := _REST.search(asked):
            parts = range(int(found[1] or 1), self.num_parts + 1)
            return "\n\n".join(f"{i}. **Title{i}**: {self.text(i)}" for i in parts)
        if points := _POINT.findall(asked):
            return self.text(int(points[-1]))
        return " ".join(f"n0w{k}" for k in range(40))

    def _faulty(self, said: str) -> Reply:
        delay = self.chance.choice([0.0, 0.0, 0.01, 2.0])
        if self.chance.random() >= self.faults:
            return Reply(said, delay)
        after = self.chance.randint(0, len(said.split()) + 1)
        error: HeadraceError = self.chance.choice(
            [
                BackendError("reset", retryable=True),
                BackendError(
                    "429", retryable=True, retry_after=self.chance.choice([0.1, 1.0, 5.0])
                ),
                BackendError("400"),
                BackendError("overloaded", retryable=True),
            ]
        )
        if isinstance(error, BackendError) and error.retry_after:
            after = 0
        return Reply(said, delay, after=after, error=error)


@dataclass
class Outcome:
    """A run: what was read, how it ended."""

    text: str = ""
    response: Response | None = None
    error: HeadraceError | None = None
    num_open: int = 0


def run(seed: int) -> tuple[Script, SimulatedEngine, Outcome, int | None]:
    """Answer one request on one engine, with everything drawn from the seed."""
    chance = random.Random(seed)
    script = Script(chance, chance.choice([0.0, 0.1, 0.5]))
    cap = chance.choice([None, 1, 2, 8])
    engine = SimulatedEngine(
        script.reply,
        cost=Cost(step=0.01, row=chance.choice([0.0, 0.001, 0.02]), prefill=0.0001),
        max_concurrency=cap or 64,
        slots=chance.choice([1, 4, 64]),
        prefix_cache=chance.random() < 0.5,
    )
    small = SimulatedEngine(script.reply, cost=Cost(step=0.002))
    stage = Plan(
        chance.choice(["graph", "graph", "skeleton"]),
        max_nodes=chance.choice([2, 8, 12]),
        width=chance.choice([1, 2, 8]),
        when=chance.choice(["pays", "always"]),
        race=chance.random() < 0.3,
        seams=chance.random() < 0.3,
        small=handler(small) if chance.random() < 0.2 else None,
    )
    leave = chance.uniform(0, 4) if chance.random() < 0.2 else None
    request = Request.of(
        LIST,
        sampling=Sampling(max_tokens=chance.choice([None, None, 150, 600])),
        deadline=chance.choice([None, None, 3.0, 60.0]),
    )

    async def main() -> Outcome:
        call: Handler = Dispatcher(engine) if cap else handler(engine)
        outcome = Outcome()

        async def read() -> None:
            async with aclosing(stage(request, call)) as events:
                async for event in events:
                    assert outcome.response is None
                    if isinstance(event, TextDelta):
                        outcome.text += event.text
                    elif isinstance(event, Finished):
                        outcome.response = event.response

        try:
            await asyncio.wait_for(read(), leave)
        except TimeoutError:
            outcome.error = HeadraceError("the reader left")
        except HeadraceError as error:
            outcome.error = error
        await asyncio.sleep(0.1)
        outcome.num_open = stage.known.num_open + len(asyncio.all_tasks()) - 1
        return outcome

    outcome = run_virtual(main())
    for one in (engine, small):
        assert all(record.outcome != "open" for record in one.log), f"seed {seed}: left open"
    return script, engine, outcome, cap


def check(seed: int) -> None:
    """Assert what holds for every run."""
    script, engine, outcome, cap = run(seed)
    where = f"seed {seed}"
    assert outcome.num_open == 0, where
    assert cap is None or engine.peak_calls <= cap, where
    words = [(int(part), int(k)) for part, k in _WORD.findall(outcome.text)]
    assert len(words) == len(set(words)), f"{where}: doubled {outcome.text[:300]}"
    assert words == sorted(words), f"{where}: out of order"
    if outcome.response is None:
        assert outcome.error is not None, where
        return
    assert outcome.response.text == outcome.text, where
    row = outcome.response.report.stage("plan")
    assert row is not None, where
    found = row.details
    if outcome.response.finish_reason != "stop" or not found.get("nodes"):
        return
    if found["decision"] == "plain" or row.decision.startswith("no plan"):
        return
    for part in {part for part, _ in words} - {0}:
        assert sum(one == part for one, _ in words) == script.lengths[part], f"{where}: lost"
    if len(found["nodes"]) == script.num_parts and not found["missing"]:
        written = {part for part, _ in words}
        assert written >= {i for i, length in script.lengths.items() if length}, f"{where}: lost"


@pytest.mark.parametrize("block", range(4))
def test_random_answers_end_and_lose_nothing(block: int) -> None:
    for seed in range(block * 75, (block + 1) * 75):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_ten_thousand_random_answers_end_and_lose_nothing(block: int) -> None:
    for seed in range(1000 + block * 500, 1000 + (block + 1) * 500):
        check(seed)
