"""Random plans under random limits: what is read keeps the limit, and parts end cleanly."""

from __future__ import annotations

import random
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest
from engine import Cost, Reply, SimulatedEngine, collect, handler, run_virtual
from engine.planning import answer, row

from headrace.middleware.errors import BackendError
from headrace.middleware.plan import Plan
from headrace.middleware.types import Event, Finished, Request, Response, Sampling, TextDelta, Usage

LIST = "What are the benefits of regular exercise?"
ITEMS = "Describe each place:\n1. Oslo\n2. Rome\n3. Lima\n4. Cairo"
_WORD = re.compile(r"\bn(\d+)w(\d+)\b")
_POINT = re.compile(r'What can you say about point (\d+), "|Continue with point (\d+)')
_REST = re.compile(r"Write (?:the whole answer now: all points|points? (\d+)(?: to (\d+))? now)")
_ITEM = re.compile(r"Item: (\w+)$")
_SECTION = re.compile(r'"Title(\d+) of it"')
_PLACES = {"Oslo": 1, "Rome": 2, "Lima": 3, "Cairo": 4}


@dataclass
class Script:
    """What the engine says, from one seed: sentences of words that no other part has."""

    chance: random.Random
    faults: float = 0.0
    sizes: dict[int, int] = field(default_factory=dict[int, int])
    plan: str = ""

    def __post_init__(self) -> None:
        number = self.chance.randint(2, 9)
        lines = ["@plan"]
        for i in range(1, number + 1):
            self.sizes[i] = self.chance.choice([3, 20, 60, 150, 400])
            needs = [k for k in range(1, i) if self.chance.random() < 0.25]
            edges = f"|<{','.join(map(str, needs))}" if needs else ""
            title = " ".join(f"Title{i}" for _ in range(self.chance.choice([1, 1, 3, 12])))
            lines.append(f"{i}|{title}{edges}|~{self.chance.randint(1, 30)}")
        self.plan = "\n".join(lines) + "\n@end"

    def text(self, part: int) -> str:
        """Return sentences of 8 words."""
        size = self.sizes.get(part, 40)
        return " ".join(
            f"n{part}w{k}{'.' if k % 8 == 7 or k + 1 == size else ''}" for k in range(size)
        )

    def reply(self, request: Request) -> Reply:
        last = request.messages[-1].text
        if "leads from the one to the other" in last:
            said = '{"2": "And then there is this to be said.", "3": "So much for that."}'
        elif "do not answer yet" in last.lower() or last.endswith("Skeleton:\n"):
            is_list = "numbered list" in last
            lines = self.plan.splitlines()[1:-1]
            found = [line.split("|")[:2] for line in lines]
            said = "\n".join(f"{n}. {title}" for n, title in found) if is_list else self.plan
        else:
            said = self._text(request)
        if self.chance.random() < self.faults:
            after = self.chance.randint(0, len(said.split()))
            return Reply(said, after=after, error=BackendError("reset", retryable=True))
        return Reply(said)

    def _text(self, request: Request) -> str:
        asked = [m.text for m in request.messages if m.role == "user"]
        is_cut = "Your text was cut off" in asked[-1]
        whole = self._whole(asked[-2] if is_cut else asked[-1])
        if not is_cut:
            return whole
        pieces = re.findall(r"\s*\S+", whole)
        shown = len(_WORD.findall(request.messages[-2].text))
        return "".join(pieces[shown:])

    def _whole(self, asked: str) -> str:
        if found := _ITEM.search(asked):
            return self.text(_PLACES[found[1]])
        if found := _REST.search(asked):
            parts = range(int(found[1] or 1), len(self.sizes) + 1)
            return "\n\n".join(self.text(i) for i in parts)
        if found := _SECTION.search(asked):
            return self.text(int(found[1]))
        if points := _POINT.findall(asked):
            return self.text(int(points[-1][0] or points[-1][1]))
        return self.text(0)


