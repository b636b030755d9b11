"""Prompts that begin alike: what they share, and what an engine's prefix cache holds of it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from .types import Request

LONGEST_LEAD = 10.0  # seconds
Prefixes = tuple[tuple[int, int], ...]
"""The beginnings of a prompt, shortest first: a hash of the text, and its characters."""


def prefixes(request: Request, least: int) -> Prefixes:
    """Return the beginnings of a prompt with at least ``least`` characters.

    There is one at ``least``, twice, four times ... as many characters, and one at the end of each
    message. Tools count as the beginning: chat templates write them first.

    >>> one = prefixes(Request.of("a" * 10 + "b"), 5)
    >>> [chars for _, chars in one]
    [5, 10, 11]
    >>> shared(one, prefixes(Request.of("a" * 10 + "c"), 5))
    10
    """
    texts = [message.text for message in request.messages]
    if sum(map(len, texts)) < least:
        return ()
    found: list[tuple[int, int]] = []
    tools = request.sampling.extra.get("tools")
    key, done, cut = hash(repr(tools)) if tools else 0, 0, least
    for message, text in zip(request.messages, texts, strict=True):
        key, start = hash((key, message.role)), 0
        while done + len(text) - start >= cut:
            end = start + cut - done
            key = hash((key, text[start:end]))
            found.append((key, cut))
            start, done, cut = end, cut, cut * 2
        if start < len(text):
            key = hash((key, text[start:]))
            done += len(text) - start
            if done >= least:
                found.append((key, done))
    return tuple(found)


def shared(left: Prefixes, right: Prefixes) -> int:
    """Return how many characters two prompts are known to share."""
    chars = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        chars = one[1]
    return chars


@dataclass(slots=True)
class Warmth:
    """Which beginnings an engine has read, as far as can be told from outside.

    A request that shares ``least`` characters more with one whose first event has not come yet
    than with all that came is better sent a little later: the engine would read them twice. It is
    held for ``longest`` seconds at most. The ``size`` beginnings seen last are remembered; what
    the engine itself has forgotten since is not known.
    """

    least: int
    longest: float = LONGEST_LEAD
    size: int = 4096
    _warm: OrderedDict[int, None] = field(default_factory=OrderedDict[int, None])
    _leads: dict[int, tuple[Prefixes, float]] = field(
        default_factory=dict[int, tuple[Prefixes, float]]
    )

    def is_held(self, beginnings: Prefixes, now: float) -> bool:
        """Whether to wait for the first event of another request."""
        coming = 0
        for key, chars in reversed(beginnings):
            if key in self._warm:
                return coming - chars >= self.least
            if not coming and key in self._leads and now - self._leads[key][1] < self.longest:
                coming = chars
        return coming >= self.least

    def known(self, beginnings: Prefixes) -> int:
        """Return how many characters at the beginning have been read before."""
        return next((chars for key, chars in reversed(beginnings) if key in self._warm), 0)

    def start(self, beginnings: Prefixes, now: float) -> None:
        """Say that the engine begins to read a prompt."""
        for key, _ in beginnings:
            lead = self._leads.get(key)
            if key not in self._warm and (lead is None or now - lead[1] >= self.longest):
                self._leads[key] = beginnings, now

    def stop(self, beginnings: Prefixes, *, is_read: bool) -> bool:
        """Say that it has read it, or never will. Returns whether that may free others."""
        led = [key for key, _ in beginnings if self._is_lead(key, beginnings)]
        for key in led:
            del self._leads[key]
        if is_read:
            self._remember([key for key, _ in beginnings])
        return bool(led)

    def _is_lead(self, key: int, beginnings: Prefixes) -> bool:
        lead = self._leads.get(key)
        return lead is not None and lead[0] is beginnings

    def _remember(self, keys: Sequence[int]) -> None:
        for key in keys:
            self._warm[key] = None
            self._warm.move_to_end(key)
        while len(self._warm) > self.size:
            self._warm.popitem(last=False)
