"""The plan language as a constraint: what it lets through is a plan, whole and without cycles."""

from __future__ import annotations

import re
from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import InvalidRequest, constraint
from headrace.middleware.check import full_match
from headrace.planners import Mode, parse_plan, plan_pattern

GRAPH = "@plan\n1|What it does|~6\n2|Running cost|<1|~9\n3|Noise|<1,2|%2|~5\n@end"


@pytest.mark.parametrize(
    ("mode", "text", "is_accepted"),
    [
        ("graph", GRAPH, True),
        ("graph", GRAPH.replace("~9", "~9|h3"), True),
        ("graph", GRAPH.replace("~9", "~9|h4"), False),
        ("graph", GRAPH.replace("<1|", "<2|"), False),  # itself
        ("graph", GRAPH.replace("<1|", "<3|"), False),  # a part behind it
        ("graph", GRAPH.replace("3|", "4|"), False),
        ("graph", GRAPH.removesuffix("@end"), False),
        ("graph", "@plan\n1|One|~6\n@end", False),
        ("skeleton", "1. Cost\n2. Noise\n", True),
        ("skeleton", "1. Cost\n3. Noise\n", False),
        ("skeleton", "1. Cost\n", False),
        ("skeleton", "Sure!\n1. Cost\n2. Noise\n", False),
    ],
)
def test_exactly_plans_are_let_through(mode: Mode, text: str, is_accepted: bool) -> None:
    made = constraint(re.compile(plan_pattern(mode)))
    assert made.kind == "regex"
    assert full_match(str(made.spec), text) is is_accepted


def test_the_number_of_parts_is_bounded() -> None:
    lines = [f"{n}. Point {n}\n" for n in range(1, 10)]
    pattern = plan_pattern("skeleton", max_nodes=8)
    assert [full_match(pattern, "".join(lines[:n])) for n in (1, 2, 8, 9)] == [
        False,
        True,
        True,
        False,
    ]
    with pytest.raises(InvalidRequest):
        plan_pattern(max_nodes=1)


@given(st.sampled_from(["skeleton", "graph"]), st.data())
def test_every_text_of_the_pattern_is_read_as_the_plan_it_says(
    mode: Mode, data: st.DataObject
) -> None:
    num = data.draw(st.integers(2, 6))
    word = st.from_regex(r"[A-Za-z]{3,9}", fullmatch=True)
    titles = data.draw(st.lists(word, min_size=num, max_size=num, unique_by=str.casefold))
    needs = [data.draw(st.sets(st.integers(1, at))) if at else set() for at in range(num)]
    if mode == "skeleton":
        text = "".join(f"{at}. {title}\n" for at, title in enumerate(titles, 1))
    else:
        lines = [
            f"{at}|{title}{'|<' + ','.join(map(str, sorted(need))) if need else ''}|~7\n"
            for at, (title, need) in enumerate(zip(titles, needs, strict=True), 1)
        ]
        text = f"@plan\n{''.join(lines)}@end"
    assert full_match(plan_pattern(mode), text)
    plan = parse_plan(text, mode)
    assert [node.title for node in plan.nodes] == titles
    assert nx.is_directed_acyclic_graph(plan.graph)
    if mode == "graph":
        assert [set(node.needs) for node in plan.nodes] == needs
        assert plan.dropped == ()
    assert all(first.id < second.id for first, second in pairwise(plan.nodes))
