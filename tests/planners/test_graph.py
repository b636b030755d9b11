from __future__ import annotations

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from headrace.planners import Item, Plan
from headrace.planners.graph import DEFAULT_LENGTH, Builder, tails

KEYS = st.lists(st.integers(-1, 12), max_size=4).map(tuple)
ITEMS = st.lists(
    st.builds(
        Item,
        title=st.text(alphabet="ab !", max_size=4),
        key=st.none() | st.integers(0, 12),
        needs=KEYS,
        agrees=KEYS,
        length=st.none() | st.integers(-5, 2000),
    ),
    max_size=20,
)


@given(ITEMS, st.integers(2, 12))
def test_every_plan_is_a_graph_without_cycles(items: list[Item], max_nodes: int) -> None:
    plan = Plan.of(items, max_nodes=max_nodes)
    assert list(plan.graph) == list(range(1, len(plan.nodes) + 1))
    assert nx.is_directed_acyclic_graph(plan.graph)
    assert all(start < end for start, end in plan.graph.edges)
    assert len(plan.nodes) <= max_nodes


@given(ITEMS, st.integers(2, 12))
def test_no_title_is_lost(items: list[Item], max_nodes: int) -> None:
    plan = Plan.of(items, max_nodes=max_nodes)
    shown = " ".join(node.title for node in plan.nodes)
    for item in items:
        word = item.title.replace("!", " ").strip()
        assert " ".join(word.split()) in " ".join(shown.replace("!", " ").split())


@given(ITEMS)
def test_the_critical_path_is_networkx_longest_path(items: list[Item]) -> None:
    plan = Plan.of(items)
    graph = nx.DiGraph()
    for node in plan.nodes:
        graph.add_edge((node.id, "in"), (node.id, "out"), weight=node.length)
        graph.add_edges_from((((i, "out"), (node.id, "in")) for i in node.needs), weight=0)
    assert plan.critical_path == nx.dag_longest_path_length(graph)


def test_senseless_edges_are_dropped_and_named() -> None:
    items = [Item("A", 1, (1,)), Item("B", 2, (3, 99)), Item("C", 3, (2, 2), (2, 1))]
    plan = Plan.of(items)
    assert [(node.needs, node.agrees) for node in plan.nodes] == [((), ()), ((), ()), ((2,), (1,))]
    assert plan.dropped == (
        "1 -> 1: itself",
        "3 -> 2: no such part before it",
        "99 -> 2: no such part before it",
    )


def test_a_duplicate_is_another_name_of_the_first() -> None:
    plan = Plan.of([Item("Overview", 1), Item("overview.", 2), Item("Details", 3, (2,))])
    assert [node.title for node in plan.nodes] == ["Overview", "Details"]
    assert plan.nodes[1].needs == (1,)
    assert plan.num_merged == 1


def test_the_tail_of_a_long_plan_ends_in_its_last_node() -> None:
    items = [Item(f"P{i}", i, (i - 1,) if i > 1 else ()) for i in range(1, 6)]
    plan = Plan.of(items, max_nodes=3)
    assert [node.title for node in plan.nodes] == ["P1", "P2", "P3; P4; P5"]
    assert plan.nodes[2].needs == (2,)
    assert plan.nodes[2].length == 3 * DEFAULT_LENGTH


def test_what_came_out_never_changes() -> None:
    builder = Builder(max_nodes=3)
    assert builder.add(Item("A")) is not None
    assert builder.add(Item("B")) is not None
    assert builder.add(Item("C")) is None
    assert builder.num_nodes == 3
    builder.add(Item("D"))
    last = builder.flush()
    assert last is not None
    assert last.title == "C; D"
    assert builder.flush() is None


def test_tails_count_hard_edges_only() -> None:
    items = [Item("A", 1, length=10), Item("B", 2, (1,), length=20), Item("C", 3, (), (2,), 50)]
    assert tails(Plan.of(items).nodes) == {1: 30, 2: 20, 3: 50}
