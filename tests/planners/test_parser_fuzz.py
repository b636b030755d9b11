"""Random plans, fed in random pieces: nothing raises, and how they were cut does not matter."""

from __future__ import annotations

import random

import pytest

from headrace.planners import Mode, PlanParser, parse_plan

HEADS = (
    "1. ", "2) ", "(3) ", "4、", "五、", "６．", "iv. ", "b) ", "- ", "* ", "**7.** ", "### 8. ",
    "9|", "10 | ", "0. ", "99. ", "123. ", "2.5 ", "", "  - ", "\t1. ", "> 1. ", "Point 2: ",
    "1.1 ",
)  # fmt: skip
TITLES = (
    "Alpha", "Beta!", "beta", "", "A title | with bars", "**bold**", "x" * 250, "甲乙", "é🙂",
    "Costs: what it costs", "uses (needs 1)", "1. A. 2. B. 3. C", "$1 {0} %s <2>", "`code`", "\x00",
)  # fmt: skip
FIELDS = (
    "|<1", "|<1,2", "|<9,99", "|%2", "|~6", "|~0", "|~999999999999", "|h1", "|h3", "|h9", "|!rest",
    "|<", "|", "|after=1", "|deps: 3", "|<-1", "|~x", "| < 2 | ~ 3 ",
)  # fmt: skip
LINES = (
    "@plan", "@plan lang=en style=plain", "@end", "```", "~~~", "<think>", "</think>", "Sure!", "",
    "\r", "Here is the plan:", "2023. A year", "x==2.0.1", "@PLAN", "@end.", "<thinking>", "...",
)  # fmt: skip


def plan_text(chance: random.Random) -> str:
    """Return lines of a plan as models write it, and as they should not."""
    lines: list[str] = []
    for _ in range(chance.randrange(14)):
        if chance.random() < 0.25:
            lines.append(chance.choice(LINES))
            continue
        fields = "".join(chance.choice(FIELDS) for _ in range(chance.randrange(4)))
        lines.append(chance.choice(HEADS) + chance.choice(TITLES) + fields)
    text = chance.choice(("\n", "\r\n", "\r", "\n\n", " ")).join(lines)
    if text and chance.random() < 0.2:  # torn anywhere
        text = text[: chance.randrange(len(text))]
    return text


def check(seed: int, number: int) -> None:
    chance = random.Random(seed)
    for _ in range(number):
        text, max_nodes = plan_text(chance), chance.randrange(2, 13)
        mode: Mode = chance.choice(("skeleton", "graph"))
        whole = parse_plan(text, mode, max_nodes=max_nodes)
        assert [node.id for node in whole.nodes] == list(range(1, len(whole.nodes) + 1))
        assert len(whole.nodes) <= max_nodes
        for node in whole.nodes:
            assert node.title
            assert 1 <= node.difficulty <= 3
            assert 1 <= node.length <= 1000
            assert all(0 < other < node.id for other in (*node.needs, *node.agrees))
        parser, data = PlanParser(mode, max_nodes=max_nodes), text.encode()
        while data:
            size = chance.choice((1, 1, 2, 7, 40))
            parser.feed(data[:size])
            data = data[size:]
        parser.finish()
        assert parser.plan == whole, text


def test_two_thousand_random_plans_are_read() -> None:
    check(0, 2_000)


@pytest.mark.slow
def test_a_hundred_thousand_random_plans_are_read() -> None:
    check(1, 100_000)
