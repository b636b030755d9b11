"""Which of the waiting requests run next. Decides on plain data: no engine, no clock."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, Literal, TypeVar, cast, get_args

from .errors import InvalidRequest
from .prefixes import Prefixes, Warmth, shared
from .types import Request

Priority = Literal["interactive", "bulk"]

LOOKAHEAD = 64  # requests; company is looked for among so many of those that waited longest
MOST_HELD = 256  # requests; so many may be held before the rest is not looked at
MOST_PASSED = 32  # others that may go before the one that has waited longest


@dataclass(frozen=True, slots=True)
class Order:
    """In which order waiting requests run.

    ``ageing`` is how many seconds a bulk request counts as younger than it is: interactive ones go
    before it until it has waited so long. ``batch_tokens`` bounds a batch for an engine that pads:
    rows times the longest prompt, estimated as a quarter of the characters; a longer prompt runs
    alone. None: no bound. ``shared_prefix`` is how many characters at the beginning make prompts
    run next to each other, or apart where an engine reads them once a row
    (``Capabilities.has_row_caches``); None for neither. With ``leader``, the first of them runs
    ahead and the others follow when its first event has come; None is as the engine says that it
    has a prefix cache (``Capabilities.has_prefix_cache``).
    """

    ageing: float = 5.0
    batch_tokens: int | None = None
    shared_prefix: int | None = 1000
    leader: bool | None = None

    def __post_init__(self) -> None:
        if self.ageing < 0:
            raise InvalidRequest(f"ageing is 0 or more seconds, got {self.ageing}")
        for name in ("batch_tokens", "shared_prefix"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidRequest(f"{name} is at least 1, or None for no limit, got {value}")


def priority(request: Request) -> Priority:
    """Return what ``tags["priority"]`` says, "interactive" when it says nothing.

    Raises InvalidRequest for anything but "interactive" and "bulk".
    """
    said = request.tags.get("priority", "interactive")
    if said not in get_args(Priority):
        raise InvalidRequest(f'tags[\'priority\'] is "interactive" or "bulk", got {said!r:.40}')
    return cast(Priority, said)


def estimated_tokens(request: Request) -> int:
    """Return about how many tokens the prompt has: a quarter of its characters, at least 1."""
    return sum(len(message.text) for message in request.messages) // 4 + 1


@dataclass(slots=True, eq=False, kw_only=True)
class Place:
    """What the queue knows about a request; ``due`` is a time, the least goes first."""

    due: float
    num_tokens: int = 1
    prefixes: Prefixes = ()
    passed: int = 0


P = TypeVar("P", bound=Place)


class Waiting(Generic[P]):
    """The line of waiting requests.

    Whoever has waited longest goes first, but for up to 32 others that share more of their
    beginning with what ran last, or have more of it read already, or, in a batch that not all fit
    in, have a prompt of like length. Nobody who is not due yet (bulk) goes before somebody who is.
    What ``warmth`` holds back lets others pass. With ``spread``, those go first that share least
    with what runs.
    """

    def __init__(self, order: Order, warmth: Warmth | None = None, *, spread: bool = False) -> None:
        self._order = order
        self._warmth = warmth
        self._spread = spread
        self._line: list[P] = []
        self._last: Prefixes = ()

    def __len__(self) -> int:
        return len(self._line)

    def add(self, place: P) -> None:
        """Put a request in its place; of equals, the first one stays first."""
        insort(self._line, place, key=_due)

    def remove(self, place: P) -> bool:
        """Take a request out; False when it does not wait."""
        at = bisect_left(self._line, place.due, key=_due)
        while at < len(self._line) and self._line[at].due == place.due:
            if self._line[at] is place:
                del self._line[at]
                return True
            at += 1
        return False

    def clear(self) -> list[P]:
        """Take everybody out."""
        everybody, self._line = self._line, []
        return everybody

    def take(self, rows: int, now: float, running: Sequence[Prefixes] = ()) -> list[P]:
        """Take out up to ``rows`` requests that run together; none when all are held back.

        ``running`` are the beginnings of what the engine has in hand.
        """
        batch: list[P] = []
        while len(batch) < rows:
            beside = [*running, *(place.prefixes for place in batch)] if self._spread else []
            place = self._next(batch, beside, len(self._line) > rows - len(batch), now)
            if place is None:
                break
            self.remove(place)
            self._last = place.prefixes
            if self._warmth is not None:
                self._warmth.start(place.prefixes, now)
            batch.append(place)
        return batch

    def _next(
        self, batch: Sequence[P], beside: Sequence[Prefixes], is_crowded: bool, now: float
    ) -> P | None:
        open_ = self._open(now)
        if not open_:
            return None
        first = open_[0]
        if first.due <= now:
            open_ = [place for place in open_ if place.due <= now]
        fitting = [place for place in open_ if self._fits(place, batch)] if batch else open_
        if not fitting:
            return None
        if first.passed >= MOST_PASSED and fitting[0] is first:
            return first
        length = batch[0].num_tokens if batch and is_crowded else None

        def likeness(place: P) -> tuple[int, int, int]:
            known = 0 if self._warmth is None else self._warmth.known(place.prefixes)
            apart = 0 if length is None else abs(place.num_tokens - length)
            if self._spread:
                return max((shared(one, place.prefixes) for one in beside), default=0), 0, apart
            return -shared(self._last, place.prefixes), -known, apart

        is_alike = not (self._last or beside) and length is None
        best = fitting[0] if is_alike else min(fitting, key=likeness)
        if best is not first:
            first.passed += 1
        return best

    def _open(self, now: float) -> list[P]:
        """Return those in front that nothing holds back."""
        warmth = self._warmth
        if warmth is None:
            return self._line[:LOOKAHEAD]
        seen = islice(self._line, LOOKAHEAD + MOST_HELD)
        free = (place for place in seen if not warmth.is_held(place.prefixes, now))
        return list(islice(free, LOOKAHEAD))

    def _fits(self, place: P, batch: Sequence[P]) -> bool:
        if self._order.batch_tokens is None:
            return True
        longest = max(place.num_tokens, *(other.num_tokens for other in batch))
        return longest * (len(batch) + 1) <= self._order.batch_tokens


def _due(place: Place) -> float:
    return place.due


@dataclass(slots=True)
class Speed:
    """How fast a queue moves, by when its last 64 requests were taken out."""

    _times: deque[float] = field(default_factory=lambda: deque[float](maxlen=64))

    def note(self, now: float) -> None:
        """Say that a request was taken out."""
        self._times.append(now)

    def seconds(self, num_requests: int, now: float) -> float:
        """Return how long so many requests will take, 1 second when nothing is known yet.

        At least 0.1 and at most 60 seconds.
        """
        if not self._times or now <= self._times[0]:
            return 1.0
        each = (now - self._times[0]) / len(self._times)
        return min(max(num_requests * each, 0.1), 60.0)
