from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from random import Random
from typing import Any

import pytest

from headrace.compressors.callers import CALLER, Abandoned, Caller
from headrace.compressors.gathering import Gatherer

FOREVER = 60.0


class Model:
    """Doubles numbers; holds its passes while ``is_held``, and refuses 13."""

    def __init__(self, **options: Any) -> None:
        self.passes: list[list[int]] = []
        self.open = threading.Event()
        self.open.set()
        self.gather = Gatherer[int, int](self.run, **{"width": lambda _: 1, **options})
        self.pool = ThreadPoolExecutor(16)

    def run(self, rows: list[int]) -> list[int]:
        self.passes.append(rows)
        assert self.open.wait(FOREVER)
        if 13 in rows:
            raise ValueError("13 is not doubled")
        return [2 * row for row in rows]

    def ask(self, *rows: int) -> Future[Sequence[int]]:
        """Ask in a thread of its own; returns when the call waits or runs."""
        before = len(self.passes) + self.gather.num_waiting
        asked = self.pool.submit(copy_context().run, self.gather, rows)
        until(lambda: len(self.passes) + self.gather.num_waiting > before or asked.done())
        return asked

    def hold(self) -> Future[Sequence[int]]:
        """Begin a pass that does not end before ``open`` is set."""
        self.open.clear()
        return self.ask(0)


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + FOREVER
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_a_call_alone_runs_at_once_in_its_own_thread() -> None:
    threads: list[threading.Thread] = []

    def run(rows: list[int]) -> list[int]:
        threads.append(threading.current_thread())
        return rows

    gather = Gatherer[int, int](run, width=lambda _: 1, window=FOREVER)
    with gather.attend():
        assert gather([1, 2]) == [1, 2]
    assert threads == [threading.current_thread()]
    assert gather([]) == []


def test_calls_that_come_during_a_pass_share_the_next() -> None:
    model = Model()
    first = model.hold()
    others = [model.ask(i, 10 * i) for i in range(1, 9)]
    model.open.set()
    assert first.result() == [0]
    assert [other.result() for other in others] == [[2 * i, 20 * i] for i in range(1, 9)]
    assert len(model.passes) == model.gather.num_passes == 2


def test_a_pass_keeps_to_its_budget_and_begins_with_the_oldest() -> None:
    model = Model(most_rows=3)
    held = model.hold()
    others = [model.ask(*rows) for rows in ([1, 2], [3, 4], [5], [6, 7, 8, 9])]
    model.open.set()
    assert [list(each.result()) for each in (held, *others)]
    assert model.passes == [[0], [1, 2, 5], [3, 4], [6, 7, 8, 9]]


def test_rows_of_very_different_width_do_not_share_their_padding() -> None:
    model = Model(width=lambda row: row)
    model.hold()
    others = [model.ask(*rows) for rows in ([1000] * 2, [20] * 20, [900] * 2)]
    model.open.set()
    assert all(other.result() for other in others)
    assert model.passes[1:] == [[1000, 1000, 900, 900], [20] * 20]


def test_one_that_fails_does_not_fail_its_neighbours() -> None:
    model = Model()
    model.hold()
    good, bad, other = model.ask(1), model.ask(13), model.ask(2)
    model.open.set()
    assert (good.result(), other.result()) == ([2], [4])
    with pytest.raises(ValueError, match="13 is not doubled"):
        bad.result()
    assert model.gather([3]) == [6]


def test_a_pass_waits_for_rows_that_were_announced() -> None:
    model = Model(window=FOREVER)
    second_may_ask = threading.Event()

    def announce_and_ask(row: int) -> Sequence[int]:
        with model.gather.attend():
            announced.release()
            second_may_ask.wait(FOREVER)
            return model.gather([row])

    announced = threading.Semaphore(0)
    late = model.pool.submit(announce_and_ask, 2)
    announced.acquire()
    with model.gather.attend():
        threading.Timer(0.05, second_may_ask.set).start()
        assert model.gather([1]) == [2]
    assert late.result() == [4]
    assert model.passes == [[1, 2]]


