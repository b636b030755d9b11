"""The order in which an engine gets what waits, on a virtual clock."""

from __future__ import annotations

import asyncio

import pytest
from engine import Cost, Record, Reply, SimulatedEngine, collect, outcome, run_virtual

from headrace import DeadlineExceeded, Dispatcher, Overloaded, Request, Response
from headrace.middleware.errors import BackendError
from headrace.middleware.queueing import Order

BULK = {"priority": "bulk"}
NUM_WORDS = 400
DOCUMENTS = [f"Document {name}. " + f"{name}word " * NUM_WORDS for name in "ABCDEFGH"]


def echo(request: Request) -> Reply:
    return Reply(request.messages[-1].text[:10])


def started(engine: SimulatedEngine) -> list[str]:
    return [record.request.question for record in engine.log]


async def all_of(dispatcher: Dispatcher, requests: list[Request]) -> list[Response]:
    return await asyncio.gather(*(collect(dispatcher(request)) for request in requests))


def test_interactive_goes_before_bulk() -> None:
    engine = SimulatedEngine(echo, max_concurrency=1)
    requests = [Request.of(f"bulk{i}", tags=BULK) for i in range(3)]
    requests += [Request.of(f"now{i}") for i in range(3)]
    run_virtual(all_of(Dispatcher(engine), requests))
    # The engine was free when the first one came.
    assert started(engine) == ["bulk0", "now0", "now1", "now2", "bulk1", "bulk2"]


def test_bulk_is_not_starved_by_interactive_requests_that_never_end() -> None:
    engine = SimulatedEngine(lambda r: Reply("a b c d e"), cost=Cost(step=0.1), max_concurrency=1)

    async def main() -> float:
        dispatcher = Dispatcher(engine, order=Order(ageing=3.0))
        running = asyncio.create_task(collect(dispatcher(Request.of("first"))))
        await asyncio.sleep(0.01)
        bulk = asyncio.create_task(collect(dispatcher(Request.of("bulk", tags=BULK))))
        others: list[asyncio.Task[Response]] = []
        while not bulk.done():  # twice as many as the engine can answer
            others.append(asyncio.create_task(collect(dispatcher(Request.of("now")))))
            await asyncio.sleep(0.25)
        for other in [running, *others]:
            other.cancel()
        return asyncio.get_running_loop().time()

    # Those that came in its first 3 s go before it: 12 of 0.5 s each.
    assert 6 <= run_virtual(main()) <= 8
    assert started(engine).index("bulk") == 13


def test_rows_of_like_length_share_a_batch() -> None:
    engine = SimulatedEngine(echo, max_batch=4, max_concurrency=1)
    texts = ["word " * (1000 if i % 2 else 10) + f"{i}" for i in range(16)]

    async def main() -> list[Response]:
        dispatcher = Dispatcher(engine)
        running = asyncio.create_task(collect(dispatcher(Request.of("first"))))
        await asyncio.sleep(0.005)  # it runs; the others wait together
        responses = await all_of(dispatcher, [Request.of(text) for text in texts])
        await running
        return responses

    responses = run_virtual(main())
    assert [r.text for r in responses] == [text[:10] for text in texts]
    lengths = [len(record.request.question) > 1000 for record in engine.log[1:]]
    batches = [lengths[at : at + 4] for at in range(0, 16, 4)]
    assert all(len(set(batch)) == 1 for batch in batches)


def test_the_token_budget_bounds_a_batch() -> None:
    engine = SimulatedEngine(echo, max_batch=8, max_concurrency=1)
    dispatcher = Dispatcher(engine, order=Order(batch_tokens=1000))
    requests = [Request.of("x" * 1200 + str(i)) for i in range(8)]  # 300 tokens each
    responses = run_virtual(all_of(dispatcher, requests))
    sizes = [r.report.stages[-1].details["batch_size"] for r in responses]
    assert max(sizes) == 3


def questions(num: int) -> list[Request]:
    """Return questions about all documents, in turns."""
    return [
        Request.of(f"{document}\n\nQuestion {i}?") for i in range(num) for document in DOCUMENTS
    ]


def recomputed(order: Order, *, cache_prompts: int | None = None) -> int:
    """Return how many prompt tokens the engine read, all questions together."""
    engine = SimulatedEngine(
        echo,
        cost=Cost(prefill=0.001),
        slots=4,
        max_concurrency=4,
        prefix_cache=True,
        cache_prompts=cache_prompts,
    )
    requests = questions(5)
    responses = run_virtual(all_of(Dispatcher(engine, order=order), requests))
    assert len(engine.log) == len(requests) == len(responses)
    usages = [response.usage for response in responses]
    return sum(usage.prompt_tokens - usage.cached_tokens for usage in usages)


def test_prompts_with_one_beginning_are_read_once() -> None:
    """8 documents of 400 words, 5 questions each, 4 rows, room for 4 documents in the cache."""
    least = len(DOCUMENTS) * NUM_WORDS
    scattered = recomputed(Order(shared_prefix=None), cache_prompts=4)
    next_to_each_other = recomputed(Order(leader=False), cache_prompts=4)
    with_leader = recomputed(Order(), cache_prompts=4)
    assert scattered > 4.9 * least  # all of them, each time
    assert least < next_to_each_other < 0.7 * scattered
    assert with_leader < 1.1 * least