def run(seed: int, limit: int, faults: float = 0.0) -> tuple[Script, Response]:
    """Answer one request, with everything drawn from the seed."""
    chance = random.Random(seed)
    script = Script(chance, faults)
    engine = SimulatedEngine(script.reply, cost=Cost(step=0.01))
    strategy = chance.choice(["graph", "skeleton", "sot", "decide", "auto", "map", "outline"])
    titles = tuple(f"Title{i} of it" for i in script.sizes) if strategy == "outline" else ()
    stage = Plan(
        cast("Any", "template" if titles else strategy),
        max_nodes=chance.choice([2, 8, 12]),
        width=chance.choice([1, 2, 8]),
        outline=titles,
        when=chance.choice(["pays", "always"]),
        race=chance.random() < 0.3,
        seams=chance.random() < 0.3,
    )
    question = ITEMS if strategy == "map" else LIST
    request = Request.of(question, sampling=Sampling(max_tokens=limit))
    _, response = answer(engine, stage, request)
    return script, response


def num_words(text: str) -> int:
    return len(text.split())


@pytest.mark.parametrize("block", range(4))
def test_what_is_read_keeps_the_limit(block: int) -> None:
    for seed in range(block * 100, (block + 1) * 100):
        limit = random.Random(seed + 7).choice([60, 120, 150, 200, 253, 400, 700])
        script, response = run(seed, limit)
        assert num_words(response.text) <= limit, f"seed {seed}, {row(response).decision}"
        words = [(int(a), int(b)) for a, b in _WORD.findall(response.text)]
        assert words == sorted(set(words)), f"seed {seed}: doubled or out of order"
        if response.finish_reason == "stop":
            shown = {part for part, _ in words}
            assert all((i, script.sizes.get(i, 40) - 1) in words for i in shown), f"seed {seed}"


@pytest.mark.parametrize("block", range(2))
def test_what_is_read_keeps_the_limit_when_calls_break(block: int) -> None:
    for seed in range(block * 100, (block + 1) * 100):
        limit = random.Random(seed).choice([120, 200, 400])
        try:
            _, response = run(seed, limit, faults=0.2)
        except BackendError:
            continue
        assert num_words(response.text) <= limit, f"seed {seed}, {row(response).decision}"


def test_a_part_that_is_cut_ends_with_a_sentence_or_an_ellipsis() -> None:
    num_cut = 0
    for seed in range(300):
        script, response = run(seed, 200)
        if not row(response).decision.startswith("wrote"):
            continue
        *parts, _last = re.split(r"\n+(?=\d\. )", response.text)
        for text in parts:
            words = [(int(a), int(b)) for a, b in _WORD.findall(text)]
            if words and words[-1][1] != script.sizes.get(words[-1][0], 40) - 1:
                num_cut += 1
                assert re.search(r"[.…]\Z", text), f"seed {seed}: {text[-40:]!r}"
    assert num_cut > 100


@pytest.mark.parametrize("size", [1, 3, 7])
def test_an_engine_that_does_not_count_keeps_the_limit(size: int) -> None:
    """Its pieces are several tokens each, and no usage comes with the answer."""
    for seed in range(60):
        script = Script(random.Random(seed))
        call = handler(SimulatedEngine(script.reply, cost=Cost(step=0.01)))

        async def blind(request: Request) -> AsyncGenerator[Event, None]:
            held: list[str] = []
            async with aclosing(call(request)) as events:  # noqa: B023
                async for event in events:
                    if isinstance(event, TextDelta):
                        held.append(event.text)
                    if held and (isinstance(event, Finished) or len(held) == size):
                        yield TextDelta("".join(held))
                        held.clear()
                    if isinstance(event, Finished):
                        yield Finished(replace(event.response, usage=Usage()))

        async def main() -> str:
            request = Request.of(LIST, sampling=Sampling(max_tokens=240))
            stage = Plan("graph", when="always")
            return (await collect(stage(request, blind))).text

        text: str = run_virtual(main())
        assert num_words(text) <= 240, f"seed {seed}"


@pytest.mark.parametrize("limit", range(1, 21))
def test_the_smallest_limits_are_kept_in_one_call(limit: int) -> None:
    for seed in range(12):
        _, response = run(seed, limit)
        assert num_words(response.text) <= limit
        assert response.finish_reason == "length"
        assert response.usage.num_calls == 1
