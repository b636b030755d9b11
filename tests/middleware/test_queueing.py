"""Who goes next: decided on plain data."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import InvalidRequest, Request
from headrace.middleware.prefixes import Prefixes, Warmth, prefixes, shared
from headrace.middleware.queueing import (
    MOST_PASSED,
    Order,
    Place,
    Speed,
    Waiting,
    estimated_tokens,
    priority,
)


def line(*places: Place, order: Order | None = None) -> Waiting[Place]:
    waiting = Waiting[Place](order or Order())
    for place in places:
        waiting.add(place)
    return waiting


def beginning(*keys: int) -> Prefixes:
    return tuple((key, 1000 * 2**at) for at, key in enumerate(keys))


def test_first_come_first_served() -> None:
    places = [Place(due=float(at // 2)) for at in range(10)]
    assert line(*places).take(10, 100) == places


def test_a_full_batch_takes_those_of_like_length() -> None:
    lengths = [100, 900, 110, 950, 90, 1000]
    waiting = line(*(Place(due=at, num_tokens=n) for at, n in enumerate(lengths)))
    taken = [[p.num_tokens for p in waiting.take(3, 100)] for _ in range(2)]
    assert taken == [[100, 110, 90], [900, 950, 1000]]


def test_where_all_fit_in_nobody_changes_place() -> None:
    waiting = line(*(Place(due=at, num_tokens=n) for at, n in enumerate([1, 900, 2])))
    assert [p.num_tokens for p in waiting.take(3, 100)] == [1, 900, 2]


def test_a_batch_keeps_to_its_tokens_padding_and_all() -> None:
    order = Order(batch_tokens=100)
    waiting = line(*(Place(due=at, num_tokens=30) for at in range(5)), order=order)
    assert [len(waiting.take(8, 100)) for _ in range(2)] == [3, 2]


def test_what_is_over_the_budget_alone_runs_alone() -> None:
    order = Order(batch_tokens=100)
    waiting = line(Place(due=0, num_tokens=500), Place(due=1, num_tokens=5), order=order)
    assert [[p.num_tokens for p in waiting.take(8, 100)] for _ in range(2)] == [[500], [5]]


def test_no_length_brings_bulk_before_interactive() -> None:
    soon = [Place(due=0, num_tokens=10), Place(due=1, num_tokens=999)]
    later = [Place(due=50, num_tokens=10) for _ in range(5)]  # not due yet
    assert line(*soon, *later).take(2, now=2) == soon


def test_those_with_one_beginning_run_one_after_the_other() -> None:
    waiting = line(*(Place(due=at, prefixes=beginning(at % 3)) for at in range(9)))
    taken = [waiting.take(1, 100)[0].prefixes[0][0] for _ in range(9)]
    assert taken == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_more_in_common_is_nearer() -> None:
    places = [Place(due=at, prefixes=beginning(7, at % 2)) for at in range(6)]
    waiting = line(*places)
    assert [p.prefixes[1][0] for p in waiting.take(6, 100)] == [0, 0, 0, 1, 1, 1]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 500), st.booleans()), max_size=150),
    st.integers(1, 8),
)
def test_nobody_is_lost_doubled_or_passed_for_ever(
    arrivals: list[tuple[int, int, bool]], rows: int
) -> None:
    waiting = Waiting[Place](Order(ageing=20, batch_tokens=2000))
    places = [
        Place(due=at + 20.0 * is_bulk, num_tokens=tokens, prefixes=beginning(key))
        for at, (key, tokens, is_bulk) in enumerate(arrivals)
    ]
    taken: list[Place] = []
    for at, place in enumerate(places):  # three arrive, then a batch starts
        waiting.add(place)
        if at % 3 == 2:
            taken += waiting.take(rows, float(at))
    while waiting:
        batch = waiting.take(rows, float(len(places)))
        assert batch
        taken += batch
    assert len(taken) == len(places)
    assert set(map(id, taken)) == set(map(id, places))
    assert all(place.passed <= MOST_PASSED + rows for place in places)


def test_one_with_nothing_in_common_is_passed_32_times_and_no_more() -> None:
    alone = Place(due=0.5)
    waiting = line(Place(due=0, prefixes=beginning(1)), alone)
    order: list[Place] = []
    for at in range(100):
        waiting.add(Place(due=1.0 + at, prefixes=beginning(1)))
        order += waiting.take(1, 1000.0)
    assert order.index(alone) == 1 + MOST_PASSED


def test_removing_finds_the_one_among_equals() -> None:
    places = [Place(due=1.0) for _ in range(3)]
    waiting = line(*places)
    assert waiting.remove(places[1])
    assert not waiting.remove(places[1])
    assert waiting.take(5, 2) == [places[0], places[2]]


def test_the_priority_is_a_tag() -> None:
    assert priority(Request.of("x")) == "interactive"
    assert priority(Request.of("x", tags={"priority": "bulk"})) == "bulk"
    with pytest.raises(InvalidRequest, match="urgent"):
        priority(Request.of("x", tags={"priority": "urgent"}))


@pytest.mark.parametrize("wrong", [{"ageing": -1}, {"batch_tokens": 0}, {"shared_prefix": 0}])
def test_an_order_that_makes_no_sense_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidRequest, match=next(iter(wrong))):
        Order(**wrong)  # type: ignore[arg-type]


def test_tokens_are_a_quarter_of_the_characters() -> None:
    assert estimated_tokens(Request.of("x" * 400)) == 101


texts = st.text("ab", max_size=40)


@given(texts, texts, texts)
def test_what_is_said_to_be_shared_is_shared(same: str, left: str, right: str) -> None:
    one, other = Request.of(same + left), Request.of(same + right)
    chars = shared(prefixes(one, 5), prefixes(other, 5))
    assert (same + left)[:chars] == (same + right)[:chars]
    assert chars >= 5 or len(same) < 5 or min(len(same + left), len(same + right)) < 5


def test_the_same_first_messages_are_shared_to_the_end() -> None:
    system = {"role": "system", "content": "s" * 70}
    chats = [[system, {"role": "user", "content": text * 20}] for text in "ab"]
    one, other = (prefixes(Request.of(chat), 50) for chat in chats)
    assert shared(one, other) == 70
    assert prefixes(Request.of("short"), 50) == ()


def test_other_tools_are_another_beginning() -> None:
    from headrace import Sampling

    with_tools = Request.of("x" * 90, sampling=Sampling(extra={"tools": [{"name": "f"}]}))
    assert shared(prefixes(with_tools, 50), prefixes(Request.of("x" * 90), 50)) == 0


def test_who_follows_waits_for_the_leader_to_be_read() -> None:
    warmth = Warmth(least=1000)
    leader, follower, other = beginning(1, 2), beginning(1, 3), beginning(9)
    warmth.start(leader, now=0)
    assert warmth.is_held(follower, 1)
    assert not warmth.is_held(other, 1)
    assert not warmth.is_held(follower, 10)  # a leader that hangs holds nobody for ever
    assert warmth.stop(leader, is_read=True)
    assert not warmth.is_held(follower, 1)


def test_a_leader_that_fails_frees_the_next_one_only() -> None:
    warmth = Warmth(least=1000)
    leader, second, third = beginning(1, 2), beginning(1, 3), beginning(1, 4)
    warmth.start(leader, 0)
    warmth.stop(leader, is_read=False)
    assert not warmth.is_held(second, 0)
    warmth.start(second, 0)
    assert warmth.is_held(third, 0)


def test_a_few_characters_more_are_not_waited_for() -> None:
    warmth = Warmth(least=1000)
    warm = ((1, 5000),)
    warmth.start(warm, 0)
    warmth.stop(warm, is_read=True)
    warmth.start((*warm, (2, 5900)), 0)
    assert not warmth.is_held((*warm, (2, 5900), (3, 7000)), 0)
    warmth.start((*warm, (4, 6000)), 0)
    assert warmth.is_held((*warm, (4, 6000), (5, 7000)), 0)


def test_what_is_remembered_is_bounded() -> None:
    warmth = Warmth(least=1000, size=10)
    for key in range(100):
        warmth.start(beginning(key), 0)
        warmth.stop(beginning(key), is_read=True)
    assert len(warmth._warm) == 10


def test_the_speed_of_the_queue_says_how_long_it_takes() -> None:
    speed = Speed()
    assert speed.seconds(10, now=0) == 1
    for at in range(100):
        speed.note(at * 0.5)
    assert speed.seconds(20, now=50) == pytest.approx(10, rel=0.05)
    assert speed.seconds(20, now=100) > 15  # it has stood still since
    assert speed.seconds(10_000, now=50) == 60