@pytest.mark.parametrize("row_caches", [True, False])
def test_prompts_with_one_beginning_run_apart_where_each_row_has_a_cache(row_caches: bool) -> None:
    engine = SimulatedEngine(echo, slots=4, max_concurrency=4, row_caches=row_caches)
    by_document = sorted(questions(5), key=lambda request: request.question)
    run_virtual(all_of(Dispatcher(engine), by_document))
    names = [question.split()[1][0] for question in started(engine)]
    together = [names[at : at + 4] for at in range(4, len(names), 4)]  # the first four were alone
    assert sorted(names) == sorted("ABCDEFGH" * 5)
    assert all(len({*four}) == 4 for four in together[:6]) is row_caches


def test_without_a_prefix_cache_nobody_waits_for_a_leader() -> None:
    engine = SimulatedEngine(echo, cost=Cost(prefill=0.001), max_concurrency=8)
    run_virtual(all_of(Dispatcher(engine), questions(1)))
    assert engine.peak_calls == 8
    same = SimulatedEngine(echo, cost=Cost(prefill=0.001), max_concurrency=8)
    requests = [Request.of(f"{DOCUMENTS[0]} {i}") for i in range(8)]
    run_virtual(all_of(Dispatcher(same), requests))
    assert same.peak_calls == 8


def test_the_leader_goes_ahead_and_short_prompts_do_not_wait() -> None:
    engine = SimulatedEngine(
        lambda r: Reply("a b c d"), cost=Cost(prefill=0.01), max_concurrency=16, prefix_cache=True
    )
    long = [Request.of(f"{DOCUMENTS[0]} {i}") for i in range(4)]
    short = [Request.of("hello there") for _ in range(4)]
    run_virtual(all_of(Dispatcher(engine), [*long, *short]))
    at: dict[bool, list[Record]] = {True: [], False: []}
    for record in engine.log:
        at[len(record.request.question) > 1000].append(record)
    leader, *followers = at[True]
    assert leader.first_token is not None
    assert all(one.submitted >= leader.first_token for one in followers)
    assert all(one.submitted < leader.first_token for one in at[False])
    assert len({one.submitted for one in followers}) == 1


@pytest.mark.parametrize("end", ["fails", "is cancelled", "hangs"])
def test_a_leader_that_is_lost_keeps_nobody_waiting(end: str) -> None:
    replies = {
        "fails": Reply("x", after=0, error=BackendError("boom")),
        "is cancelled": Reply("x", after=0),
        "hangs": Reply("x", after=0),
    }
    engine = SimulatedEngine(
        lambda r: replies[end] if r.question.endswith("first") else Reply("fine"),
        max_concurrency=8,
        prefix_cache=True,
    )

    async def main() -> float:
        dispatcher = Dispatcher(engine)
        first = asyncio.create_task(outcome(dispatcher, Request.of(DOCUMENTS[0] + "first")))
        await asyncio.sleep(0.005)
        requests = [Request.of(f"{DOCUMENTS[0]}{i}") for i in range(3)]
        others = asyncio.gather(*(outcome(dispatcher, request) for request in requests))
        await asyncio.sleep(0.5)
        if end == "is cancelled":
            first.cancel()
        assert await others == ["fine"] * 3
        first.cancel()
        return asyncio.get_running_loop().time()

    assert run_virtual(main()) < (12 if end == "hangs" else 1)


def test_a_full_queue_says_when_to_come_back() -> None:
    engine = SimulatedEngine(lambda r: Reply("a " * 20), cost=Cost(step=0.1), max_concurrency=1)

    async def main() -> float | None:
        dispatcher = Dispatcher(engine, max_queue=5)
        tasks: list[asyncio.Task[Response]] = []
        for _ in range(4):  # 2 s each: the queue's speed is known
            await collect(dispatcher(Request.of("x")))
        tasks += [asyncio.create_task(collect(dispatcher(Request.of("x")))) for _ in range(6)]
        await asyncio.sleep(0.5)
        with pytest.raises(Overloaded, match="max_queue=5") as refused:
            await collect(dispatcher(Request.of("x")))
        await asyncio.gather(*tasks)
        return refused.value.retry_after

    assert run_virtual(main()) == pytest.approx(5 * 2, rel=0.3)


def test_a_refusal_comes_at_once() -> None:
    engine = SimulatedEngine(lambda r: Reply("x", after=0), max_concurrency=1)

    async def main() -> float:
        dispatcher = Dispatcher(engine, max_queue=1)
        tasks = [asyncio.create_task(collect(dispatcher(Request.of("x")))) for _ in range(2)]
        await asyncio.sleep(0.1)
        with pytest.raises(Overloaded):
            await collect(dispatcher(Request.of("x")))
        for task in tasks:
            task.cancel()
        return asyncio.get_running_loop().time()

    assert run_virtual(main()) < 0.2


def test_a_deadline_holds_while_waiting_and_the_place_is_free() -> None:
    engine = SimulatedEngine(lambda r: Reply("a " * 100), cost=Cost(step=0.1), max_concurrency=1)

    async def main() -> float:
        dispatcher = Dispatcher(engine, max_queue=1)
        running = asyncio.create_task(collect(dispatcher(Request.of("long"))))
        await asyncio.sleep(0.1)
        with pytest.raises(DeadlineExceeded):
            await collect(dispatcher(Request.of("late", deadline=1.0)))
        now = asyncio.get_running_loop().time()
        waiting = asyncio.create_task(collect(dispatcher(Request.of("next"))))
        await asyncio.gather(running, waiting)
        return now

    assert run_virtual(main()) == pytest.approx(1.1)
    assert started(engine) == ["long", "next"]