def test_who_announced_rows_and_has_none_holds_nobody_up() -> None:
    model = Model(window=FOREVER)
    leave = threading.Event()

    def announce_only() -> None:
        with model.gather.attend():
            announced.set()
            leave.wait(FOREVER)

    announced = threading.Event()
    gone = model.pool.submit(announce_only)
    announced.wait(FOREVER)
    with model.gather.attend():
        threading.Timer(0.05, leave.set).start()
        assert model.gather([1]) == [2]
    gone.result()


def test_rows_of_a_caller_that_has_gone_are_not_run() -> None:
    model = Model()
    caller = Caller(threading.Semaphore(9))
    model.hold()
    context = copy_context()
    context.run(CALLER.set, caller)
    gone = context.run(model.ask, 5)
    other = model.ask(6)
    caller.is_gone = True
    model.open.set()
    assert other.result() == [12]
    with pytest.raises(Abandoned):
        gone.result()
    assert model.passes == [[0], [6]]


def test_an_interrupt_in_one_thread_leaves_the_others_their_results() -> None:
    calls: list[list[int]] = []

    def run(rows: list[int]) -> list[int]:
        calls.append(rows)
        if len(calls) == 1:
            until(lambda: gather.num_waiting == 2)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return rows

    gather = Gatherer[int, int](run, width=lambda _: 1)
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(gather, [0])
        until(lambda: len(calls) == 1)
        second = pool.submit(gather, [1])
        until(lambda: gather.num_waiting == 1)
        third = pool.submit(gather, [2])
        with pytest.raises(KeyboardInterrupt):
            second.result(FOREVER)
        assert (first.result(FOREVER), third.result(FOREVER)) == ([0], [2])


def test_an_interrupt_of_a_thread_that_waits_stops_nobody_else() -> None:
    model = Model()
    held = model.hold()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            model.gather([1])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    other = model.ask(2)
    model.open.set()
    assert (held.result(FOREVER), other.result(FOREVER)) == ([0], [4])
    assert model.passes == [[0], [2]]


def test_a_long_job_lets_a_short_one_in_between_its_batches() -> None:
    model = Model(most_rows=4)
    model.open.clear()
    job = model.pool.submit(lambda: [model.gather([1, 1, 1, 1]) for _ in range(50)])
    until(lambda: len(model.passes) == 1)
    short = model.ask(7, 7)
    model.open.set()
    assert short.result() == [14, 14]
    job.result()
    assert model.passes[1] == [7, 7]


def test_without_sharing_calls_take_turns() -> None:
    model = Model(shares=False)
    model.hold()
    others = [model.ask(i) for i in range(1, 5)]
    model.open.set()
    assert [other.result() for other in others] == [[2], [4], [6], [8]]
    assert len(model.passes) == 5


def test_every_call_gets_its_own_rows_however_threads_meet() -> None:
    model = Model(most_rows=7, window=0.0001)

    def work(seed: int) -> bool:
        random, good = Random(seed), True
        for _ in range(200):
            rows = [random.randrange(20) for _ in range(random.randrange(4))]
            with model.gather.attend():
                try:
                    good &= list(model.gather(rows)) == [2 * row for row in rows]
                except ValueError:
                    good &= 13 in rows
                else:
                    good &= 13 not in rows
        return good

    assert all(model.pool.map(work, range(16)))
    assert model.gather.num_waiting == 0


def test_a_thread_that_waits_gives_its_seat_to_another() -> None:
    seats = threading.Semaphore(1)
    model = Model()

    def work(row: int) -> Sequence[int]:
        CALLER.set(caller := Caller(seats))
        with caller.seated():
            return model.gather([row])

    model.open.clear()
    results = [model.pool.submit(copy_context().run, work, row) for row in range(1, 5)]
    until(lambda: model.gather.num_waiting == 3)  # with one seat, and nobody on it
    model.open.set()
    assert [result.result() for result in results] == [[2], [4], [6], [8]]
    assert seats.acquire(blocking=False)
