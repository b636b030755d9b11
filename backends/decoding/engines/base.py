"""What an engine is to the rest: it compiles a constraint once, and makes matchers for rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ....middleware.types import Constraint, Enforcement

if TYPE_CHECKING:
    from llguidance import LLTokenizer


class Matcher(Protocol):
    """Where one answer stands in its constraint. Belongs to one row."""

    @property
    def enforcement(self) -> Enforcement:
        """How far the answer is held to the constraint."""
        ...

    @property
    def is_complete(self) -> bool:
        """Whether the answer may end here."""
        ...

    @property
    def is_finished(self) -> bool:
        """Whether the answer is complete and nothing can follow."""
        ...

    def mask(self) -> bytes:
        """Return the allowed next tokens, a bit each, lowest bit first.

        Raises UnsupportedConstraint when the automaton outgrew its limits.
        """
        ...

    def forced(self) -> list[int]:
        """Return the tokens that must come next, none when there is a choice.

        They are the tokenizer's own for the text that is certain: a last token that could still
        be part of a longer one is left out (token healing). They are not taken yet.
        """
        ...

    def advance(self, token: int) -> None:
        """Take the next token, which ``mask`` must have allowed. Nothing follows the end."""
        ...

    def copy(self) -> Matcher:
        """Return a matcher at the same place that goes its own way."""
        ...


class Template(Protocol):
    """A compiled constraint. Safe to share between threads."""

    @property
    def enforcement(self) -> Enforcement:
        """How far answers are held to the constraint."""
        ...

    def start(self) -> Matcher:
        """Return a fresh matcher at the start of the constraint."""
        ...


class Engine(Protocol):
    """A library that compiles constraints. Safe to share between threads."""

    name: str

    def compile(self, constraint: Constraint) -> Template:
        """Compile a constraint.

        Raises InvalidRequest when it makes no sense, UnsupportedConstraint when it makes sense but
        the engine cannot hold it.
        """
        ...


@dataclass(frozen=True)
class Vocabulary:
    """A model's tokens, as every engine needs them.

    ``width`` is the number of logits, ``eos`` the ids that end an answer.
    """

    tokenizer: Any
    ll: LLTokenizer
    width: int
    eos: tuple[int, ...]

    @classmethod
    def of(cls, tokenizer: Any, width: int, eos: Sequence[int]) -> Vocabulary:
        """Read a fast Hugging Face tokenizer; costs 0.5 s and 60 MB for 49,152 tokens."""
        import llguidance.hf

        size = max(width, len(tokenizer))
        ll = llguidance.hf.from_tokenizer(tokenizer, n_vocab=size, eos_token=[*eos])
        return cls(tokenizer, ll, size, tuple(eos))

    @property
    def end_mask(self) -> bytes:
        """The mask that allows the end and nothing else."""
        bits = sum(1 << token for token in self.eos)
        return bits.to_bytes(bits.bit_length() // 8 + 1, "little")
