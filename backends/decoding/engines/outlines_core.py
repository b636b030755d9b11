"""outlines_core, for small patterns and choices: a finite automaton, whole and in advance.

Version 0.2 drops alternatives (``Jo|John`` never yields John) and optional tails. Both come from
states in which the text may end; so a sentinel character is put behind the pattern, which stands
for the end. The vocabulary is one of bytes, or half characters would all look the same.
"""

from __future__ import annotations

from typing import Any, cast

from ....middleware.errors import InvalidRequest, UnsupportedConstraint
from ....middleware.types import Constraint, Enforcement
from ..patterns import TooLarge, Unsupported, check_size
from .base import Vocabulary

NAME = "outlines_core"
_SENTINEL = "\U0010ffff"
MAX_PATTERN = 2_000  # characters


class OutlinesCore:
    """The engine from the ``outlines_core`` package."""

    name = NAME

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._pieces: dict[str, list[int]] | None = None

    def compile(self, constraint: Constraint) -> OutlinesTemplate:
        """See ``Engine.compile``. Compiled in a process of its own: it may take for ever."""
        from ..worker import compile_index

        pattern = pattern_of(constraint)
        if self._pieces is None:
            self._pieces = pieces(self._vocabulary)
        blob = compile_index(pattern + _SENTINEL, self._pieces, self._vocabulary.width)
        return OutlinesTemplate(blob, self._vocabulary)


def pattern_of(constraint: Constraint) -> str:
    """Return the pattern of a regex or choice. Raises UnsupportedConstraint for all else."""
    import re

    spec = constraint.spec
    if constraint.kind == "regex" and isinstance(spec, str):
        pattern = f"(?:{spec})"
    elif constraint.kind == "choice" and not isinstance(spec, str) and spec:
        pattern = f"(?:{'|'.join(re.escape(text) for text in spec)})"
    elif constraint.kind in ("regex", "choice"):
        raise InvalidRequest(f"no {constraint.kind} constraint: {spec!r:.80}")
    else:
        raise UnsupportedConstraint(
            f"outlines_core holds a regex or a choice, not a {constraint.kind}; leave engine='auto'"
        )
    try:
        check_size(pattern)
    except TooLarge as error:
        raise UnsupportedConstraint(f"outlines_core cannot hold a pattern with {error}") from error
    except Unsupported:
        pass  # the compiler says so
    if len(pattern) > MAX_PATTERN:
        raise UnsupportedConstraint(
            f"outlines_core holds patterns of up to {MAX_PATTERN} characters, got {len(pattern)}"
        )
    return pattern


def pieces(vocabulary: Vocabulary) -> dict[str, list[int]]:
    """Return the ids of each text (in hexadecimal); the sentinel's are those of the end."""
    found: dict[str, list[int]] = {_SENTINEL.encode().hex(): [*vocabulary.eos]}
    for token in range(vocabulary.width):
        if not vocabulary.ll.is_special_token(token):
            text = vocabulary.ll.decode_bytes([token])
            if text and b"\xf4" not in text:  # or the sentinel could be written byte by byte
                found.setdefault(text.hex(), []).append(token)
    return found


class OutlinesTemplate:
    """A constraint as outlines_core has compiled it."""

    def __init__(self, blob: bytes, vocabulary: Vocabulary) -> None:
        import outlines_core

        self._index: Any = cast("Any", outlines_core).Index.from_binary(blob)
        self._ends: frozenset[int] = frozenset(self._index.get_final_states())
        self._vocabulary = vocabulary
        self.enforcement = Enforcement("full", (), NAME)

    def start(self) -> OutlinesMatcher:
        """See ``Template.start``."""
        return OutlinesMatcher(
            self._index, self._ends, self._vocabulary, self._index.get_initial_state()
        )


class OutlinesMatcher:
    """Where one answer stands; see ``Matcher``."""

    def __init__(
        self, index: Any, ends: frozenset[int], vocabulary: Vocabulary, state: int
    ) -> None:
        self._index = index
        self._ends = ends
        self._vocabulary = vocabulary
        self._state = state
        self._has_ended = False
        self.enforcement = Enforcement("full", (), NAME)

    @property
    def is_complete(self) -> bool:
        """Whether the answer may end here."""
        if self._has_ended:
            return True
        after = self._index.get_next_state(self._state, self._vocabulary.eos[0])
        return after in self._ends

    @property
    def is_finished(self) -> bool:
        """Whether the answer is complete and nothing can follow."""
        return self._has_ended or (self.is_complete and not self._texts())

    def _texts(self) -> list[int]:
        """Return the tokens that may come next, the end left out."""
        allowed: list[int] = self._index.get_allowed_tokens(self._state) or []
        return [token for token in allowed if token not in self._vocabulary.eos]

    def mask(self) -> bytes:
        """See ``Matcher.mask``."""
        import numpy as np

        if self._has_ended:
            return self._vocabulary.end_mask
        bits = np.zeros(self._vocabulary.width, dtype=np.uint8)
        bits[[token for token in self._texts() if token < bits.size]] = 1
        if self.is_complete:
            bits[[*self._vocabulary.eos]] = 1
        return np.packbits(bits, bitorder="little").tobytes()

    def forced(self) -> list[int]:
        """Return the only token that may come next, none when there are several."""
        texts = [] if self._has_ended or self.is_complete else self._texts()
        return texts if len(texts) == 1 else []

    def advance(self, token: int) -> None:
        """See ``Matcher.advance``."""
        if self._has_ended:
            return
        if token in self._vocabulary.eos:
            if not self.is_complete:
                raise UnsupportedConstraint(f"token {token} ends an answer that is not complete")
            self._has_ended = True
            return
        after: int | None = self._index.get_next_state(self._state, token)
        if after is None:
            raise UnsupportedConstraint(f"token {token} does not fit the constraint")
        self._state = after

    def copy(self) -> OutlinesMatcher:
        """See ``Matcher.copy``."""
        other = OutlinesMatcher(self._index, self._ends, self._vocabulary, self._state)
        other._has_ended = self._has_ended
        return other
