from __future__ import annotations

from headrace.planners import Node
from headrace.planners.scheduler import Schedule


def ids(nodes: list[Node]) -> list[int]:
    return [node.id for node in nodes]


def make(width: int, *nodes: Node) -> Schedule:
    schedule = Schedule(width)
    for node in nodes:
        schedule.add(node)
    return schedule


def test_a_part_starts_when_what_it_needs_has_ended() -> None:
    schedule = make(9, Node(1, "A"), Node(2, "B", (1,)), Node(3, "C", (), (1,)))
    assert ids(schedule.take(1)) == [1, 3]
    schedule.end(3)
    assert schedule.take(1) == []
    schedule.end(1)
    assert ids(schedule.take(2)) == [2]


def test_the_part_being_read_goes_before_a_longer_chain() -> None:
    nodes = Node(1, "A", length=10), Node(2, "B", length=10), Node(3, "C", (2,), length=500)
    assert ids(make(1, *nodes).take(1)) == [1]
    assert ids(make(1, *nodes).take(9)) == [2]


def test_the_longest_chain_goes_before_a_lower_number() -> None:
    nodes = Node(1, "A"), Node(2, "B", length=20), Node(3, "C", length=90), Node(4, "D", (2,))
    assert ids(make(3, *nodes).take(1)) == [1, 2, 3]


def test_no_more_than_the_width_run() -> None:
    schedule = make(2, *(Node(i, "x") for i in range(1, 6)))
    assert ids(schedule.take(1)) == [1, 2]
    assert schedule.take(1) == []
    schedule.end(2)
    assert ids(schedule.take(1)) == [3]


def test_a_part_that_arrives_after_what_it_needs_has_ended_is_ready() -> None:
    schedule = make(2, Node(1, "A"))
    schedule.take(1)
    schedule.end(1)
    schedule.add(Node(2, "B", (1,)))
    assert ids(schedule.take(2)) == [2]


def test_a_stalled_part_gives_its_place_to_others_and_still_holds_what_needs_it() -> None:
    schedule = make(1, Node(1, "A"), Node(2, "B", (1,)), Node(3, "C"))
    assert ids(schedule.take(1)) == [1]
    schedule.stall(1)
    assert ids(schedule.take(1)) == [3]
    schedule.resume(1)
    assert schedule.num_running == 2
    schedule.end(1)
    schedule.end(3)
    assert ids(schedule.take(2)) == [2]
    assert (schedule.head, schedule.is_running(2)) == (2, True)
