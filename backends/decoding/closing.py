"""Bringing a constrained answer to a valid end inside its limit of tokens.

The automaton alone says which tokens may come next; following the one that closes most, again and
again, gives a short way to a complete answer. As long as such a way fits into what is left, the
model writes what it likes; a token that would leave too little room is replaced by the first of
the way. (Other engines cut: no library has this; a greedy way closed 95 % of random cuts.)
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from ...middleware.errors import UnsupportedConstraint
from .automaton import Matcher, forced_token, unpack

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LONGEST = 4096  # tokens of a way that is looked for
_FEW = 64
_DEEP, _MANY = 4, 100  # tokens and places of a search for where a quote may come
_TRIES, _ALIKE = 1_000, 8  # steps and like places of a search for any end at all
_TIGHT = 32  # tokens of slack under which every token is checked


class ClosingOrder:
    """The tokens of a vocabulary, those that close most first. Shared by all rows of a model.

    Inside a JSON string a quote closes and a bracket is text; outside it is the other way round.
    Where letters may come, and a bracket too, it is taken to be inside.
    """

    def __init__(self, width: int, text_of: Callable[[int], bytes]) -> None:
        import numpy as np

        self._width = width
        texts = [text_of(token) for token in range(width)]
        self._letter = next((at for at, text in enumerate(texts) if text == b"q"), None)

        def ordered(rank: Callable[[bytes], tuple[int, int]]) -> NDArray[np.int64]:
            ranks = [rank(text) for text in texts]
            return np.array(sorted(range(width), key=ranks.__getitem__), dtype=np.int64)

        self._outside, self._inside = ordered(_rank_outside), ordered(_rank_inside)
        self._marks = ordered(_rank_marks), ordered(_rank_breaks)
        # Nearly always one of the first few is allowed, and a bit is looked up faster than 49,152.
        self._few = {id(order): order[:_FEW].tolist() for order in (self._outside, self._inside)}
        closers = [token for token, text in enumerate(texts) if _is_of(text, b'"]},')]
        self._closers = {
            True: [token for token in closers if texts[token].startswith(b'"')],
            False: [token for token in closers if not texts[token].startswith(b'"')],
        }
        self._kinds = _single(texts)
        # All marks and breaks; of letters and digits, which are mostly alike, a few.
        self._signs = [token for kind in self._kinds[:-1] for token in kind[:2]]
        self._signs += [*self._kinds[-1], *(at for at, text in enumerate(texts) if text == b"\n")]

    def way(self, matcher: Matcher, limit: int, is_json: bool = False) -> list[int] | None:
        """Return tokens that complete the answer, None when ``limit`` are not enough.

        Not knowing that it ``is_json``, it also looks for a way out of free text.
        """
        if limit <= 0 or matcher.is_complete:
            return [] if matcher.is_complete else None
        if is_json:
            return self._way(matcher, limit, is_json=True)
        return (
            self._searched(matcher, limit)
            or self._way(matcher, limit, is_json=True, is_deep=False)
            or self._way(matcher, limit, is_json=False)
        )

    def _way(
        self, matcher: Matcher, limit: int, is_json: bool, is_deep: bool = True
    ) -> list[int] | None:
        matcher = matcher.copy()
        way: list[int] = []
        try:
            while not matcher.is_complete:
                tokens: Sequence[int] = matcher.forced() or self._next(
                    matcher, None if is_json else len(way), way, is_deep
                )
                if not tokens:
                    return None
                if len(way) + len(tokens) > limit:
                    return None
                for token in tokens:
                    matcher.advance(token)
                way += tokens
        except UnsupportedConstraint:  # the automaton outgrew its limits on this way
            return None
        return way

    def _searched(self, matcher: Matcher, limit: int) -> list[int] | None:
        """Return the fewest signs that complete the answer, None when none were found soon.

        Places after which the same signs may come are mostly the same: a few of them are enough.
        """
        try:
            return self._breadth_first(matcher, limit)
        except UnsupportedConstraint:  # the automaton outgrew its limits on this way
            return None

    def _breadth_first(self, matcher: Matcher, limit: int) -> list[int] | None:
        seen: Counter[tuple[int, ...]] = Counter()
        places: deque[tuple[Matcher, list[int]]] = deque([(matcher.copy(), [])])
        num_tries = 0
        while places:
            here, way = places.popleft()
            while len(way) < limit and (forced := here.forced()):
                for token in forced:
                    here.advance(token)
                way += forced
            if here.is_complete and len(way) <= limit:
                return way
            mask = here.mask()
            signs = tuple(token for token in self._signs if _is_allowed(mask, token))
            seen[signs] += 1
            if seen[signs] > _ALIKE or len(way) >= limit:
                continue
            for token in signs:
                num_tries += 1
                if num_tries > _TRIES:
                    return None
                after = here.copy()
                after.advance(token)
                if after.is_complete:
                    return [*way, token]
                places.append((after, [*way, token]))
        return None

    def _next(
        self, matcher: Matcher, turn: int | None, way: Sequence[int], is_deep: bool
    ) -> Sequence[int]:
        """Return one token or a few that lead towards the end, none when nothing is allowed."""
        mask = matcher.mask()
        token = self._first(mask, turn)
        if token is None:
            return ()
        if turn is not None or self._may_close(mask):
            return (token,)
        # Text that may not end yet: a pattern or a format could go on with it for ever.
        if is_deep and (found := self._found(matcher)):
            return found
        new = (one for one in self._kinds[-1] if one not in way and _is_allowed(mask, one))
        return (next(new, token),)

    def _may_close(self, mask: bytes) -> bool:
        """Whether a string may end here, or what is around it."""
        closers = self._closers[self._is_inside(mask)]
        return any(_is_allowed(mask, token) for token in closers)

    def _is_inside(self, mask: bytes) -> bool:
        return self._letter is not None and _is_allowed(mask, self._letter)

    def _found(self, matcher: Matcher) -> Sequence[int]:
        """Return the fewest tokens, a kind of character each, after which something may close."""
        places: deque[tuple[Matcher, tuple[int, ...]]] = deque([(matcher, ())])
        for _ in range(_MANY):
            if not places:
                break
            here, tokens = places.popleft()
            mask = here.mask()
            if tokens and (here.is_complete or self._may_close(mask)):
                return tokens
            if len(tokens) == _DEEP:
                continue
            for kind in self._kinds:
                token = next((one for one in kind if _is_allowed(mask, one)), None)
                if token is not None:
                    after = here.copy()
                    after.advance(token)
                    places.append((after, (*tokens, token)))
        return ()

    def _first(self, mask: bytes, turn: int | None) -> int | None:
        """Return the allowed token that closes most, None when there is none.

        In text that is no JSON, marks and line breaks take turns: one of them ends most things.
        """
        if (token := forced_token(mask)) is not None:
            return token
        is_inside = self._is_inside(mask)
        order = self._inside if is_inside else self._outside
        if turn is not None and is_inside:
            order = self._marks[turn % 2]
        few: list[int] = self._few.get(id(order), [])
        for token in few:
            if _is_allowed(mask, token):
                return token
        allowed = unpack(mask, self._width)[order]
        at = int(allowed.argmax())
        return int(order[at]) if allowed[at] else None


def _is_allowed(mask: bytes, token: int) -> bool:
    at = token >> 3
    return at < len(mask) and bool(mask[at] >> (token & 7) & 1)


class Closing:
    """Watches that one row can still be completed.

    ``choose`` sees each token that the model wants, ``advance`` each token that is taken.
    ``eos`` are the ids that end an answer. ``was_needed``: it had to step in. ``was_ended``: the
    answer was complete where it stood, and what the model wanted to add did not fit.
    """

    def __init__(self, order: ClosingOrder, eos: Collection[int], is_json: bool = False) -> None:
        self._order = order
        self._is_json = is_json
        self._eos = eos
        self.was_ended = False
        self._way: list[int] = []  # from here, when it is known
        self._unchecked = 0  # tokens that may be taken before it is looked for again
        self.was_needed = False

    def choose(self, matcher: Matcher, token: int, left: int) -> int:
        """Return the token, or a better one when it would leave too little room.

        ``left``: how many tokens the answer may still have, this one included.
        """
        if left > _LONGEST or token in self._eos or self._unchecked > 0 or self._way[:1] == [token]:
            return token
        after = matcher.copy()
        after.advance(token)
        if after.is_finished:
            return token
        limit = left - 1
        way = self._way if len(self._way) <= limit and _completes(after, self._way) else None
        way = self._order.way(after, limit, self._is_json) if way is None else way
        if way is not None:
            self._way = [token, *way]
            slack = limit - len(way)
            self._unchecked = 0 if slack < _TIGHT else slack // 8
            return token
        if matcher.is_complete:
            self.was_ended = True
            return min(self._eos)
        if not self._way:
            self._way = self._order.way(matcher, left, self._is_json) or []
        if not self._way:  # too late, or no way is known: the model may still find one
            self._unchecked = max(left // 8, 4)
            return token
        self.was_needed = True
        return self._way[0]

    def advance(self, token: int) -> None:
        """Take note of a token that the answer has got."""
        self._unchecked -= 1
        self._way = self._way[1:] if self._way[:1] == [token] else []


def _completes(matcher: Matcher, way: Sequence[int]) -> bool:
    """Whether the way leads to an end from here too, as it does after more text in a string."""
    if not way:
        return False
    matcher = matcher.copy()
    try:
        for token in way:
            matcher.advance(token)
    except UnsupportedConstraint:
        return False
    return matcher.is_complete


def _rank_outside(text: bytes) -> tuple[int, int]:
    """Return where a token stands outside strings: a smaller pair closes more.

    >>> sorted([b"word", b" ", b"7", b"null", b"[]", b"}", b",", b'"', b"]}"], key=_rank_outside)
    [b']}', b'}', b'[]', b'"', b'null', b',', b'7', b'word', b' ']
    """
    if _is_of(text, b"]}"):
        return 0, -len(text)
    if text in (b"[]", b"{}", b'""'):
        return 1, 0
    if text == b'"':
        return 2, 0
    if text in (b"null", b"true", b"false"):
        return 3, len(text)
    if text == b",":  # before digits: it ends a number that could go on
        return 4, 0
    if _is_of(text, b"0123456789"):  # zeros last: 0.000... is never above 0
        return 5, 2 * len(text) + text.startswith(b"0")
    return (6 if text.strip() else 7), len(text)


def _rank_inside(text: bytes) -> tuple[int, int]:
    """Return where a token stands inside a string: quotes, then what is long.

    >>> sorted([b"word", b" ", b"}", b'"', b'"]}', b"wo"], key=_rank_inside)
    [b'"]}', b'"', b'word', b'wo', b'}', b' ']
    """
    if text.startswith(b'"') and _is_of(text, b'"]}'):
        return 0, -len(text)
    if text.isalnum():
        return 1, -len(text)
    return (2 if text.strip() else 3), -len(text)


def _rank_marks(text: bytes) -> tuple[int, int]:
    """Return where a token stands when letters lead nowhere: marks come first."""
    rank, _ = _rank_inside(text)
    return (3 - rank if text.strip() else 2), len(text)


def _rank_breaks(text: bytes) -> tuple[int, int]:
    """Return where a token stands when marks lead nowhere: line breaks come first."""
    return (0, len(text)) if text.startswith(b"\n") else (1, _rank_marks(text)[0])


def _single(texts: Sequence[bytes]) -> list[list[int]]:
    """Return the tokens of one ASCII character: digits, capitals, small letters, marks.

    Marks that addresses and times are made of come first.
    """
    kinds: dict[str, list[int]] = {"digit": [], "capital": [], "small": [], "mark": []}
    for token, text in enumerate(texts):
        if len(text) == 1 and text.isascii() and text.decode().isprintable():
            char = text.decode()
            kind = "digit" if char.isdigit() else "capital" if char.isupper() else "small"
            kinds[kind if char.isalnum() else "mark"].append(token)
    kinds["mark"].sort(key=lambda token: b"@.:/-#".find(texts[token]) % 99)
    return list(kinds.values())


def _is_of(text: bytes, letters: bytes) -> bool:
    return bool(text) and all(byte in letters for byte in text)
