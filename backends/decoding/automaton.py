"""Constraints as automata over a tokenizer's tokens.

The automaton is llguidance's: exact on bytes, fail-closed, and special tokens are no text to it.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

from ...middleware.errors import HeadraceError, InvalidRequest, UnsupportedConstraint
from ...middleware.types import Constraint
from .schema import prepare

if TYPE_CHECKING:
    import numpy as np
    from llguidance import LLMatcher
    from numpy.typing import NDArray

_CACHED = 256
# Free whitespace lets a small model write blanks for ever, none makes it close arrays early.
_JSON_OPTIONS: dict[str, Any] = {
    "whitespace_pattern": r"\x20|\x0A\x20{0,16}",
    "lenient": False,
    "coerce_one_of": False,
}


class Compiler:
    """Compiles constraints for one tokenizer. Safe to share between threads.

    ``width`` is the number of logits, which may be more than the tokenizer has tokens: the rest
    is never allowed. ``eos`` are the ids that end an answer. Costs 0.5 s and 60 MB once for
    49,152 tokens; a constraint costs milliseconds the first time, and a copy afterwards.
    """

    def __init__(self, tokenizer: Any, width: int, eos: Sequence[int]) -> None:
        import llguidance.hf

        size = max(width, len(tokenizer))
        self._tokenizer = llguidance.hf.from_tokenizer(tokenizer, n_vocab=size, eos_token=[*eos])
        self.width = size
        self._templates: OrderedDict[Constraint, LLMatcher] = OrderedDict()
        self._lock = Lock()
        self._eos = frozenset(eos)

    def matcher(self, constraint: Constraint) -> Matcher:
        """Return a fresh matcher at the start of the constraint.

        Raises InvalidRequest when the constraint makes no sense (no JSON schema, a regular
        expression that does not parse, nothing can match) and UnsupportedConstraint when it
        makes sense but the automaton cannot hold it, naming the keyword.
        """
        with self._lock:
            template = self._templates.get(constraint)
            if template is None:
                template = self._compile(constraint)
                self._templates[constraint] = template
                if len(self._templates) > _CACHED:
                    self._templates.popitem(last=False)
            self._templates.move_to_end(constraint)
            return Matcher(template.deep_copy(), self._eos)

    def bytes_of(self, token: int) -> bytes:
        """Return the bytes that a token writes."""
        return self._tokenizer.decode_bytes([token])

    def tokens_of(self, text: bytes) -> list[int]:
        """Return the tokens that the model would write for a text."""
        return self._tokenizer.tokenize_bytes(text)

    def compact(self, constraint: Constraint) -> LLMatcher | None:
        """Return an automaton of a JSON schema without any whitespace, None for other kinds."""
        from llguidance import LLMatcher

        if constraint.kind != "json_schema" or not isinstance(constraint.spec, str):
            return None
        options: dict[str, Any] = {"whitespace_flexible": False, "lenient": True}
        grammar = LLMatcher.grammar_from_json_schema(
            prepare(constraint.spec), overrides=cast("Any", options)
        )
        compact = LLMatcher(self._tokenizer, grammar, log_level=0)
        return None if compact.is_error() else compact

    def _compile(self, constraint: Constraint) -> LLMatcher:
        from llguidance import LLMatcher

        try:
            template = LLMatcher(self._tokenizer, _grammar(constraint), log_level=0)
        except HeadraceError:
            raise
        except (ValueError, OverflowError) as error:  # a number too large for the automaton
            raise UnsupportedConstraint(
                f"the automaton cannot hold the constraint: {error!s:.120}"
            ) from error
        trial = template.deep_copy()
        if not trial.is_error():
            trial.compute_bitmask()  # some schemas ({"$ref": "#"}) fail only here
        if trial.is_error():
            raise _error(constraint, trial.get_error())
        return template


class Matcher:
    """Where one answer stands in its constraint. Belongs to one row."""

    def __init__(self, matcher: LLMatcher, eos: frozenset[int]) -> None:
        self._matcher = matcher
        self._eos = eos
        self._has_ended = False

    @property
    def is_complete(self) -> bool:
        """Whether the answer may end here."""
        return self._matcher.is_accepting()

    @property
    def is_finished(self) -> bool:
        """Whether the answer is complete and nothing can follow."""
        return self._has_ended or (self._matcher.is_stopped() and not self._matcher.is_error())

    def mask(self) -> bytes:
        """Return the allowed next tokens, a bit each, lowest bit first.

        Raises UnsupportedConstraint when the automaton outgrew its limits.
        """
        if self._has_ended:
            bits = sum(1 << token for token in self._eos)
            return bits.to_bytes(bits.bit_length() // 8 + 1, "little")
        mask = self._matcher.compute_bitmask()
        if self._matcher.is_error():  # such a mask allows the answer to end
            raise UnsupportedConstraint(
                f"the constraint became too complex: {_reason(self._matcher.get_error())};"
                " simplify it or lower its bounds"
            )
        return mask

    def forced(self) -> list[int]:
        """Return the tokens that must come next, none when there is a choice.

        They are the tokenizer's own for the text that is certain: a last token that could still
        be part of a longer one is left out (token healing). They are not taken yet.
        """
        if self._has_ended or self._matcher.is_stopped():
            return []
        return self._matcher.compute_ff_tokens()

    def copy(self) -> Matcher:
        """Return a matcher at the same place that goes its own way."""
        other = Matcher(self._matcher.deep_copy(), self._eos)
        other._has_ended = self._has_ended
        return other

    def advance(self, token: int) -> None:
        """Take the next token, which ``mask`` must have allowed. Nothing follows the end."""
        if self._has_ended:
            return
        if token in self._eos and self._matcher.is_accepting():
            self._has_ended = True
        elif not self._matcher.consume_token(token):
            raise UnsupportedConstraint(
                f"token {token} does not fit the constraint: {_reason(self._matcher.get_error())}"
            )


def forced_token(mask: bytes) -> int | None:
    """Return the only token that a mask allows, None when it allows several.

    >>> forced_token(bytes([0, 4])), forced_token(bytes([3]))
    (10, None)
    """
    bits = int.from_bytes(mask, "little")
    return bits.bit_length() - 1 if bits.bit_count() == 1 else None


def unpack(mask: bytes, width: int) -> NDArray[np.bool_]:
    """Return the first ``width`` bits of a mask; what the mask does not cover is not allowed."""
    import numpy as np

    allowed = np.zeros(width, dtype=np.bool_)
    bits = np.unpackbits(np.frombuffer(mask, dtype=np.uint8), bitorder="little")[:width]
    allowed[: bits.size] = bits
    return allowed


def _grammar(constraint: Constraint) -> str:
    from llguidance import LLMatcher

    spec = constraint.spec
    if constraint.kind == "choice":
        if isinstance(spec, str) or not spec:
            raise InvalidRequest(f"a choice needs a tuple of texts to choose from, got {spec!r}")
        return LLMatcher.grammar_from_regex("|".join(f"(?:{_literal(text)})" for text in spec))
    if not isinstance(spec, str):
        raise InvalidRequest(f"a {constraint.kind} constraint needs text, got {spec!r:.80}")
    if constraint.kind == "regex":
        return LLMatcher.grammar_from_regex(spec)
    return LLMatcher.grammar_from_json_schema(prepare(spec), overrides=cast("Any", _JSON_OPTIONS))


def _literal(text: str) -> str:
    """Return the text as a pattern: everything but letters and digits by its code point."""
    return "".join(c if c.isalnum() else f"\\x{{{ord(c):X}}}" for c in text)


def _reason(message: str) -> str:
    """Return the one line of an error message that says what is wrong."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    found = next((line for line in lines if line.startswith("error: ")), None)
    text = found or next((line for line in lines if line != "<state>"), "no reason given")
    return re.sub(r"^(error: |at \d+\(\d+\): )", "", text)[:200]


_UNSUPPORTED = re.compile(r"look-?around|backreference|unimplemented|not supported|unknown format")


def _error(constraint: Constraint, message: str) -> HeadraceError:
    reason = _reason(message)
    what = f"{constraint.kind} constraint {constraint.spec!r:.100}"
    if _UNSUPPORTED.search(message.lower()):
        return UnsupportedConstraint(f"cannot enforce the {what}: {reason}")
    if constraint.kind == "regex" or re.search(r"parse error|[Uu]nsatisfiable|[Ii]nvalid", message):
        return InvalidRequest(f"cannot compile the {what}: {reason}")
    return UnsupportedConstraint(f"cannot enforce the {what}: {reason}")
