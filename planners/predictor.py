"""What a plan would take: the real scheduler in simulated time, and one call for comparison.

Nothing is slept and nothing is called: a few hundred microseconds for a plan of eight parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .graph import Node, tails
from .scheduler import Schedule
from .speed import StepCost

NODE_TOKENS = 60  # what a part's own message adds to the prompt
CHAIN = 0.8  # a critical path of this share of all tokens is a chain


@dataclass(frozen=True, slots=True)
class Span:
    """When a part is written, in seconds from now."""

    id: int
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is predicted for what is not written yet, in seconds from now.

    ``parallel`` is as the scheduler would do it, ``sequential`` in one call after what runs, and
    ``extra_prompt_tokens`` are read again for the parts' calls, those in a prefix cache left out.
    ``chain`` is the share of the longest chain in all tokens.
    """

    parallel: float
    sequential: float
    extra_prompt_tokens: int
    chain: float
    spans: tuple[Span, ...] = ()

    @property
    def gain(self) -> float:
        """How many times faster the parts are; 1 where nothing is left to write."""
        return self.sequential / self.parallel if self.parallel > 0 else 1.0

    @property
    def is_chain(self) -> bool:
        """Whether hardly anything can be written at the same time."""
        return self.chain >= CHAIN


@dataclass(frozen=True, slots=True)
class Situation:
    """What a forecast starts from.

    ``prompt`` are the tokens that all calls begin with, ``cached`` those of them that a call alone
    does not read again, and ``shared`` those that one beside others does not. ``factor`` is actual
    over planned length, ``limit`` the most tokens of a part.
    ``written`` are the tokens of running parts so far. ``rows`` and ``context`` are the load that
    others put on the engine.
    """

    cost: StepCost = field(default_factory=StepCost)
    prompt: int = 0
    cached: int = 0
    shared: int = 0
    factor: float = 1.0
    limit: float = float("inf")
    written: Mapping[int, int] = field(default_factory=dict[int, int])
    rows: int = 0
    context: float = 0.0

    def length(self, node: Node) -> int:
        """Return the tokens that a part will have."""
        return max(round(min(node.length * self.factor, self.limit)), 1)

    def left(self, node: Node) -> int:
        """Return the tokens that a running or waiting part still has to get."""
        return max(self.length(node) - self.written.get(node.id, 0), 1)

    def new_tokens(self, node: Node, lengths: Mapping[int, int], *, is_alone: bool = False) -> int:
        """Return the prompt tokens that a part's call has to read."""
        needed = sum(lengths.get(id, 0) for id in node.needs)
        known = self.cached if is_alone else self.shared
        return self.prompt - known + NODE_TOKENS + needed


def forecast(
    schedule: Schedule, now: Situation, *, width: int, ahead: int | None = None
) -> Forecast:
    """Predict what is left of a plan, ``width`` parts at a time; the schedule is not changed.

    ``ahead`` are the tokens that one call for the whole answer, which runs already, has written.
    """
    nodes = schedule.nodes
    lengths = {node.id: now.length(node) for node in nodes}
    open = [node for node in nodes if not schedule.is_ended(node.id)]
    if not open:
        return Forecast(0.0, 0.0, 0, 0.0)
    spans = simulate(schedule.copy(width), now)
    waiting = [node for node in open if not schedule.is_running(node.id)]
    left = {node.id: now.left(node) for node in open}
    total = sum(left.values())
    extra = sum(now.new_tokens(node, lengths) for node in waiting)
    new = now.prompt - now.cached + NODE_TOKENS
    steps = total
    if ahead is not None:  # it writes what the parts have written already, too
        whole = sum(max(lengths[node.id], now.written.get(node.id, 0)) for node in nodes)
        steps = max(whole - ahead, 1)
    sequential = now.cost.first(new) if waiting and ahead is None else 0.0
    sequential += now.cost.steps(steps, 1 + now.rows, now.prompt + now.context)
    longest = max(tails(_with(node, left[node.id]) for node in open).values())
    end = max(span.end for span in spans)
    return Forecast(end, sequential, extra, longest / total, tuple(spans))


def plain_seconds(cost: StepCost, prompt: int, output: int, *, cached: int = 0) -> float:
    """Return the seconds of one call that nobody has planned."""
    return cost.first(prompt - cached) + cost.steps(output, 1, prompt)


def simulate(schedule: Schedule, now: Situation) -> list[Span]:
    """Run a schedule to its end in simulated time and return when each open part is written.

    A call begins after ``call`` seconds; reading its prompt holds up everybody (an engine without
    chunked prefill). A running part of the schedule goes on at once.
    """
    lengths = {node.id: now.length(node) for node in schedule.nodes}
    cost, clock = now.cost, 0.0
    starts: dict[int, float] = {}
    begins: dict[int, float] = {}
    left: dict[int, int] = {}
    context: dict[int, float] = {}
    spans: list[Span] = []
    for node in schedule.nodes:
        if schedule.is_running(node.id):
            starts[node.id], begins[node.id] = 0.0, 0.0
            left[node.id] = now.left(node)
            context[node.id] = now.prompt + now.written.get(node.id, 0)
    while True:
        for node in schedule.take(schedule.head):
            new = now.new_tokens(node, lengths, is_alone=not left)
            starts[node.id] = clock
            begins[node.id] = clock + cost.call
            clock += cost.prefill * new
            left[node.id] = lengths[node.id]
            context[node.id] = now.prompt + NODE_TOKENS
        if not left:
            return spans
        active = [id for id in left if begins[id] <= clock]
        coming = min((begins[id] for id in left if begins[id] > clock), default=None)
        if not active:
            assert coming is not None
            clock = coming
            continue
        rows, held = len(active) + now.rows, sum(context[id] for id in active) + now.context
        steps = min(left[id] for id in active)
        if coming is not None:
            until = (coming - clock) / cost.seconds(rows, held)
            steps = min(steps, int(until) + 1)
        clock += cost.steps(steps, rows, held)
        for id in active:
            left[id] -= steps
            context[id] += steps
            if left[id] <= 0:
                del left[id]
                spans.append(Span(id, starts[id], clock))
                schedule.end(id)


def _with(node: Node, length: int) -> Node:
    return Node(node.id, node.title, node.needs, node.agrees, length)
